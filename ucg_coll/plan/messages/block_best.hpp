// The cheapest pieces that move or combine one block per member of a team. They are the stages of
// two-level algorithms, and of algorithms that cut a whole vector into blocks.
//
// Each NAME_best() appends the piece with the lowest price, and NAME_best_ns() returns that price.
// Where an algorithm is priced under several links, as oversubscription.hpp does, the piece is
// chosen once, under the link that all ranks know, by NAME_choice(), and then priced under the
// others. Prices are in nanoseconds; `total` is the length of all blocks together and `longest`
// that of the longest block, in bytes.
#pragma once

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"

namespace ucg::plan {

/// The piece for an allgather: a ring, or else a dissemination in these rounds (recursive doubling
/// if all their bases are 2 and the members are a power of two).
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
/// Like allgather_ns(), but for blocks that the members have only just combined, each its own one
/// where it belongs.
double allgather_combined_ns(const Link& link, Rank count, std::uint64_t total,
                             std::uint64_t longest, const AllgatherChoice& choice);
/// Returns the greatest number of messages that a member sends.
Rank allgather_sends(Rank count, const AllgatherChoice& choice);

void allgather_best(graph::Builder& builder, const Team& team, const Link& link, graph::Slice own,
                    const BlockMap& target);
double allgather_best_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest);

/// The piece by which blocks go to a root (gather) or from a root (scatter).
enum class RootedPiece : std::uint8_t { linear, binomial };

/// The pieces of a reduce-scatter that reduces all blocks to member 0, which then scatters them.
struct ReduceThenScatter {
    bool by_halving = false; ///< Rabenseifner's reduction; else a k-nomial tree of this radix.
    unsigned radix = kRadixMin;
    RootedPiece scatter = RootedPiece::linear;
    Operator op = {};
};
ReduceThenScatter reduce_then_scatter_choice(const Link& link, Rank count, std::uint64_t total,
                                             std::uint64_t longest, Operator op);
double reduce_then_scatter_ns(const Link& link, Rank count, std::uint64_t total,
                              std::uint64_t longest, const ReduceThenScatter& choices);
/// Combines in the order of the members' indexes.
void reduce_then_scatter(graph::Builder& builder, const Team& team,
                         const ReduceThenScatter& choices, const BlockMap& source,
                         graph::Slice target);

/// The piece for a reduce-scatter, with what single pieces need: the rounds of a dissemination, and
/// the pieces of a reduction with a scatter.
struct ReduceScatterChoice {
    enum class Piece : std::uint8_t { halving, dissemination, ring, pairwise, reduce_then_scatter };
    Piece piece = Piece::pairwise;
    DisseminationRounds rounds;
    ReduceThenScatter through_root = {};
};
/// Returns the cheapest piece. An operator that does not commute gets one (pairwise, or a reduction
/// with a scatter) that combines the members' operands in order; one that commutes does not get the
/// latter.
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

/// Returns the cheaper piece. `block_bytes`: the length of the longest block, which all members
/// know. `root` tells gather (receives) from scatter (sends).
RootedPiece rooted_choice(const Link& link, Rank count, std::uint64_t block_bytes, Root root);
double rooted_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root,
                 RootedPiece piece);
/// Like rooted_ns(), but for a single call.
double rooted_once_ns(const Link& link, Rank count, std::uint64_t block_bytes, Root root,
                      RootedPiece piece);
void gather(graph::Builder& builder, const Team& team, RootedPiece piece, Rank root,
            graph::Slice own, const BlockMap& target);
/// Returns the time of a gather of blocks that the members have only just combined, the root its
/// own one where it belongs.
double gather_combined_ns(const Link& link, Rank count, std::uint64_t block, RootedPiece piece);

void gather_best(graph::Builder& builder, const Team& team, const Link& link, Rank root,
                 graph::Slice own, const BlockMap& target, std::uint64_t block_bytes);
double gather_best_ns(const Link& link, Rank count, std::uint64_t block_bytes);

void scatter(graph::Builder& builder, const Team& team, RootedPiece piece, Rank root,
             const BlockMap& source, graph::Slice own);
