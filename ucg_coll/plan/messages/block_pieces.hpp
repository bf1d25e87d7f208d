// Pieces of the algorithms that move or combine one block per member: see pieces.hpp for the rules
// that all pieces share. Blocks are named by the index of the member in the team, wherever they
// lie.
#pragma once

#include <array>

#include "ucg_coll/plan/messages/dissemination.hpp"
#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/parts/blocks.hpp"
#include "ucg_coll/plan/parts/needs.hpp"

namespace ucg::plan {

// Allgather: `own`, this member's block, and those of all others to `target`. `own` may be its
// place in `target`. Blocks that a member has in `target` already are not sent to it.

/// How many blocks the member at an index has before, of a team of `count`: its own and those
/// after it, none of them behind the last but at index 0.
using BlocksHeld = Rank (*)(Rank index, Rank count);
/// The own one.
inline Rank holds_own(Rank, Rank) {
    return 1;
}

/// REQUIRES: team.size() is a power of two.
void allgather_recursive_doubling(graph::Builder& builder, const Team& team, graph::Slice own,
                                  const BlockMap& target, BlocksHeld held = holds_own);
double allgather_recursive_doubling_ns(const Link& link, Rank count, std::uint64_t block_bytes);

void allgather_bruck(graph::Builder& builder, const Team& team, graph::Slice own,
                     const BlockMap& target);
/// `total` is the length of all blocks together, `longest` that of the longest.
double allgather_bruck_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest);

/// Bruck's with a base for each round. REQUIRES: disseminates(rounds, team.size()).
void allgather_n_way_dissemination(graph::Builder& builder, const Team& team,
                                   const MultiplyingSchedule& rounds, graph::Slice own,
                                   const BlockMap& target, BlocksHeld held = holds_own);
/// The cheapest rounds, and what rounds cost.
DisseminationRounds allgather_dissemination_rounds(const Link& link, Rank count,
                                                   std::uint64_t total, std::uint64_t longest);
double allgather_n_way_dissemination_ns(const Link& link, Rank count, std::uint64_t total,
                                        std::uint64_t longest, const DisseminationRounds& rounds);

void allgather_ring(graph::Builder& builder, const Team& team, graph::Slice own,
                    const BlockMap& target, BlocksHeld held = holds_own);
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

/// For commutative operators. Blocks of one length go in segments, if they are longer than
/// `segment_bytes`, which is a multiple of whole elements and cache lines.
void reduce_scatter_recursive_halving(graph::Builder& builder, const Team& team,
                                      const BlockMap& source, graph::Slice target,
                                      std::uint64_t segment_bytes);
double reduce_scatter_recursive_halving_ns(const Link& link, Rank count, std::uint64_t total,
                                           std::uint64_t longest);

/// The allgather's rounds from the last to the first. For commutative operators.
/// REQUIRES: disseminates(rounds, team.size()).
void reduce_scatter_n_way_dissemination(graph::Builder& builder, const Team& team,
                                        const MultiplyingSchedule& rounds, const BlockMap& source,
                                        graph::Slice target);
/// The cheapest rounds, and what rounds cost.
DisseminationRounds reduce_scatter_dissemination_rounds(const Link& link, Rank count,
                                                        std::uint64_t total, std::uint64_t longest);
double reduce_scatter_n_way_dissemination_ns(const Link& link, Rank count, std::uint64_t total,
                                             std::uint64_t longest,
                                             const DisseminationRounds& rounds);

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

/// Of rows that combine operands in an order of their own.
inline constexpr std::array kReduceScatterAnyOrder = {
    Need{kCommutative.what, [](const Facts&, const graph::Request& request) {
             return request.commutative || request.rank_count == 1;
         }}};

} // namespace ucg::plan
