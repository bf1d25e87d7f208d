// Pieces of the algorithms that move or combine one block per member: see pieces.hpp for the rules
// that all pieces share. Blocks are named by the index of the member in the team, wherever they
// lie.
#pragma once

#include "ucg_coll/plan/block_map.hpp"
#include "ucg_coll/plan/cost.hpp"
#include "ucg_coll/plan/dissemination.hpp"
#include "ucg_coll/plan/multiplying_schedule.hpp"
#include "ucg_coll/plan/team.hpp"

namespace ucg::plan {

// Allgather: `own`, this member's block, and those of all others to `target`. `own` may be its
// place in `target`.

/// REQUIRES: team.size() is a power of two.
void allgather_recursive_doubling(graph::Builder& builder, const Team& team, graph::Slice own,
                                  const BlockMap& target);
double allgather_recursive_doubling_ns(const Link& link, Rank count, std::uint64_t block_bytes);

void allgather_bruck(graph::Builder& builder, const Team& team, graph::Slice own,
                     const BlockMap& target);
/// `total` is the length of all blocks together, `longest` that of the longest.
double allgather_bruck_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest);

/// Bruck's with a base for each round. REQUIRES: disseminates(rounds, team.size()).
void allgather_n_way_dissemination(graph::Builder& builder, const Team& team,
                                   const MultiplyingSchedule& rounds, graph::Slice own,
                                   const BlockMap& target);

void allgather_ring(graph::Builder& builder, const Team& team, graph::Slice own,
                    const BlockMap& target);
double allgather_ring_ns(const Link& link, Rank count, std::uint64_t longest);

// Alltoall: block i of `source` to member i, and block i of `target` from member i. The two overlap
// nowhere, except that this member's own block may lie in the same place in both.

/// For equal blocks of `block_bytes`.
void alltoall_bruck(graph::Builder& builder, const Team& team, const BlockMap& source,
                    const BlockMap& target, std::uint64_t block_bytes);
double alltoall_bruck_ns(const Link& link, Rank count, std::uint64_t block_bytes);

/// In step i with the members at distance i, `window` steps at a time. Lengths are known to the two
/// ends of a message alone.
void alltoall_rotated(graph::Builder& builder, const Team& team, const BlockMap& source,
                      const BlockMap& target, Rank window);
/// The same in place. In step i partners are those whose indexes add up to i, so that a block
/// leaves when the one for its place arrives: scratch holds one step of each in the window.
void alltoall_in_place(graph::Builder& builder, const Team& team, const BlockMap& blocks,
                       Rank window);
/// Either of them.
double alltoall_rotated_ns(const Link& link, Rank count, std::uint64_t block_bytes, Rank window);

// Gather of each member's `own` to `target` at the root, where `own` may be its place in `target`.
// Other members look at the lengths in `target` only.

void gather_binomial(graph::Builder& builder, const Team& team, Rank root, graph::Slice own,
                     const BlockMap& target);

/// Other members than the root do not look at `target`.
void gather_linear(graph::Builder& builder, const Team& team, Rank root, graph::Slice own,
                   const BlockMap& target);

// Scatter of the root's `source` to each member's `own`, which is empty at a root that keeps its
// block where it is. Other members look at the lengths in `source` only.

void scatter_binomial(graph::Builder& builder, const Team& team, Rank root, const BlockMap& source,
                      graph::Slice own);

/// Other members than the root do not look at `source`.
void scatter_linear(graph::Builder& builder, const Team& team, Rank root, const BlockMap& source,
                    graph::Slice own);

// What gathers and scatters cost alike: of a team, where a linear one is Link::root_blocks_ns(),
// and of all ranks, which may share processors.

double binomial_blocks_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root);
double binomial_blocks_ns(const Facts& facts, const graph::Request& request, Root root);
double linear_blocks_ns(const Facts& facts, const graph::Request& request, Root root);

// Reduce-scatter: block i of all members' `source`, combined, to member i's `target`, which may
// overlap `source`. Blocks lie end to end.

/// For commutative operators. Blocks of one length go in strips, if they are longer than
/// `strip_bytes`, which is a multiple of whole elements and cache lines.
void reduce_scatter_recursive_halving(graph::Builder& builder, const Team& team,
                                      const BlockMap& source, graph::Slice target,
                                      std::uint64_t strip_bytes);
double reduce_scatter_recursive_halving_ns(const Link& link, Rank count, std::uint64_t total,
                                           std::uint64_t longest);

/// The allgather's rounds from the last to the first. For commutative operators.
/// REQUIRES: disseminates(rounds, team.size()).
void reduce_scatter_n_way_dissemination(graph::Builder& builder, const Team& team,
                                        const MultiplyingSchedule& rounds, const BlockMap& source,
                                        graph::Slice target);
/// The cheapest rounds, and what they cost.
DisseminationRounds reduce_scatter_dissemination_rounds(const Link& link, Rank count,
                                                        std::uint64_t total, std::uint64_t longest);
double reduce_scatter_n_way_dissemination_ns(const Link& link, Rank count, std::uint64_t total,
                                             std::uint64_t longest);

/// For commutative operators.
void reduce_scatter_ring(graph::Builder& builder, const Team& team, const BlockMap& source,
                         graph::Slice target);
double reduce_scatter_ring_ns(const Link& link, Rank count, std::uint64_t longest);

/// Combines in the order of the members' indexes.
void reduce_scatter_pairwise(graph::Builder& builder, const Team& team, const BlockMap& source,
                             graph::Slice target);
double reduce_scatter_pairwise_ns(const Link& link, Rank count, std::uint64_t longest);

// What the pieces above share.

/// How many messages a member that talks to all others has under way: enough to hide latency, few
/// enough for the queues of a transport.
inline constexpr Rank kWindow = 16;

/// (index + distance) mod team.size(), for -size <= distance <= size.
inline Rank neighbour_index(const Team& team, Rank distance) {
    return static_cast<Rank>((std::int64_t{team.index()} + distance + team.size()) % team.size());
}

/// Orders messages into a window: each op of a step comes after all ops of `window` steps before.
class MessageWindow {
  public:
    explicit MessageWindow(Rank size) : steps_(static_cast<std::size_t>(size)) {}

    /// What the ops of the next step must come after.
    graph::Builder::After after() const { return steps_[next_]; }
    /// Ends the step.
    void push(std::vector<graph::OpId> ops) {
        steps_[next_] = std::move(ops);
        next_ = (next_ + 1) % steps_.size();
    }

  private:
    std::vector<std::vector<graph::OpId>> steps_;
    std::size_t next_ = 0;
};

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
