#include "shm/readable.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/uio.h>
#include <unistd.h>

#include "shm/peer_copy.hpp"

namespace ucg::shm {

/// Returns whether the kernel reads these two bytes, asked as a peer would.
bool ReadableMemory::kernel_reads(std::uintptr_t first, std::uintptr_t last) {
    std::array<std::byte, 2> here{};
    const iovec local = {here.data(), here.size()};
    const std::array<iovec, 2> there = {iovec{reinterpret_cast<void*>(first), 1},
                                        iovec{reinterpret_cast<void*>(last), 1}};
    const ssize_t read = ::process_vm_readv(::getpid(), &local, 1, there.data(), there.size(), 0);
    refused_ = read < 0 && is_refusal(errno);
    return read == static_cast<ssize_t>(here.size());
}

bool ReadableMemory::find_out(const Range& range) {
    if (range.begin == range.end) {
        return true;
    }
    const bool readable = !refused_ && kernel_reads(range.begin, range.end - 1);
    if (readable) {
        add(range);
    }
    return readable;
}

void ReadableMemory::forget(const std::byte* data, std::uint64_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    for (Range& known : known_) {
        if (known.begin < begin + bytes && begin < known.end) {
            known = {};
        }
    }
}

/// Adds a readable range, to a known one if they touch: the pieces of a buffer become one.
void ReadableMemory::add(const Range& range) {
    const auto met = std::find_if(known_.begin(), known_.end(), [&](const Range& known) {
        return known.begin != known.end && range.begin <= known.end && known.begin <= range.end;
    });
    if (met != known_.end()) {
        *met = {std::min(met->begin, range.begin), std::max(met->end, range.end)};
        return;
    }
    known_[oldest_] = range;
    oldest_ = (oldest_ + 1) % known_.size();
}

} // namespace ucg::shm
