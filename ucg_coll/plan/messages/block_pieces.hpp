// Pieces of the algorithms that move or combine one block per member: see pieces.hpp for the rules
// that all pieces share. Blocks are named by the index of the member in the team, wherever they
// lie. In prices, `total` is the length of all blocks together and `longest` that of the longest
// block, in bytes.
#pragma once

#include <array>

#include "ucg_coll/plan/messages/dissemination.hpp"
#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/parts/blocks.hpp"
#include "ucg_coll/plan/parts/needs.hpp"

namespace ucg::plan {

// Allgather: collects `own`, this member's block, and the blocks of all others in `target`. `own`
// may lie at its place in `target`. Blocks that a member has in `target` before, as `held` says,
// are not sent to it.

/// Returns how many blocks the member at `index` of a team of `count` has before the allgather: its
/// own and those that follow it. They end with the last member's block at the latest.
using BlocksHeld = Rank (*)(Rank index, Rank count);
/// A BlocksHeld for which each member has only its own block.
inline Rank holds_own(Rank, Rank) {
    return 1;
}

/// REQUIRES: team.size() is a power of two.
void allgather_recursive_doubling(graph::Builder& builder, const Team& team, graph::Slice own,
                                  const BlockMap& target, BlocksHeld held = holds_own);
double allgather_recursive_doubling_ns(const Link& link, Rank count, std::uint64_t block_bytes);

void allgather_bruck(graph::Builder& builder, const Team& team, graph::Slice own,
                     const BlockMap& target);
double allgather_bruck_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest);

/// Like allgather_bruck(), but with a base of its own for each round (dissemination.hpp).
/// REQUIRES: disseminates(rounds, team.size()).
void allgather_n_way_dissemination(graph::Builder& builder, const Team& team,
                                   const MultiplyingSchedule& rounds, graph::Slice own,
                                   const BlockMap& target, BlocksHeld held = holds_own);
/// Returns the cheapest rounds.
DisseminationRounds allgather_dissemination_rounds(const Link& link, Rank count,
                                                   std::uint64_t total, std::uint64_t longest);
double allgather_n_way_dissemination_ns(const Link& link, Rank count, std::uint64_t total,
                                        std::uint64_t longest, const DisseminationRounds& rounds);

void allgather_ring(graph::Builder& builder, const Team& team, graph::Slice own,
                    const BlockMap& target, BlocksHeld held = holds_own);
double allgather_ring_ns(const Link& link, Rank count, std::uint64_t longest);

// Alltoall: sends block i of `source` to member i, and receives block i of `target` from member i.
// The two overlap nowhere, except that this member's own block may lie in the same place in both.

/// For equal blocks of `block_bytes`.
void alltoall_bruck(graph::Builder& builder, const Team& team, const BlockMap& source,
                    const BlockMap& target, std::uint64_t block_bytes);
double alltoall_bruck_ns(const Link& link, Rank count, std::uint64_t block_bytes);

/// In step i each member sends to the member i above it and receives from the one i below it;
/// `window` steps are under way at a time. Only the two ends of a message need know its length.
void alltoall_rotated(graph::Builder& builder, const Team& team, const BlockMap& source,
                      const BlockMap& target, Rank window);
/// Does an alltoall in place. In step i partners are the members whose indexes add up to i, modulo
/// the team's size, so that a block leaves when the one for its place arrives. Scratch holds one
/// block for each step of the window.
void alltoall_in_place(graph::Builder& builder, const Team& team, const BlockMap& blocks,
                       Rank window);
/// Returns the price of alltoall_rotated(), which stands for that of alltoall_in_place(), too.
double alltoall_rotated_ns(const Link& link, Rank count, std::uint64_t block_bytes, Rank window);

// Gather: sends each member's `own` to its block of `target` at the root, where the root's `own`
// may lie already. Other members use only the lengths in `target`.

void gather_binomial(graph::Builder& builder, const Team& team, Rank root, graph::Slice own,
                     const BlockMap& target);

/// Members other than the root ignore `target`.
void gather_linear(graph::Builder& builder, const Team& team, Rank root, graph::Slice own,
                   const BlockMap& target);

// Scatter: sends each block of the root's `source` to its member's `own`, which is empty at a root
// that keeps its block where it is. Other members use only the lengths in `source`.

void scatter_binomial(graph::Builder& builder, const Team& team, Rank root, const BlockMap& source,
                      graph::Slice own);

/// Members other than the root ignore `source`.
void scatter_linear(graph::Builder& builder, const Team& team, Rank root, const BlockMap& source,
                    graph::Slice own);

// The prices that gathers (Root::receives) and scatters (Root::sends) share. Those with a link are
// of a team, for which Link::root_blocks_ns() is the price of a linear one; those with facts are of
// all ranks, which may share processors.

double binomial_blocks_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root);
/// Like binomial_blocks_ns(), but for a single call.
double binomial_blocks_once_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root);
double binomial_blocks_ns(const Facts& facts, const graph::Request& request, Root root);
double linear_blocks_ns(const Facts& facts, const graph::Request& request, Root root);

// Reduce-scatter: combines block i of all members' `source` to member i's `target`, which may
// overlap `source`. Blocks lie end to end.

/// For commutative operators. In the last round, two blocks of equal length that are longer than
/// `segment_bytes` are exchanged in segments of that length, which is then a multiple of whole
/// elements and cache lines.
void reduce_scatter_recursive_halving(graph::Builder& builder, const Team& team,
                                      const BlockMap& source, graph::Slice target,
                                      std::uint64_t segment_bytes);
double reduce_scatter_recursive_halving_ns(const Link& link, Rank count, std::uint64_t total,
                                           std::uint64_t longest);

/// Runs the rounds of allgather_n_way_dissemination() from the last to the first. For commutative
/// operators.
/// REQUIRES: disseminates(rounds, team.size()).
void reduce_scatter_n_way_dissemination(graph::Builder& builder, const Team& team,
                                        const MultiplyingSchedule& rounds, const BlockMap& source,
                                        graph::Slice target);
/// Returns the cheapest rounds.
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

/// Number of messages that a member which talks to all others has under way at a time: enough to
/// hide latency, few enough for the queues of a transport.
inline constexpr Rank kWindow = 16;

/// Limits how many steps are under way: the ops of a step come after all ops of the step that is
/// `size` steps before it.
class MessageWindow {
  public:
    explicit MessageWindow(Rank size) : steps_(static_cast<std::size_t>(size)) {}

    /// The ops after which those of the next step must come.
    graph::Builder::After after() const { return steps_[next_]; }
    /// Ends the step that consists of `ops`.
    void push(std::vector<graph::OpId> ops) {
        steps_[next_] = std::move(ops);
        next_ = (next_ + 1) % steps_.size();
    }

  private:
    std::vector<std::vector<graph::OpId>> steps_;
    std::size_t next_ = 0;
};

/// Needs of the rows of reduce-scatters that combine operands in another order than that of ranks.
inline constexpr std::array kReduceScatterAnyOrder = {
    Need{kCommutative.what, [](const Facts&, const graph::Request& request) {
             return request.commutative || request.rank_count == 1;
         }}};

} // namespace ucg::plan
