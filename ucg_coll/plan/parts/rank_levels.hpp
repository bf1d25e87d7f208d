// Which level of the machine ranks share. Prices are elsewhere (cost.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ucg_coll/plan/algorithm.hpp"

namespace ucg::plan {

/// The levels of a host at which ranks differ, and behind them the network. Levels count from the
/// innermost on.
class RankLevels {
  public:
    /// Knows nothing: all ranks are as far from one another as any two.
    RankLevels() = default;
    /// Knows the levels of all ranks, or, if they share a host, of that host. Ranks are in order if
    /// those of each group follow one another and groups, except for the last, are of one size;
    /// else what is known is how many ranks groups have, and what partners in exchanges share. The
    /// facts must outlive it.
    explicit RankLevels(const Facts& facts);
    /// Returns what is known of the ways from and to that rank alone.
    RankLevels of_rank(Rank rank) const;
    /// Returns what is known of a team of all ranks in the order of their hosts.
    RankLevels by_host() const;

    bool are_in_order() const { return facts_ != nullptr && in_order_; }
    /// Are there several hosts, and the ranks in no order?
    bool are_hosts_only() const {
        return facts_ != nullptr && !in_order_ && placement().host_count() > 1;
    }
    /// Do the ranks of each host follow one another?
    bool are_by_host() const { return by_host_; }
    const Facts& facts() const { return *facts_; } ///< REQUIRES: something is known.
    const topo::Placement& placement() const { return facts_->placement; }

    /// Returns how many levels a host has. This is also the number of the level beyond: that of any
    /// two ranks.
    std::size_t count() const { return facts_ != nullptr ? facts_->shared.levels.count : 0; }
    topo::Distance distance(std::size_t level) const { return host_level(level).distance; }

    /// What ranks share with their partners.
    struct Way {
        std::size_t level;
        Rank leaving; ///< Most ranks of a host that have a partner on another host, if any has.
    };
    /// Returns the way between partners that are `distance`, a power of two, apart among all ranks,
    /// folded to a power of two.
    Way exchanged(std::uint64_t distance) const;
    /// Returns the way between the ranks of the pairs that such a fold makes.
    Way folded() const;
    /// Returns the way between partners in an exchange, in groups of `ranks` consecutive ranks that
    /// begin at multiples of `ranks`: they are a multiple of `ranks` / `radix` apart.
    Way aligned(std::uint64_t ranks, std::uint64_t radix) const;
    /// Returns the way between partners that are all multiples of `distance` apart, `peers` of
    /// them, wherever groups begin, if the next round reaches `next_reach` ranks. On a path through
    /// the rounds that together reach no more ranks than a group has, at most one message leaves
    /// the group; the last of these rounds, in which it costs most, is charged for it.
    Way rotated(std::uint64_t distance, std::uint64_t next_reach, Rank peers) const;
    /// Returns the level of the ways from the root of a tree of `ranks` ranks, and from the roots
    /// of all trees beside it, to their children, which are multiples of `ranks` / `radix` away.
    std::size_t in_tree(std::uint64_t ranks, std::uint64_t radix) const;
    /// Returns the innermost level whose group contains both ranks, given by their indexes within
    /// the team.
    std::size_t between(Rank a, Rank b) const;

    /// Returns how many ranks a group has of ranks that are closer than the farthest: the size of a
    /// socket, or, if there are several hosts, of a host. It is 1 if levels are not told apart.
    Rank inner_ranks() const;
    /// Returns how many ranks share a host with the rank of of_rank(), else with any of a host with
    /// most ranks, itself among them; 1 if no hosts are known.
    Rank ranks_on_host() const { return facts_ == nullptr ? 1 : on_host_most_; }
    /// Which rank's groups are meant, if there is no rank of of_rank().
    enum class End : std::uint8_t {
        most,   ///< A rank with most others in each of its groups.
        fewest, ///< One with fewest.
    };
    /// How many ranks a rank's group has at each level, itself among them.
    using GroupSizes = std::array<Rank, topo::kDistanceCount>;
    /// Returns the sizes of the groups of the rank of of_rank(), else of a rank at that end.
    GroupSizes group_sizes(End end) const;
    /// Are both ends of group_sizes() alike?
    bool are_alike() const;
    /// Returns in how many groups of `level` the first `count` ranks lie. REQUIRES: are_in_order().
    Rank groups(std::size_t level, Rank count) const {
        const Rank more = count % on_host_most_;
        return level == this->count()
                   ? 1
                   : count / on_host_most_ * host_level(level).groups +
                         (more + host_level(level).ranks - 1) / host_level(level).ranks;
    }
    /// Returns the widest level whose groups do not have all ranks. REQUIRES: something is known.
    std::size_t inner_level() const {
        return placement().host_count() > 1 ? count() - 1 : count() - 2;
    }
    /// Returns how many ranks are closer to the rank of of_rank() than the farthest, itself among
    /// them, else to a rank of a largest group: those of its socket, or, if there are several
    /// hosts, of its host.
    Rank near_ranks() const { return group_sizes(End::most)[inner_level()]; }
    /// Returns how far the nearer neighbour of each rank is, if ranks have at most one neighbour on
    /// another host.
    topo::Distance nearer_neighbour() const;
    /// Returns how many of the `count` - 1 ways from each of the ranks to the next lead to another
    /// host. REQUIRES: are_hosts_only(), and the ranks of each host follow one another.
    Rank borders(Rank count) const {
        return static_cast<Rank>(std::min<std::int64_t>(placement().host_count(), count)) - 1;
    }

  private:
    const HostLevel& host_level(std::size_t level) const {
        return facts_->shared.levels.level[level];
    }
    /// Returns after how many ranks the next one of the same host follows: 1 if ranks are in order,
    /// 0 if that is not the same for all.
    std::uint64_t stride() const {
        return in_order_ ? 1 : static_cast<std::uint64_t>(facts_->shared.exchanges.period);
    }
    Way way_of(const ExchangeRound& round) const;
    /// Returns the innermost level of a host whose groups have at least `ranks` ranks. If the
    /// groups of `ranks` are aligned, the size of the level's groups must also be a multiple of
    /// `ranks`, so that each lies within one of these.
    std::size_t level_of(std::uint64_t ranks, bool aligned) const;
    Rank crossing(std::uint64_t distance, Rank peers) const;

    const Facts* facts_ = nullptr;
    Rank rank_ = kNoRank; ///< That of of_rank().
    bool in_order_ = false;
    bool by_host_ = false;
    Rank on_host_most_ = 1;
    Rank on_host_fewest_ = 1;
};

} // namespace ucg::plan
