// Which level of the machine ranks share. Prices are elsewhere (cost.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "ucg_coll/plan/algorithm.hpp"

namespace ucg::plan {

/// The levels of a host at which ranks differ, and behind them the network. Levels count from the
/// innermost on.
class RankLevels {
  public:
    /// Knows nothing: all ranks are as far from one another as any two.
    RankLevels() = default;
    /// Knows the levels of all ranks, or, if they share a host, of that host. It tells levels apart
    /// only if the ranks of each group follow one another and groups are of one size; else it knows
    /// no more than how many ranks each host has. The facts must outlive it.
    explicit RankLevels(const Facts& facts);
    /// Returns what is known of the ways from and to that rank alone.
    RankLevels of_rank(Rank rank) const;

    bool are_in_order() const { return facts_ != nullptr && in_order_; }
    bool are_hosts_only() const { return facts_ != nullptr && !in_order_; }
    const Facts& facts() const { return *facts_; } ///< REQUIRES: something is known.
    const topo::Placement& placement() const { return facts_->placement; }

    /// Returns how many levels of a host are told apart. This is also the number of the level
    /// beyond: that of any two ranks.
    std::size_t count() const { return are_in_order() ? facts_->shared.levels.count : 0; }
    topo::Distance distance(std::size_t level) const { return host_level(level).distance; }
    /// Returns the innermost level whose groups have at least `ranks` ranks. If the groups of
    /// `ranks` are aligned, the size of the level's groups must also be a multiple of `ranks`, so
    /// that each lies within one of these.
    std::size_t within(std::uint64_t ranks, bool aligned = true) const;
    /// Returns the innermost level whose group contains both ranks, given by their indexes within
    /// the team.
    std::size_t between(Rank a, Rank b) const;

    /// Returns how many ranks a group has of ranks that are closer than the farthest: the size of a
    /// socket, or, if there are several hosts, of a host. It is 1 if levels are not told apart.
    Rank inner_ranks() const;
    /// Returns how many ranks share a host with the rank of of_rank(), else with any of a host with
    /// most ranks, itself among them; 1 if no hosts are known.
    Rank ranks_on_host() const { return facts_ == nullptr ? 1 : on_host_most_; }
    /// Like ranks_on_host(), but for a host with fewest ranks.
    Rank ranks_on_host_min() const { return on_host_fewest_; }
    /// Returns how far the nearer neighbour of each rank is, if ranks have at most one neighbour on
    /// another host.
    topo::Distance nearer_neighbour() const;
    /// Returns how many of the `count` - 1 ways from each of the ranks to the next lead to another
    /// host. REQUIRES: are_hosts_only(), and the ranks of each host follow one another.
    Rank borders(Rank count) const {
        return static_cast<Rank>(std::min<std::int64_t>(placement().host_count(), count)) - 1;
    }
    /// Calls visit(level, ranks) for each level of `count` ranks, from the innermost on, with the
    /// size of its groups. REQUIRES: are_in_order().
    template <typename Visit>
    void for_each(Rank count, Visit visit) const {
        Rank before = 1;
        for (std::size_t level = 0; level <= this->count() && before < count; ++level) {
            const Rank ranks = level < this->count() ? host_level(level).ranks : count;
            if (ranks > before) {
                before = std::min(ranks, count);
                visit(level, static_cast<double>(before));
            }
        }
    }

  private:
    const HostLevel& host_level(std::size_t level) const {
        return facts_->shared.levels.level[level];
    }

    const Facts* facts_ = nullptr;
    bool in_order_ = false;
    Rank on_host_most_ = 1;
    Rank on_host_fewest_ = 1;
};

} // namespace ucg::plan
