#include "ucg_coll/cost/single_copies.hpp"

#include <algorithm>

namespace ucg::cost {

std::uint64_t single_copy_bytes_min(const Profile& profile, double fixed_ns, double per_byte_ns) {
    constexpr double kClearlyFaster = 1.5;
    // These find a kernel that is hindered, by a sandbox for example. Copies of other processes at
    // the same time slow long copies most.
    constexpr double kClearlySlower = 2.5;
    constexpr double kClearlySlowerLong = 4;
    constexpr std::uint64_t kLong = 4 << 20;
    // Returns how many times as fast as a ring the kernel copies so many bytes. It copies no faster
    // than a core within its own memory, even if a disturbed measurement says so.
    const auto advantage = [&](std::uint64_t bytes) {
        const double seen_ns = fixed_ns + per_byte_ns * static_cast<double>(bytes);
        return message_ns(profile.level(topo::Distance::cache), bytes) /
               std::max(seen_ns, copy_ns(profile.memory, bytes));
    };
    const std::uint64_t built_in = profile.memory.cma.bytes_min;
    std::uint64_t best = built_in;
    for (const std::uint64_t length : kSingleCopyLengths) {
        if (length < built_in && advantage(length) > kClearlyFaster) {
            return length; // This is the shortest such length.
        }
        const double clearly = best < kLong ? kClearlySlower : kClearlySlowerLong;
        if (length > best && advantage(best) < 1 / clearly) {
            best = length;
        }
    }
    return best;
}

} // namespace ucg::cost
