// The cheapest piece that moves or combines one block per member of a team: what the stages of
// composed algorithms take, of which whole vectors are blocks, and of two-level ones.
//
// Where the price of an algorithm is asked for under several links, as oversubscription.hpp does,
// the piece is chosen once, by the link that all ranks know, and priced under the others.
#pragma once

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"

namespace ucg::plan {

/// By which piece an allgather goes: around the ring, else by dissemination in these rounds.
struct AllgatherChoice {
    bool ring = false;
    DisseminationRounds rounds;
};
AllgatherChoice allgather_choice(const Link& link, Rank count, std::uint64_t total,
                                 std::uint64_t longest);
double allgather_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest,
                    const AllgatherChoice& choice);
void allgather(graph::Builder& builder, const Team& team, const AllgatherChoice& choice,
               graph::Slice own, const BlockMap& target, BlocksHeld held = holds_own);
/// How many messages a member sends at most.
Rank allgather_sends(Rank count, const AllgatherChoice& choice);

void allgather_best(graph::Builder& builder, const Team& team, const Link& link, graph::Slice own,
                    const BlockMap& target);
double allgather_best_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest);

/// By which piece a reduce-scatter goes; a dissemination in these rounds.
struct ReduceScatterChoice {
    enum class Piece : std::uint8_t { halving, dissemination, ring, pairwise };
    Piece piece = Piece::pairwise;
    DisseminationRounds rounds;
};
/// Operators that do not commute see the members' operands in order.
ReduceScatterChoice reduce_scatter_choice(const Link& link, Rank count, std::uint64_t total,
                                          std::uint64_t longest, Operator op);
double reduce_scatter_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest,
                         const ReduceScatterChoice& choice);
void reduce_scatter(graph::Builder& builder, const Team& team, const ReduceScatterChoice& choice,
                    const BlockMap& source, graph::Slice target);

void reduce_scatter_best(graph::Builder& builder, const Team& team, const Link& link,
                         const BlockMap& source, graph::Slice target, Operator op);
double reduce_scatter_best_ns(const Link& link, Rank count, std::uint64_t total,
                              std::uint64_t longest, Operator op);

/// By which piece blocks go to or from a root.
enum class RootedPiece : std::uint8_t { linear, binomial };
/// `block_bytes`: the longest block, which all members know.
RootedPiece rooted_choice(const Link& link, Rank count, std::uint64_t block_bytes, Root root);
double rooted_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root,
                 RootedPiece piece);
void gather(graph::Builder& builder, const Team& team, RootedPiece piece, Rank root,
            graph::Slice own, const BlockMap& target);

void gather_best(graph::Builder& builder, const Team& team, const Link& link, Rank root,
                 graph::Slice own, const BlockMap& target, std::uint64_t block_bytes);
double gather_best_ns(const Link& link, Rank count, std::uint64_t block_bytes);

void scatter_best(graph::Builder& builder, const Team& team, const Link& link, Rank root,
                  const BlockMap& source, graph::Slice own, std::uint64_t block_bytes);
double scatter_best_ns(const Link& link, Rank count, std::uint64_t block_bytes);

// Whole vectors, as blocks of the members.

/// The longest block of a vector of `bytes`, which is cut in whole elements.
inline std::uint64_t longest_cut(Rank count, std::uint64_t bytes, Operator op) {
    return BlockMap::cut_bytes(bytes, count, op.element_bytes);
}

/// The blocks of a broadcast, the first for the root, at index 0 of the team; and the longest.
BlockMap bcast_blocks(const Team& from_root, graph::Slice data);
std::uint64_t bcast_block_bytes(Rank count, std::uint64_t bytes);
/// The second half of a broadcast by blocks: each member has its own, and the root all of them.
void bcast_allgather(graph::Builder& builder, const Team& from_root, const BlockMap& blocks,
                     const AllgatherChoice& choice, BlocksHeld held);
AllgatherChoice bcast_allgather_choice(const Link& link, Rank count, std::uint64_t bytes);
double bcast_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                          const AllgatherChoice& choice);
/// That choice among all ranks, and what it costs where they share processors or not.
AllgatherChoice bcast_allgather_choice(const Facts& facts, const graph::Request& request);
double bcast_allgather_ns(const Facts& facts, const graph::Request& request);
/// Both halves. One of two ranks, or of those of whose blocks all but the root's are empty, waits
/// for none that is scattered before it sends: then the second half begins when the root has had
/// `begun_ns` of the first.
double after_scatter_ns(Rank count, std::uint64_t bytes, double scatter_ns, double begun_ns,
                        double allgather_ns);
/// A BlocksHeld: the root has all blocks, each of the others its own.
Rank held_by_root(Rank index, Rank count);

/// The pieces by which a broadcast scatters blocks and gathers them to all.
struct BcastChoices {
    RootedPiece scatter = RootedPiece::binomial;
    AllgatherChoice allgather;
};
void bcast_scatter_allgather(graph::Builder& builder, const Team& team, Rank root,
                             graph::Slice data, const BcastChoices& choices);
double bcast_scatter_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                                  const BcastChoices& choices);
BcastChoices bcast_choices(const Link& link, Rank count, std::uint64_t bytes);

struct BlockChoices {
    ReduceScatterChoice reduce_scatter;
    AllgatherChoice allgather;
};
/// To every member's `target`, which may be its `source`. All combine alike.
void allreduce_reduce_scatter_allgather(graph::Builder& builder, const Team& team,
                                        graph::Slice source, graph::Slice target, Operator op,
                                        const BlockChoices& choices);
double allreduce_reduce_scatter_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                                             Operator op, const BlockChoices& choices);
BlockChoices allreduce_reduce_scatter_allgather_choices(const Link& link, Rank count,
                                                        std::uint64_t bytes, Operator op);

struct ReduceBlockChoices {
    ReduceScatterChoice reduce_scatter;
    RootedPiece gather = RootedPiece::linear;
};
/// To the root's `target`, which may be its `source` and is looked at nowhere else.
void reduce_scatter_gather(graph::Builder& builder, const Team& team, Rank root,
                           graph::Slice source, graph::Slice target, Operator op,
                           const ReduceBlockChoices& choices);
double reduce_scatter_gather_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op,
                                const ReduceBlockChoices& choices);
ReduceBlockChoices reduce_scatter_gather_choices(const Link& link, Rank count, std::uint64_t bytes,
                                                 Operator op);

} // namespace ucg::plan
