#include "ucg_coll/plan/parts/rank_levels.hpp"

#include <algorithm>
#include <bit>

namespace ucg::plan {

RankLevels::RankLevels(const Facts& facts) {
    const topo::Placement& placement = facts.placement;
    const bool several_hosts = placement.host_count() > 1;
    in_order_ = facts.shared.sockets_are_contiguous && placement.hosts_are_equal_blocks();
    const bool differ = facts.shared.levels.count + (several_hosts ? 1 : 0) > 1;
    facts_ = differ ? &facts : nullptr;
    by_host_ = placement.hosts_are_contiguous();
    on_host_most_ = placement.ranks_per_host_max();
    on_host_fewest_ = placement.ranks_per_host_min();
}

RankLevels RankLevels::by_host() const {
    RankLevels levels = *this;
    levels.by_host_ = true;
    levels.in_order_ = in_order_ || (on_host_most_ == on_host_fewest_ && facts_ != nullptr &&
                                     facts_->shared.sockets_are_contiguous);
    return levels;
}

RankLevels RankLevels::of_rank(Rank rank) const {
    RankLevels levels = *this;
    if (facts_ != nullptr) {
        levels.rank_ = rank;
        levels.on_host_most_ = levels.on_host_fewest_ =
            static_cast<Rank>(placement().ranks_on(placement().host(rank)).size());
    }
    return levels;
}

RankLevels::GroupSizes RankLevels::group_sizes(End end) const {
    GroupSizes sizes = {};
    for (std::size_t level = 0; level < count(); ++level) {
        const HostLevel& group = host_level(level);
        sizes[level] = rank_ != kNoRank   ? 1
                       : end == End::most ? group.ranks
                                          : std::min(group.ranks_min, on_host_fewest_);
    }
    if (rank_ != kNoRank) {
        for (const Rank peer : placement().ranks_on(placement().host(rank_))) {
            for (std::size_t level = 0; level < count() && peer != rank_; ++level) {
                sizes[level] += placement().distance(rank_, peer) <= distance(level) ? 1 : 0;
            }
        }
    }
    return sizes;
}

bool RankLevels::are_alike() const {
    bool alike = on_host_fewest_ == on_host_most_;
    for (std::size_t level = 0; level < count(); ++level) {
        alike = alike && host_level(level).ranks_min == host_level(level).ranks;
    }
    return alike || rank_ != kNoRank;
}

std::size_t RankLevels::level_of(std::uint64_t ranks, bool aligned) const {
    for (std::size_t level = 0; level < count(); ++level) {
        const auto size = static_cast<std::uint64_t>(host_level(level).ranks);
        if (size >= ranks && (!aligned || size % ranks == 0)) {
            return level;
        }
    }
    return count();
}

std::size_t RankLevels::in_tree(std::uint64_t ranks, std::uint64_t radix) const {
    const bool on_host = facts_ != nullptr && stride() > 0 && ranks / radix % stride() == 0;
    return on_host ? level_of(ranks / stride(), true) : count();
}

RankLevels::Way RankLevels::way_of(const ExchangeRound& round) const {
    std::size_t level = round.leaving > 0 ? count() : 0;
    while (level + 1 < count() && distance(level) < round.farthest) {
        ++level;
    }
    return {level, round.leaving};
}

RankLevels::Way RankLevels::exchanged(std::uint64_t distance) const {
    return facts_ == nullptr ? Way{count(), on_host_most_}
                             : way_of(facts_->shared.exchanges.at[std::countr_zero(distance)]);
}

RankLevels::Way RankLevels::folded() const {
    return facts_ == nullptr ? Way{count(), on_host_most_} : way_of(facts_->shared.exchanges.pairs);
}

RankLevels::Way RankLevels::aligned(std::uint64_t ranks, std::uint64_t radix) const {
    if (facts_ == nullptr || stride() > 0) {
        return {in_tree(ranks, radix), on_host_most_};
    }
    Way widest = exchanged(std::bit_floor(ranks / radix));
    for (std::uint64_t distance = std::bit_ceil(ranks / radix); distance < ranks; distance *= 2) {
        const Way way = exchanged(distance);
        widest = {std::max(widest.level, way.level), std::max(widest.leaving, way.leaving)};
    }
    return widest;
}

/// Returns how many ranks of a host send to another at a time, on average over the messages to
/// `peers` ranks at multiples of `distance`, where the ranks of hosts follow one another.
Rank RankLevels::crossing(std::uint64_t distance, Rank peers) const {
    const auto most = static_cast<std::uint64_t>(on_host_most_);
    std::uint64_t sum = 0;
    for (Rank hop = 1; hop <= peers; ++hop) {
        sum += std::min(distance * static_cast<std::uint64_t>(hop), most);
    }
    return static_cast<Rank>(divide_up(sum, static_cast<std::uint64_t>(peers)));
}

RankLevels::Way RankLevels::rotated(std::uint64_t distance, std::uint64_t next_reach,
                                    Rank peers) const {
    const bool on_host = facts_ != nullptr && stride() > 0 && distance % stride() == 0 &&
                         static_cast<std::uint64_t>(placement().rank_count()) % stride() == 0;
    const auto most = static_cast<std::uint64_t>(on_host_most_);
    const bool crosses_borders = facts_ != nullptr && by_host_;
    return {on_host
                ? level_of(std::min(next_reach / stride(), in_order_ ? next_reach : most), false)
                : count(),
            crosses_borders ? crossing(distance, peers) : on_host_most_};
}

std::size_t RankLevels::between(Rank a, Rank b) const {
    const auto step = facts_ != nullptr ? static_cast<Rank>(stride()) : 0;
    if (step == 0 || a % step != b % step) {
        return count();
    }
    for (std::size_t level = 0; level < count(); ++level) {
        const Rank ranks = host_level(level).ranks * step;
        if (a / ranks == b / ranks) {
            return level;
        }
    }
    return count();
}

Rank RankLevels::inner_ranks() const {
    if (!are_in_order()) {
        return 1;
    }
    return host_level(inner_level()).ranks;
}

topo::Distance RankLevels::nearer_neighbour() const {
    const bool near =
        are_in_order() ? on_host_most_ > 1 : are_hosts_only() && by_host_ && on_host_fewest_ > 1;
    return near ? placement().widest_on_host() : topo::Distance::network;
}

} // namespace ucg::plan
