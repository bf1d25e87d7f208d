// Where the blocks of a request lie that has one block for each rank, and the order in which rings
// visit the ranks that the blocks belong to.
#pragma once

#include <span>
#include <vector>

#include "ucg_coll/plan/parts/block_map.hpp"
#include "ucg_coll/plan/parts/cost.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// Returns (team.index() + distance) mod team.size(). REQUIRES: -size <= distance <= size.
inline Rank neighbour_index(const Team& team, Rank distance) {
    return static_cast<Rank>((std::int64_t{team.index()} + distance + team.size()) % team.size());
}

/// The team of all ranks in the order of hosts, so that a ring enters and leaves each host once.
class HostOrder {
  public:
    HostOrder(const Facts& facts, Rank rank);
    HostOrder(const HostOrder&) = delete; // The team refers to the members here.
    HostOrder& operator=(const HostOrder&) = delete;
    const Team& team() const { return team_; }
    /// Returns the blocks of the team's members, given `blocks` by rank.
    BlockMap of(const BlockMap& blocks) const;

  private:
    std::vector<Rank> members_; ///< Empty where the ranks are in the order of hosts anyway.
    Team team_;
};
/// Returns the link where one rank of each host sends or receives at a time: in a ring in the order
/// of hosts, or to or from a root, whose own link is what limits.
Link unshared_link(const Facts& facts);

/// Return the blocks of all ranks in this rank's output or input.
BlockMap output_blocks(const graph::Builder& builder, const graph::Request& request);
BlockMap input_blocks(const graph::Builder& builder, const graph::Request& request);
/// Returns this rank's contribution to an allgather(v): its input, or, in place, its block of the
/// output.
graph::Slice own_contribution(const graph::Builder& builder, const graph::Request& request);
/// Returns this rank's contribution to a gather(v): its input, or its block of `target` if it is a
/// root in place.
graph::Slice gather_contribution(const graph::Builder& builder, const graph::Request& request,
                                 const BlockMap& target);
/// Returns where this rank's block of a scatter(v) goes; empty if it is to stay where it is.
graph::Slice scatter_result(const graph::Builder& builder, const graph::Request& request);
/// For an alltoall(v) in place: copies all blocks but this member's own to scratch. Returns where
/// the blocks then are; the member's own is where it was.
BlockMap set_aside(graph::Builder& builder, const Team& team, const BlockMap& blocks);

/// Return the contribution to a reduce_scatter(_block), and the place of its result.
BlockMap reduce_scatter_source(const graph::Builder& builder, const graph::Request& request);
graph::Slice reduce_scatter_target(const graph::Builder& builder, const graph::Request& request);
/// Returns the length of the longest block of a reduce_scatter(_block) or allgather(v).
std::uint64_t longest_block(const graph::Request& request);
/// Returns the length of all blocks of a reduce_scatter(_block) or allgather(v) together.
std::uint64_t all_blocks(const graph::Request& request);
/// Combines the operands to `target`. If `target` overlaps one of them, as the result of a
/// reduce-scatter in place may, this combines them to scratch and copies that to `target`.
void reduce_to_result(graph::Builder& builder, std::span<const graph::Slice> operands,
                      graph::Slice target);

} // namespace ucg::plan
