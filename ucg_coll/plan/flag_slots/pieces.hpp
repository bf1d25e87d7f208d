// Pieces by flag slots, for a team of ranks of one host: what collectives of that host are made of,
// and the phases on each host of those over several. See messages/pieces.hpp for the rules that all
// pieces share.
//
// REQUIRES, of all: builder.flag_slots() was called on all ranks of the group. A rank shares once
// in a collective, so of these pieces only two can follow one another: one to a root, who shares
// nothing then, and one from that same root.
#pragma once

#include "ucg_coll/plan/flag_slots/flag_slots.hpp"
#include "ucg_coll/plan/parts/blocks.hpp"
#include "ucg_coll/plan/parts/steps.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// Barriers, as barrier_arrive() and barrier_release(): member 0 knows that all have arrived; all
/// know that member 0 has called it.
void arrive_by_flag_slots(graph::Builder& builder, const Team& team, OpIds& last);
void release_by_flag_slots(graph::Builder& builder, const Team& team, OpIds& last);

void bcast_by_flag_slots(graph::Builder& builder, const Team& team, Rank root, graph::Slice data);
/// In the order of the members' indexes. `target` is used at the root only, and may be `source`.
void reduce_by_flag_slots(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                          graph::Slice target);
/// As gather_linear() and scatter_binomial().
void gather_by_flag_slots(graph::Builder& builder, const Team& team, Rank root, graph::Slice own,
                          const BlockMap& target);
void scatter_by_flag_slots(graph::Builder& builder, const Team& team, Rank root,
                           const BlockMap& source, graph::Slice own);

/// Prices, of a team of `count` with a processor for each: the root reads `bytes` of each of the
/// others, or each of them `read_bytes` of `shared_bytes` of the root's. Without what is done with
/// them.
double to_root_by_flag_slots_ns(const Facts& facts, Rank count, std::uint64_t bytes);
double from_root_by_flag_slots_ns(const Facts& facts, Rank count, std::uint64_t shared_bytes,
                                  std::uint64_t read_bytes);

} // namespace ucg::plan
