// Flag slots by the levels of a host: one rank of each group of those that are close to one another
// reads their flag slots and shares what it makes of them, so that a flag slot has as many readers
// as a level has members, not as the host has ranks. Li, Hoefler, Snir (HPDC 2013), sections 2.2
// and 2.6, have the trees and their levels; here each level of them is flat.
//
// A rank shares once in a collective. On the way up each rank but one of a group needs its share,
// so who shares on the way down, the deliverer of a group, sends a message on the way up.
#pragma once

#include "ucg_coll/plan/flag_slots/flag_slots.hpp"
#include "ucg_coll/plan/parts/steps.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// By which levels of a host a tree goes: the ranks closer than a limit are a group, and the
/// groups' leaders the members of the next level; the last limit's of the top. Rising.
struct TreeLimits {
    std::array<topo::Distance, topo::kDistanceCount> limit = {};
    std::size_t count = 0;
};

/// One rank's part in the tree of its host.
class FlagSlotTree {
  public:
    /// `root` leads all groups that it is in, others are led by their lowest rank. REQUIRES: it is
    /// on the host of `rank`, or kNoRank; limits.count > 0.
    FlagSlotTree(const topo::Placement& placement, const TreeLimits& limits, Rank rank,
                 Rank root = kNoRank);

    struct Group {
        std::vector<Rank> members; ///< In rank order of the groups that they lead.
        Rank leader = kNoRank;
    };
    /// Those that this rank is in, from the innermost on; the last one, the top, only if it leads
    /// all others.
    std::span<const Group> groups() const { return groups_; }
    const Group& innermost() const { return groups_.front(); }
    /// Which of groups() is the top.
    std::size_t top() const { return top_; }
    /// The members of the top, known to all.
    std::span<const Rank> tops() const { return tops_; }

    Rank rank() const { return rank_; }
    /// Who passes results on to the innermost group: its last member that does not lead it. kNoRank
    /// where a rank is alone.
    Rank deliverer() const { return deliverer_; }
    bool delivers() const { return deliverer_ == rank_; }
    bool is_near(Rank other) const;

  private:
    Rank rank_;
    std::size_t top_;
    std::vector<Group> groups_;
    std::vector<Rank> tops_;
    Rank deliverer_ = kNoRank;
};

// Pieces, for the ranks of a host. REQUIRES, of all: builder.flag_slots() was called on all ranks
// of the group. Of these, one up and one down may follow one another, of one tree.

/// Where a way up ends.
enum class TreeEnd : std::uint8_t {
    root, ///< All of it is at the top's leader.
    tops, ///< Each member of the top has its part, and shares it.
};
void arrive_by_tree(graph::Builder& builder, const FlagSlotTree& tree, TreeEnd end, OpIds& last);
/// In the order of members. Returns what this rank has combined, `source` where that is nothing.
graph::Slice reduce_by_tree(graph::Builder& builder, const FlagSlotTree& tree, TreeEnd end,
                            graph::Slice source);

/// From `root`, who leads the tree and shares here.
void release_by_tree(graph::Builder& builder, const FlagSlotTree& tree, Rank root, OpIds& last);
void bcast_by_tree(graph::Builder& builder, const FlagSlotTree& tree, Rank root, graph::Slice data);

/// From the tops, who have shared.
void release_by_tops(graph::Builder& builder, const FlagSlotTree& tree, OpIds& last);
/// `part`: what reduce_by_tree() returned.
void combine_by_tops(graph::Builder& builder, const FlagSlotTree& tree, graph::Slice part,
                     graph::Slice target);

// Prices, on the fullest host, of vectors or, of no bytes, of barriers.

double up_tree_ns(const Facts& facts, const TreeLimits& limits, TreeEnd end, std::uint64_t bytes);
double down_tree_ns(const Facts& facts, const TreeLimits& limits, std::uint64_t bytes);
double from_tops_ns(const Facts& facts, const TreeLimits& limits, std::uint64_t bytes);
/// How often a rank waits for another, on the way up to that end, and on the way down.
unsigned up_tree_waits(const TreeLimits& limits, TreeEnd end);
inline constexpr unsigned kDownTreeWaits = 2;

/// All limits that a tree may have on the fullest host, from `index` 0 on; count is 0 beyond the
/// last. REQUIRES: facts.shared.levels.count > 1.
TreeLimits tree_limits(const Facts& facts, unsigned index);
/// Those with the least cost_ns(limits).
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
/// Groups combine in rank order only if the ranks of each follow one another.
inline bool tree_combines(const Facts& facts, bool commutative) {
    return commutative || facts.placement.groups_are_contiguous();
}

} // namespace ucg::plan
