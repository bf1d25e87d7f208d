#include "ucg_coll/plan/parts/rank_levels.hpp"

namespace ucg::plan {

RankLevels::RankLevels(const Facts& facts) {
    const topo::Placement& placement = facts.placement;
    const bool several_hosts = placement.host_count() > 1;
    in_order_ = facts.shared.sockets_are_contiguous && placement.hosts_are_equal_blocks();
    const bool differ = facts.shared.levels.count + (several_hosts ? 1 : 0) > 1;
    facts_ = differ && (in_order_ || several_hosts) ? &facts : nullptr;
    on_host_most_ = placement.ranks_per_host_max();
    on_host_fewest_ = placement.ranks_per_host_min();
}

RankLevels RankLevels::of_rank(Rank rank) const {
    RankLevels levels = *this;
    if (are_hosts_only()) {
        levels.on_host_most_ = levels.on_host_fewest_ =
            static_cast<Rank>(placement().ranks_on(placement().host(rank)).size());
    }
    return levels;
}

std::size_t RankLevels::within(std::uint64_t ranks, bool aligned) const {
    for (std::size_t level = 0; level < count(); ++level) {
        const auto size = static_cast<std::uint64_t>(host_level(level).ranks);
        if (size >= ranks && (!aligned || size % ranks == 0)) {
            return level;
        }
    }
    return count();
}

std::size_t RankLevels::between(Rank a, Rank b) const {
    for (std::size_t level = 0; level < count(); ++level) {
        if (a / host_level(level).ranks == b / host_level(level).ranks) {
            return level;
        }
    }
    return count();
}

Rank RankLevels::inner_ranks() const {
    if (!are_in_order()) {
        return 1;
    }
    return host_level(placement().host_count() > 1 ? count() - 1 : count() - 2).ranks;
}

topo::Distance RankLevels::nearer_neighbour() const {
    const bool near = are_in_order() ? on_host_most_ > 1
                                     : are_hosts_only() && placement().hosts_are_contiguous() &&
                                           placement().ranks_per_host_min() > 1;
    return near ? placement().widest_on_host() : topo::Distance::network;
}

} // namespace ucg::plan
