// What the ranks of each host do among themselves in a two-level algorithm: by messages, or by
// boards where these take it and cost less, on the fullest host and so on all of them. To be called
// on all ranks alike, those that are alone on their host among them: a collective takes a turn of
// the boards on all ranks or on none. Prices are those of the fullest host.
#pragma once

#include "ucg_coll/plan/levels/block_best.hpp"
#include "ucg_coll/plan/levels/two_level.hpp"

namespace ucg::plan {

/// Barriers: the leader, which is the first, knows that all have arrived; all know that it has
/// called release_on_host().
void arrive_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                    OpIds& last);
void release_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                     OpIds& last);
/// Both.
double barrier_on_host_ns(const Facts& facts);

/// From the leader.
void bcast_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                   graph::Slice data);
double bcast_on_host_ns(const Facts& facts, std::uint64_t bytes);

/// To the leader: what the host's vectors are together, in its scratch, or `source` where there is
/// but one. Of no use elsewhere.
graph::Slice reduce_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                            graph::Slice source, Operator op);
/// `leader`: its index, where that is not the first.
double reduce_on_host_ns(const Facts& facts, Rank leader, std::uint64_t bytes, Operator op);

/// As gather_best() and scatter_best(), to and from the leader.
void gather_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                    graph::Slice own, const BlockMap& target, std::uint64_t block_bytes);
double gather_on_host_ns(const Facts& facts, std::uint64_t block_bytes);
void scatter_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                     const BlockMap& source, graph::Slice own, std::uint64_t block_bytes);
double scatter_on_host_ns(const Facts& facts, std::uint64_t block_bytes);

} // namespace ucg::plan
