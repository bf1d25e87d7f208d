#include "ucg_coll/capi/single_copies.hpp"

#include "shm/copy_probe.hpp"
#include "ucg_coll/cost/single_copies.hpp"

namespace ucg::capi {

void take_seen(cost::MemoryModel& memory, std::uint64_t bytes_min) {
    if (bytes_min > memory.cma.bytes_min) {
        memory.far_copies.cma_bytes_min = bytes_min;
    }
    memory.cma.bytes_min = bytes_min;
}

SingleCopies single_copies(const LoadedProfile& profile) {
    const cost::CmaModel& cma = profile.profile.memory.cma;
    if (cma.measured) {
        return {cma.bytes_min, profile.path.empty() ? "built in" : profile.path};
    }
    // Who is disturbed sees slow copies, so that those are looked at again.
    constexpr int kLooks = 3;
    for (int look = 1;; ++look) {
        const Result<shm::KernelCopies> seen = shm::probe_kernel_copies();
        if (!seen.ok()) {
            return {cma.bytes_min, fmt::format("built in; {}", seen.status().message())};
        }
        const std::uint64_t bytes_min =
            cost::single_copy_bytes_min(profile.profile, seen->fixed_ns, seen->per_byte_ns);
        if (bytes_min <= cma.bytes_min || look == kLooks) {
            return {bytes_min,
                    fmt::format("{}; the kernel's copies took {:.0f} ns and {:.3f} ns/B",
                                bytes_min == cma.bytes_min ? "built in, and not contradicted"
                                                           : "found when the process started",
                                seen->fixed_ns, seen->per_byte_ns)};
        }
    }
}

} // namespace ucg::capi
