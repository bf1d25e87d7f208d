#include "ucg_coll/capi/wireup/profile_agreement.hpp"

#include <algorithm>

#include "ucg_coll/capi/single_copies.hpp"

namespace ucg::capi {
namespace {

Status conflict(Peers& peers, std::size_t rank) {
    peers.set_speaker(0);
    return failure(Code::disagreement,
                   "rank 0 and rank {} have different cost profiles: give all ranks the same file "
                   "by UCG_PROFILE",
                   rank);
}

} // namespace

Result<cost::Profile> agree_on_profile(const LoadedProfile& own, Peers& peers,
                                       const std::vector<Hello>& all) {
    if (peers.is_first(all, Once::bad_profile,
                       [](const Hello& hello) { return hello.profile_bad != 0; })) {
        log(LogLevel::warn, "{}: {}", peers.process_name(), own.complaint);
    }
    const auto other = std::find_if(all.begin(), all.end(), [&](const Hello& hello) {
        return hello.profile_hash != all[0].profile_hash;
    });
    if (other == all.end()) {
        return own.profile;
    }
    if (std::none_of(all.begin(), all.end(),
                     [](const Hello& hello) { return hello.profile_found != 0; })) {
        return cost::default_profile(); // Processors of several kinds.
    }
    const auto rank = static_cast<std::size_t>(other - all.begin());
    if (std::any_of(all.begin(), all.end(),
                    [](const Hello& hello) { return hello.profile_named != 0; })) {
        return conflict(peers, rank);
    }
    if (peers.is_first(0, Once::profile_conflict)) {
        log(LogLevel::warn,
            "{}: rank 0 and rank {} of {} found different cost profiles, the built-in costs are "
            "used. UCG_PROFILE names one file for all, or {} to silence this",
            peers.process_name(), rank, peers.count(), kBuiltinProfile);
    }
    return cost::default_profile();
}

void agree_on_copies(const std::vector<Hello>& all, cost::MemoryModel& memory) {
    std::uint64_t cma_bytes_min = 0;
    std::uint64_t seen_bytes_min = 0;
    for (const Hello& hello : all) {
        cma_bytes_min = std::max(cma_bytes_min, hello.cma_bytes_min);
        seen_bytes_min = std::max(seen_bytes_min, hello.seen_cma_bytes_min);
    }
    memory.cma.permitted = memory.cma.permitted && cma_bytes_min != ~std::uint64_t{0};
    if (seen_bytes_min > 0) {
        take_seen(memory, seen_bytes_min);
    }
    if (cma_bytes_min > 0) {
        memory.set_single_copy_bytes_min(cma_bytes_min);
    }
}

} // namespace ucg::capi
