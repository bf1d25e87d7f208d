// What ranks of one host tell one another of the shared memory that they have for a group.
// Trivially copyable: it travels as bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "shm/shm.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::capi {

/// How far a rank came with shared memory. The order matters: a rank that failed by itself comes
/// before one that only missed a peer.
enum class ShmEnd : std::uint32_t {
    failed,       ///< For a reason of its own, which it can tell.
    missing_peer, ///< A peer did not share its memory; that one knows why, unless it is gone.
    made,
};

/// What a rank offers. Told in the second exchange, unless the first one has told it rightly.
struct ShmOffer {
    transport::ShmAddress address;
    ShmEnd end = ShmEnd::failed;
    std::uint16_t serves_malloc = 0;
    std::uint8_t attached = 0; ///< 1: all peers' heaps are mapped already.
    /// 1: the kernel lets this process read and write the memory of all whose heaps are mapped.
    std::uint8_t reaches_attached = 0;
};

/// What became of a rank's attempt to connect.
struct ShmOutcome {
    ShmEnd end = ShmEnd::failed;
    std::uint32_t reaches_all = 0; ///< 1: the kernel lets it read and write all others' memory.
};

bool all_made(const std::vector<ShmEnd>& ends);

/// Returns the offer of a transport that was made in `heap`; it says nothing of the peers' heaps.
ShmOffer offer_of(const shm::Heap& heap, const transport::ShmTransport& made);

/// Returns a digest of those options that ranks of a group must agree in: not of the time-out,
/// which is each rank's own.
std::uint64_t digest(const transport::ShmOptions& options);

} // namespace ucg::capi
