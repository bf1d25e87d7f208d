// What the ranks of a group agree on before some of their calls, since none knows it alone.
#include <utility>

#include "ucg_coll/capi/group.hpp"

namespace ucg::capi {

/// Does the mean length of blocks change which algorithm is chosen? Where links between hosts are
/// not known, lengths hardly change what is best, and nobody pays for agreeing on them.
bool Group::find_whether_mean_block_matters() const {
    if (planner_->facts().network == nullptr || rank_count_ < 2 ||
        !context_.config().algorithm(graph::Collective::alltoallv, 0).empty()) {
        return false;
    }
    constexpr std::uint64_t kLongest = std::uint64_t{1} << 32U;
    const std::string_view of_nothing = planner_->choice_for_blocks(0);
    for (std::uint64_t bytes = 1; bytes <= kLongest; bytes *= 4) {
        if (planner_->choice_for_blocks(bytes) != of_nothing) {
            return true;
        }
    }
    return false;
}

bool Group::mean_block_matters() {
    if (!mean_block_matters_) {
        mean_block_matters_ = find_whether_mean_block_matters();
    }
    return *mean_block_matters_;
}

/// Plans stay where another mean would lead to the same choice.
ucg_status_t Group::agree_on_blocks(const ucg_coll_params_t& params, const RunCollective& run) {
    std::uint64_t total = 0;
    {
        const Lock held = lock();
        if (!mean_block_matters() || !key_of(params, rank_, rank_count_).ok() ||
            !mean_block_.begins(bytes_of_others(params, rank_, rank_count_))) {
            return UCG_OK;
        }
        total = mean_block_.received();
    }
    if (const ucg_status_t status = sum_up(run, &total, 1); status != UCG_OK) {
        return status;
    }
    const Lock held = lock();
    const std::uint64_t bytes = mean_block_.added_up(total, rank_count_);
    const std::uint64_t before = plans_->mean_block();
    if (planner_->choice_for_blocks(bytes) != planner_->choice_for_blocks(before)) {
        plans_->set_mean_block(bytes);
    }
    return UCG_OK;
}

/// Messages of several ranks between two hosts are combined where hosts have several ranks, unless
/// the user asks for an algorithm that does not do so.
bool Group::find_whether_rooms_matter() const {
    const topo::Placement& placement = planner_->placement();
    const std::string_view wanted =
        context_.config().algorithm(graph::Collective::neighbor_alltoallv, 0);
    return placement.host_count() > 1 && placement.ranks_per_host_max() > 1 &&
           (wanted.empty() || planner_->has_rooms(wanted));
}

bool Group::rooms_matter() {
    if (!rooms_matter_) {
        rooms_matter_ = find_whether_rooms_matter();
    }
    return *rooms_matter_;
}

bool Group::find_whether_choice_changes(graph::Collective type) {
    return (type == graph::Collective::alltoallv && mean_block_matters()) ||
           (type == graph::Collective::neighbor_alltoallv && rooms_matter());
}

/// What ranks tell one another here goes without rooms. Plans stay where rooms are not used.
ucg_status_t Group::agree_on_rooms(const ucg_coll_params_t& params, const RunCollective& run,
                                   bool always) {
    std::uint64_t outgrown = 0;
    std::vector<graph::EdgeRoom> wanted;
    {
        const Lock held = lock();
        if (!rooms_matter()) {
            return UCG_OK;
        }
        const bool due =
            key_of(params, rank_, rank_count_).ok() &&
            edge_rooms_.begins(edges_between_hosts(params, rank_, planner_->placement()));
        if (!due && !always) {
            return UCG_OK;
        }
        outgrown = edge_rooms_.outgrown() ? 1 : 0;
        wanted = edge_rooms_.wanted();
    }
    ucg_status_t status = sum_up(run, &outgrown, 1);
    const bool renew = status == UCG_OK && outgrown > 0;
    AgreedRooms agreed;
    if (renew) {
        {
            const Lock held = lock();
            plans_->set_rooms({});
        }
        status = gather_rooms(run, planner_->placement(), rank_, wanted, agreed);
    }
    const Lock held = lock();
    edge_rooms_.agreed(renew);
    if (renew && status == UCG_OK && planner_->uses_rooms(agreed.crossing)) {
        plans_->set_rooms(std::move(agreed));
    }
    return status;
}

} // namespace ucg::capi
