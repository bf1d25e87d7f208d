// Pieces that use flag slots, for a team of ranks of one host. Collectives of one host are made of
// them, and so are the phases on each host of collectives over several hosts. messages/pieces.hpp
// has the rules that all pieces share.
//
// REQUIRES, for all pieces: builder.flag_slots() was called on all ranks of the group. A rank
// shares only once in a collective. So at most two of these pieces can follow one another: one to a
// root, which shares nothing in it, and then one from that same root.
#pragma once

#include "ucg_coll/plan/flag_slots/flag_slots.hpp"
#include "ucg_coll/plan/parts/blocks.hpp"
#include "ucg_coll/plan/parts/steps.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// The two halves of a barrier, like barrier_arrive() and barrier_release(). After the first,
/// member 0 knows that all members have arrived. After the second, all members know that member 0
/// has called it.
void arrive_by_flag_slots(graph::Builder& builder, const Team& team, OpIds& last);
void release_by_flag_slots(graph::Builder& builder, const Team& team, OpIds& last);

void bcast_by_flag_slots(graph::Builder& builder, const Team& team, Rank root, graph::Slice data);
/// Combines the members' `source` in the order of their indexes. `target` is used at the root only,
/// and may be `source`.
void reduce_by_flag_slots(graph::Builder& builder, const Team& team, Rank root, graph::Slice source,
                          graph::Slice target);
/// Like gather_linear() and scatter_binomial().
void gather_by_flag_slots(graph::Builder& builder, const Team& team, Rank root, graph::Slice own,
                          const BlockMap& target);
void scatter_by_flag_slots(graph::Builder& builder, const Team& team, Rank root,
                           const BlockMap& source, graph::Slice own);

/// Prices for a team of `count` ranks with a processor for each: the time until the root has read
/// `bytes` of the flag slot of each other member, or until each other member has read `read_bytes`
/// of the `shared_bytes` on the root's. What is then done with the bytes is not included.
double to_root_by_flag_slots_ns(const Facts& facts, Rank count, std::uint64_t bytes,
                                Rank root = kNoRank);
double from_root_by_flag_slots_ns(const Facts& facts, Rank count, std::uint64_t shared_bytes,
                                  std::uint64_t read_bytes);

} // namespace ucg::plan
