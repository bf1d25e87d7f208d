#include "shm/copy_probe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>

#include "shm/peer_copy.hpp"
#include "ucg_coll/base/copy.hpp"

namespace ucg::shm {
namespace {

constexpr std::size_t kShort = std::size_t{4} << 10;
constexpr std::size_t kLong = std::size_t{32} << 10;

/// Where the probe copies from and to. Both begin at the same place within a page, as do vectors of
/// a program that allocates them alike: a kernel copies by string instructions, whose time depends
/// on that (lies_little_above()).
struct Ends {
    alignas(kAliasedBytes) std::array<std::byte, kLong> from;
    alignas(kAliasedBytes) std::array<std::byte, kLong> to;
};

/// Returns the least time of several copies.
Result<double> least_ns(const PeerReach& self, const std::byte* from, std::byte* to,
                        std::size_t bytes) {
    using Clock = std::chrono::steady_clock;
    constexpr int kRounds = 9; // The first ones find cold caches, and more so beside others.
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kRounds; ++i) {
        const Clock::time_point start = Clock::now();
        const RemoteBytes there = {reinterpret_cast<std::uintptr_t>(from), 0};
        if (Status status = pull(self, there, to, bytes); !status.ok()) {
            return status;
        }
        const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
        least = std::min(least, taken.count());
    }
    return least;
}

} // namespace

Result<KernelCopies> probe_kernel_copies() {
    PeerAccess access(true, false);
    const PeerReach self = {nullptr, own_access_ticket(), &access};
    const auto ends = std::make_unique<Ends>();
    const Result<double> brief_ns = least_ns(self, ends->from.data(), ends->to.data(), kShort);
    if (!brief_ns.ok()) {
        return brief_ns.status();
    }
    const Result<double> long_ns = least_ns(self, ends->from.data(), ends->to.data(), kLong);
    if (!long_ns.ok()) {
        return long_ns.status();
    }
    KernelCopies copies;
    copies.per_byte_ns = std::max(0.0, *long_ns - *brief_ns) / static_cast<double>(kLong - kShort);
    copies.fixed_ns = std::max(0.0, *brief_ns - copies.per_byte_ns * static_cast<double>(kShort));
    return copies;
}

} // namespace ucg::shm
