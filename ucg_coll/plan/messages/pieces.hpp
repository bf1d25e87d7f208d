// Pieces of algorithms: each appends the ops of one rank for one stage among a team. Flat
// algorithms are one piece over the whole group, two-level ones several over hosts and leaders.
//
// Every piece names members by their index in the team and comes with its price, the time of the
// slowest member. Every member must call a piece with the same team (but for its own index), root,
// lengths and parameters. Defined in the file of the algorithm that it is named after.
#pragma once

#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/parts/cost.hpp"
#include "ucg_coll/plan/parts/steps.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

// Barriers. `last` holds the ops after which this member has reached the point in question: what
// the piece does comes after them, and it leaves its own last ops there.

/// After it, every member knows that all have arrived. In round i members signal those at distances
/// j radix^i, 0 < j < radix.
void barrier_dissemination(graph::Builder& builder, const Team& team, unsigned radix, OpIds& last);
double barrier_dissemination_ns(const Link& link, Rank count, unsigned radix);
unsigned barrier_dissemination_radix(const Link& link, Rank count);

/// The same with a base for each round, a factor of `rounds`. REQUIRES: their product is the team's
/// size or more.
void barrier_n_way_dissemination(graph::Builder& builder, const Team& team,
                                 const MultiplyingSchedule& rounds, OpIds& last);

/// After it, member 0 knows that all have arrived.
void barrier_arrive(graph::Builder& builder, const Team& team, unsigned radix, OpIds& last);
/// After it, every member knows that member 0 has called it.
void barrier_release(graph::Builder& builder, const Team& team, unsigned radix, OpIds& last);
/// Either of them.
double barrier_tree_ns(const Link& link, Rank count, unsigned radix);
unsigned barrier_tree_radix(const Link& link, Rank count);
/// Both of them, one after the other, with the work of all members.
double barrier_there_and_back_once_ns(const Link& link, Rank count, unsigned radix);
double barrier_there_and_back_ns(const Facts& facts, const Link& link, Rank count);

// Broadcasts of the root's `data` to the others' `data`.

void bcast_knomial(graph::Builder& builder, const Team& team, Rank root, graph::Slice data,
                   unsigned radix);
double bcast_knomial_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix);
/// The same once, of what the root has had or has only just got.
double bcast_knomial_once_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix,
                             price::Source source);
unsigned bcast_knomial_radix(const Link& link, Rank count, std::uint64_t bytes);

/// From each member to the next, in segments.
void bcast_chain(graph::Builder& builder, const Team& team, Rank root, graph::Slice data,
                 std::uint64_t segment);
double bcast_chain_ns(const Link& link, Rank count, std::uint64_t bytes, std::uint64_t segment);
std::uint64_t bcast_chain_segment(const Link& link, Rank count, std::uint64_t bytes);

/// In blocks, over a circulant graph (circulant.hpp). `phases`: 1 or more, in each of which a
/// member receives a block in every round; one member takes any number.
void bcast_circulant(graph::Builder& builder, const Team& team, Rank root, graph::Slice data,
                     std::uint64_t phases);
double bcast_circulant_ns(const Link& link, Rank count, std::uint64_t bytes, std::uint64_t phases);
std::uint64_t bcast_circulant_phases(const Link& link, Rank count, std::uint64_t bytes);

// Reductions. All members combine in the order of their indexes, except where `commutative` says
// that another order will do. `target` is used at the root only, and may be `source` there.

void reduce_knomial(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                    graph::Slice target, Operator op, unsigned radix);
double reduce_knomial_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes, Operator op,
                         unsigned radix);
/// The same once, to member 0.
double reduce_knomial_once_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix);
unsigned reduce_knomial_radix(const Link& link, Rank count, std::uint64_t bytes);

/// Two pipelines, from the first and from the last member, meet at the root.
void reduce_chain(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                  graph::Slice target, std::uint64_t segment);
double reduce_chain_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes,
                       std::uint64_t segment);
std::uint64_t reduce_chain_segment(const Link& link, Rank count, Rank root, std::uint64_t bytes,
                                   Operator op);

/// In blocks, over a circulant graph, as bcast_circulant() backwards. REQUIRES: op.commutative.
void reduce_circulant(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                      graph::Slice target, Operator op, std::uint64_t phases);
double reduce_circulant_ns(const Link& link, Rank count, std::uint64_t bytes, std::uint64_t phases);
std::uint64_t reduce_circulant_phases(const Link& link, Rank count, std::uint64_t bytes,
                                      Operator op);

/// Reduce-scatter by recursive halving, then a gather.
void reduce_rabenseifner(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                         graph::Slice target, Operator op);
double reduce_rabenseifner_ns(const Link& link, Rank count, std::uint64_t bytes,
                              std::uint64_t element_bytes);

// Reductions to every member's `target`, which may be its `source`.

void allreduce_recursive_doubling(graph::Builder& builder, const Team& team, graph::Slice source,
                                  graph::Slice target);
double allreduce_recursive_doubling_ns(const Link& link, Rank count, std::uint64_t bytes);

/// Recursive doubling with 3-2 eliminations instead of a fold.
void allreduce_elimination(graph::Builder& builder, const Team& team, graph::Slice source,
                           graph::Slice target);
double allreduce_elimination_ns(const Link& link, Rank count, std::uint64_t bytes);

/// REQUIRES: op.commutative.
void allreduce_ring(graph::Builder& builder, const Team& team, graph::Slice source,
                    graph::Slice target, Operator op);
double allreduce_ring_ns(const Link& link, Rank count, std::uint64_t bytes);

/// Reduce-scatter by recursive halving, then allgather by recursive doubling.
void allreduce_rabenseifner(graph::Builder& builder, const Team& team, graph::Slice source,
                            graph::Slice target, Operator op);
double allreduce_rabenseifner_ns(const Link& link, Rank count, std::uint64_t bytes);

// Prefix reductions to each member's `target`, which may be its `source`, in the order of indexes.

void scan_recursive_doubling(graph::Builder& builder, const Team& team, graph::Slice source,
                             graph::Slice target);
double scan_recursive_doubling_ns(const Facts& facts, const Link& link, Rank count,
                                  std::uint64_t bytes);

/// Member 0 has no result.
void exscan_recursive_doubling(graph::Builder& builder, const Team& team, graph::Slice source,
                               graph::Slice target);
double exscan_recursive_doubling_ns(const Facts& facts, const Link& link, Rank count,
                                    std::uint64_t bytes);

} // namespace ucg::plan
