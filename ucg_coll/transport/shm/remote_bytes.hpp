// How a rank names its own bytes to a peer that is to copy them, or to copy to them.
#pragma once

#include <cstdint>

#include "shm/heap.hpp"
#include "shm/peer_copy.hpp"

namespace ucg::transport {

/// Returns what a peer needs in order to copy these bytes of this process.
inline shm::RemoteBytes remote_bytes(const shm::Heap& heap, const std::byte* data,
                                     std::uint64_t bytes) {
    const auto place = heap.locate(data, bytes);
    return {reinterpret_cast<std::uintptr_t>(data), place ? place->offset + 1 : 0};
}

} // namespace ucg::transport
