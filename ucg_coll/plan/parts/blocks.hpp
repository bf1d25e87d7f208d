// Where the blocks of a request lie that has one for each rank, and the order in which rings visit
// the ranks that they belong to.
#pragma once

#include <span>
#include <vector>

#include "ucg_coll/plan/parts/block_map.hpp"
#include "ucg_coll/plan/parts/cost.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// (index + distance) mod team.size(), for -size <= distance <= size.
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
    /// The blocks of the team's members, of `blocks` by rank.
    BlockMap of(const BlockMap& blocks) const;

  private:
    std::vector<Rank> members_; ///< Empty where ranks are in this order anyway.
    Team team_;
};
/// The links where one rank of each host sends or receives at a time: in a ring in this order, or
/// towards a root, whose own link is what limits.
Link unshared_link(const Facts& facts);

/// The block maps of requests: each rank's blocks in its input or output.
BlockMap output_blocks(const graph::Builder& builder, const graph::Request& request);
BlockMap input_blocks(const graph::Builder& builder, const graph::Request& request);
/// This rank's contribution to an allgather(v): its input, or its block of the output in place.
graph::Slice own_contribution(const graph::Builder& builder, const graph::Request& request);
/// The same for a gather(v), whose root may be in place. `target` is looked at in that case only.
graph::Slice gather_contribution(const graph::Builder& builder, const graph::Request& request,
                                 const BlockMap& target);
/// Where this rank's block of a scatter(v) goes; empty if it is to stay where it is.
graph::Slice scatter_result(const graph::Builder& builder, const graph::Request& request);
/// For an alltoall(v) in place: copies all blocks but this member's own to scratch. Its own
/// remains.
BlockMap set_aside(graph::Builder& builder, const Team& team, const BlockMap& blocks);

/// The contribution to a reduce_scatter(_block), and the place of its result.
BlockMap reduce_scatter_source(const graph::Builder& builder, const graph::Request& request);
graph::Slice reduce_scatter_target(const graph::Builder& builder, const graph::Request& request);
/// The longest block of a reduce_scatter(_block) or allgather(v).
std::uint64_t longest_block(const graph::Request& request);
/// The length of all blocks of these.
std::uint64_t all_blocks(const graph::Request& request);
/// Combines the operands to `target`; by way of scratch if it overlaps one of them, as the result
/// of a reduce-scatter in place may.
void reduce_to_result(graph::Builder& builder, std::span<const graph::Slice> operands,
                      graph::Slice target);

} // namespace ucg::plan
