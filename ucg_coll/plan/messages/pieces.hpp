// Pieces of algorithms: each appends the ops of one rank for one stage among a team. Flat
// algorithms are one piece over the whole group, two-level ones several over hosts and leaders.
//
// Every piece names members by their index in the team. Every member must call a piece with the
// same team (but for its own index), root, lengths and parameters. A piece is defined in the file
// of the algorithm that it is named after.
//
// For a piece NAME among `count` members, NAME_ns() returns its price: the time of the slowest
// member, in nanoseconds. NAME_radix(), NAME_segment() and NAME_phases() return the value of that
// parameter with the lowest price.
#pragma once

#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/parts/cost.hpp"
#include "ucg_coll/plan/parts/steps.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

// Barriers. `last` holds the ops after which this member's part begins: what the piece appends
// comes after them. The piece leaves its own last ops in `last`.

/// Makes every member know that all have arrived. In round i each member signals the members at
/// distances j radix^i, 0 < j < radix.
void barrier_dissemination(graph::Builder& builder, const Team& team, unsigned radix, OpIds& last);
double barrier_dissemination_ns(const Link& link, Rank count, unsigned radix);
unsigned barrier_dissemination_radix(const Link& link, Rank count);

/// Like barrier_dissemination(), but with a base of its own for each round: the factors in
/// `rounds`. REQUIRES: their product is the team's size or more.
void barrier_n_way_dissemination(graph::Builder& builder, const Team& team,
                                 const MultiplyingSchedule& rounds, OpIds& last);

/// Makes member 0 know that all have arrived. Signals go up a tree of that radix.
void barrier_arrive(graph::Builder& builder, const Team& team, unsigned radix, OpIds& last);
/// Makes every member know that member 0 has called it. Signals go down the same tree.
void barrier_release(graph::Builder& builder, const Team& team, unsigned radix, OpIds& last);
/// Returns the price of barrier_release(). That of barrier_arrive() is taken to be the same.
double barrier_tree_ns(const Link& link, Rank count, unsigned radix);
unsigned barrier_tree_radix(const Link& link, Rank count);
/// Returns the time of a way from member 0 down the tree and up again, along the slowest path.
double barrier_there_and_back_once_ns(const Link& link, Rank count, unsigned radix);
/// Returns the price of barrier_arrive() and then barrier_release() by the cheapest tree. Where
/// ranks share processors it includes the work of all members.
double barrier_there_and_back_ns(const Facts& facts, const Link& link, Rank count);

// Broadcasts of the root's `data` to the others' `data`.

void bcast_knomial(graph::Builder& builder, const Team& team, Rank root, graph::Slice data,
                   unsigned radix);
double bcast_knomial_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix);
/// Like bcast_knomial_ns(), but for a single call instead of several in a row. `source` says
/// whether the root has had the data for some time or has only just received or computed them.
double bcast_knomial_once_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix,
                             Source source);
unsigned bcast_knomial_radix(const Link& link, Rank count, std::uint64_t bytes);

/// Passes the data from each member to the next, in segments of `segment` bytes.
void bcast_chain(graph::Builder& builder, const Team& team, Rank root, graph::Slice data,
                 std::uint64_t segment);
double bcast_chain_ns(const Link& link, Rank count, std::uint64_t bytes, std::uint64_t segment);
std::uint64_t bcast_chain_segment(const Link& link, Rank count, std::uint64_t bytes);

/// Sends the data in blocks over a circulant graph (circulant.hpp). `phases` is 1 or more; in each
/// phase a member receives a block at most in every round. A team of one member ignores it.
void bcast_circulant(graph::Builder& builder, const Team& team, Rank root, graph::Slice data,
                     std::uint64_t phases);
double bcast_circulant_ns(const Link& link, Rank count, std::uint64_t bytes, std::uint64_t phases);
std::uint64_t bcast_circulant_phases(const Link& link, Rank count, std::uint64_t bytes);

// Reductions of all members' `source` to the root's `target`, which may be its `source`; other
// members' `target` is ignored. Operands are combined in the order of the members' indexes, except
// where `commutative` says that another order will do.

void reduce_knomial(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                    graph::Slice target, Operator op, unsigned radix);
double reduce_knomial_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes, Operator op,
                         unsigned radix);
/// Like reduce_knomial_ns(), but for a single call, and with member 0 as the root.
double reduce_knomial_once_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix);
unsigned reduce_knomial_radix(const Link& link, Rank count, std::uint64_t bytes);
unsigned reduce_knomial_once_radix(const Link& link, Rank count, std::uint64_t bytes);

/// Passes segments along two chains, from the first and from the last member, that meet at the
/// root.
void reduce_chain(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                  graph::Slice target, std::uint64_t segment);
double reduce_chain_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes,
                       std::uint64_t segment);
std::uint64_t reduce_chain_segment(const Link& link, Rank count, Rank root, std::uint64_t bytes,
                                   Operator op);

/// Combines in blocks over a circulant graph: bcast_circulant() run backwards.
/// REQUIRES: op.commutative.
void reduce_circulant(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                      graph::Slice target, Operator op, std::uint64_t phases);
double reduce_circulant_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op,
                           std::uint64_t phases);
std::uint64_t reduce_circulant_phases(const Link& link, Rank count, std::uint64_t bytes,
                                      Operator op);

/// Does a reduce-scatter by recursive halving, then a gather to the root.
void reduce_rabenseifner(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                         graph::Slice target, Operator op);
double reduce_rabenseifner_ns(const Link& link, Rank count, std::uint64_t bytes,
                              std::uint64_t element_bytes);
/// Like reduce_rabenseifner_ns(), but for a single call.
double reduce_rabenseifner_once_ns(const Link& link, Rank count, std::uint64_t bytes,
                                   std::uint64_t element_bytes);

// Reductions to every member's `target`, which may be its `source`.

void allreduce_recursive_doubling(graph::Builder& builder, const Team& team, graph::Slice source,
                                  graph::Slice target);
double allreduce_recursive_doubling_ns(const Link& link, Rank count, std::uint64_t bytes);

/// Does recursive doubling with 3-2 eliminations (elimination.hpp) instead of a fold (fold.hpp).
void allreduce_elimination(graph::Builder& builder, const Team& team, graph::Slice source,
                           graph::Slice target);
double allreduce_elimination_ns(const Link& link, Rank count, std::uint64_t bytes);

/// REQUIRES: op.commutative.
void allreduce_ring(graph::Builder& builder, const Team& team, graph::Slice source,
                    graph::Slice target, Operator op);
double allreduce_ring_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op);

/// Does a reduce-scatter by recursive halving, then an allgather by recursive doubling.
void allreduce_rabenseifner(graph::Builder& builder, const Team& team, graph::Slice source,
                            graph::Slice target, Operator op);
double allreduce_rabenseifner_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op);

// Prefix reductions to each member's `target`, which may be its `source`, in the order of indexes.

void scan_recursive_doubling(graph::Builder& builder, const Team& team, graph::Slice source,
                             graph::Slice target);
double scan_recursive_doubling_ns(const Facts& facts, const Link& link, Rank count,
                                  std::uint64_t bytes);

/// Leaves `target` of member 0, which has no result, as it is.
void exscan_recursive_doubling(graph::Builder& builder, const Team& team, graph::Slice source,
                               graph::Slice target);
double exscan_recursive_doubling_ns(const Facts& facts, const Link& link, Rank count,
                                    std::uint64_t bytes);

} // namespace ucg::plan
