// Collectives by flag slots over the levels of a host. One rank of each group of ranks that are
// close to one another reads the flag slots of its group and shares what it makes of them. So a
// flag slot has as many readers as a level has members, not as many as the host has ranks. The
// trees and their levels are those of Li, Hoefler, Snir (HPDC 2013), sections 2.2 and 2.6; here
// each level of a tree is flat.
//
// A rank shares only once in a collective. On the way up each rank of a group but its leader needs
// its share. So the deliverer of a group, which shares on the way down, sends a message on the way
// up instead.
#pragma once

#include "ucg_coll/plan/flag_slots/flag_slots.hpp"
#include "ucg_coll/plan/parts/steps.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// The levels of a host that a tree has, as distances that rise. Ranks closer to one another than a
/// limit are a group, and the leaders of these groups are the members of the next level; the
/// leaders of the last limit's groups are the members of the top.
struct TreeLimits {
    std::array<topo::Distance, topo::kDistanceCount> limit = {};
    std::size_t count = 0;
};

/// One rank's part in the tree of its host.
class FlagSlotTree {
  public:
    /// `root` leads all groups that it is in; the lowest rank leads each other group. REQUIRES:
    /// `root` is on the host of `rank`, or kNoRank; limits.count > 0.
    FlagSlotTree(const topo::Placement& placement, const TreeLimits& limits, Rank rank,
                 Rank root = kNoRank);

    /// One group of a level.
    struct Group {
        std::vector<Rank> members; ///< In the order of the lowest ranks that they stand for.
        Rank leader = kNoRank;
    };
    /// Returns the groups that this rank is in, from the innermost on. The top is the last of them,
    /// and is there only if this rank leads all the others.
    std::span<const Group> groups() const { return groups_; }
    const Group& innermost() const { return groups_.front(); }
    /// Returns the index that the top has in groups() at ranks that are in it.
    std::size_t top() const { return top_; }
    /// Returns the members of the top, also at ranks that are not in it.
    std::span<const Rank> tops() const { return tops_; }

    Rank rank() const { return rank_; }
    /// Returns the rank that passes results on to the innermost group: its last member that does
    /// not lead it. kNoRank where a rank is alone in its group.
    Rank deliverer() const { return deliverer_; }
    bool delivers() const { return deliverer_ == rank_; }
    /// Returns whether `other` is in this rank's innermost group.
    bool is_near(Rank other) const;

  private:
    Rank rank_;
    std::size_t top_;
    std::vector<Group> groups_;
    std::vector<Rank> tops_;
    Rank deliverer_ = kNoRank;
};

// Pieces for the ranks of a host. REQUIRES, for all: builder.flag_slots() was called on all ranks
// of the group. In a collective, a piece that goes up a tree may be followed by one that goes down
// the same tree.

/// Where a piece that goes up a tree ends.
enum class TreeEnd : std::uint8_t {
    root, ///< The top's leader has what all ranks gave.
    tops, ///< Each member of the top has the part of the ranks below it, and shares it.
};
/// After it, the rank or ranks at `end` know that all ranks below them have arrived.
void arrive_by_tree(graph::Builder& builder, const FlagSlotTree& tree, TreeEnd end, OpIds& last);
/// Combines vectors up the tree, in the order of each group's members. Returns what this rank has
/// combined; `source` if it has combined nothing.
graph::Slice reduce_by_tree(graph::Builder& builder, const FlagSlotTree& tree, TreeEnd end,
                            graph::Slice source);

/// These two pieces go down from `root`, which leads the tree and shares here.
void release_by_tree(graph::Builder& builder, const FlagSlotTree& tree, Rank root, OpIds& last);
void bcast_by_tree(graph::Builder& builder, const FlagSlotTree& tree, Rank root, graph::Slice data);

/// After it, all ranks know that the members of the top have shared.
void release_by_tops(graph::Builder& builder, const FlagSlotTree& tree, OpIds& last);
/// Combines what the members of the top have shared to every rank's `target`. `part` is what
/// reduce_by_tree() returned on this rank.
void combine_by_tops(graph::Builder& builder, const FlagSlotTree& tree, graph::Slice part,
                     graph::Slice target);

// Prices on the host with most ranks, of vectors of `bytes`, or of barriers if `bytes` is 0.

double up_tree_ns(const Facts& facts, const TreeLimits& limits, TreeEnd end, std::uint64_t bytes);
double down_tree_ns(const Facts& facts, const TreeLimits& limits, std::uint64_t bytes);
double from_tops_ns(const Facts& facts, const TreeLimits& limits, std::uint64_t bytes);
/// Returns how often a rank waits for another on the way up to `end`.
unsigned up_tree_waits(const TreeLimits& limits, TreeEnd end);
/// How often a rank waits for another on the way down.
inline constexpr unsigned kDownTreeWaits = 2;

/// Returns the limits of one of the trees that the fullest host may have, which are numbered by
/// `index` from 0 on; count is 0 beyond the last. REQUIRES: facts.shared.levels.count > 1.
TreeLimits tree_limits(const Facts& facts, unsigned index);
/// Returns the limits with the least cost_ns(limits).
template <typename CostOfLimits>
TreeLimits cheapest_limits(const Facts& facts, CostOfLimits cost_ns) {
    TreeLimits best = tree_limits(facts, 0);
    double best_ns = cost_ns(best);
    TreeLimits next;
    for (unsigned index = 1; (next = tree_limits(facts, index)).count > 0; ++index) {
        if (const double ns = cost_ns(next); ns < best_ns) {
            best = next;
            best_ns = ns;
        }
    }
    return best;
}

inline constexpr Need kSeveralLevels = {
    "ranks that several levels of a host tell apart",
    [](const Facts& facts, const graph::Request&) { return facts.shared.levels.count > 1; }};
/// Returns whether a tree may combine: its groups combine in rank order only if the ranks of each
/// follow one another.
inline bool tree_combines(const Facts& facts, bool commutative) {
    return commutative || facts.placement.groups_are_contiguous();
}

} // namespace ucg::plan