void scatter_best(graph::Builder& builder, const Team& team, const Link& link, Rank root,
                  const BlockMap& source, graph::Slice own, std::uint64_t block_bytes);
double scatter_best_ns(const Link& link, Rank count, std::uint64_t block_bytes);

// Algorithms for whole vectors, which are cut into one block per member.

/// Returns the length of the longest block of a vector of `bytes` that is cut into `count` blocks
/// of whole elements.
inline std::uint64_t longest_cut(Rank count, std::uint64_t bytes, Operator op) {
    return BlockMap::cut_bytes(bytes, count, op.element_bytes);
}

/// Returns the blocks into which a broadcast cuts `data`. The root is at index 0 of `from_root`,
/// and the first block is for it.
BlockMap bcast_blocks(const Team& from_root, graph::Slice data);
/// Returns the length of the longest of these blocks for a vector of `bytes`.
std::uint64_t bcast_block_bytes(Rank count, std::uint64_t bytes);
/// Appends the second half of a broadcast by blocks, an allgather. Each member has its own block
/// before, the root all of them; `held` says which others a member has.
void bcast_allgather(graph::Builder& builder, const Team& from_root, const BlockMap& blocks,
                     const AllgatherChoice& choice, BlocksHeld held);
AllgatherChoice bcast_allgather_choice(const Link& link, Rank count, std::uint64_t bytes);
double bcast_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                          const AllgatherChoice& choice);
/// Return that choice, and its price, among all ranks, which may share processors.
AllgatherChoice bcast_allgather_choice(const Facts& facts, const graph::Request& request);
double bcast_allgather_ns(const Facts& facts, const graph::Request& request);
/// Returns the price of both halves of a broadcast by blocks, given that of each. The second half
/// begins when the first ends; but with two ranks, or where all blocks but the root's are empty, no
/// rank waits for a scattered block before it sends, so that the second half begins once the root
/// has spent `begun_ns` on the first.
double after_scatter_ns(Rank count, std::uint64_t bytes, double scatter_ns, double begun_ns,
                        double allgather_ns);
/// A BlocksHeld for which the root, at index 0, has all blocks and each other member its own.
Rank held_by_root(Rank index, Rank count);

/// The pieces by which a broadcast scatters blocks and then gathers them to all members.
struct BcastChoices {
    RootedPiece scatter = RootedPiece::binomial;
    AllgatherChoice allgather;
};
void bcast_scatter_allgather(graph::Builder& builder, const Team& team, Rank root,
                             graph::Slice data, const BcastChoices& choices);
double bcast_scatter_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                                  const BcastChoices& choices);
BcastChoices bcast_choices(const Link& link, Rank count, std::uint64_t bytes);

/// The pieces of an allreduce that is a reduce-scatter and then an allgather.
struct BlockChoices {
    ReduceScatterChoice reduce_scatter;
    AllgatherChoice allgather;
};
/// Reduces to every member's `target`, which may be its `source`. Each block is combined by one
/// member alone, so that all members get the same bits.
void allreduce_reduce_scatter_allgather(graph::Builder& builder, const Team& team,
                                        graph::Slice source, graph::Slice target, Operator op,
                                        const BlockChoices& choices);
double allreduce_reduce_scatter_allgather_ns(const Link& link, Rank count, std::uint64_t bytes,
                                             Operator op, const BlockChoices& choices);
BlockChoices allreduce_reduce_scatter_allgather_choices(const Link& link, Rank count,
                                                        std::uint64_t bytes, Operator op);

/// The pieces of a reduction that is a reduce-scatter and then a gather to the root.
struct ReduceBlockChoices {
    ReduceScatterChoice reduce_scatter;
    RootedPiece gather = RootedPiece::linear;
};
/// Reduces to the root's `target`, which may be its `source`. Other members' `target` is ignored.
void reduce_scatter_gather(graph::Builder& builder, const Team& team, Rank root,
                           graph::Slice source, graph::Slice target, Operator op,
                           const ReduceBlockChoices& choices);
double reduce_scatter_gather_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op,
                                const ReduceBlockChoices& choices);
ReduceBlockChoices reduce_scatter_gather_choices(const Link& link, Rank count, std::uint64_t bytes,
                                                 Operator op);

} // namespace ucg::plan
