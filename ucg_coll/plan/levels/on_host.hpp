// What the ranks of each host do among themselves in a two-level algorithm: by messages, by flag
// slots, by flag slots over the levels of the host, or out of one another's memory, whichever of
// those that take it costs least on the fullest host, and so on all of them. To be called on all
// ranks alike, those that are alone on their host among them: a collective takes a turn of the flag
// slots, and has staging buffers, on all ranks or on none. Prices are those of the fullest host.
#pragma once

#include "ucg_coll/plan/levels/host_blocks.hpp"
#include "ucg_coll/plan/levels/two_level.hpp"
#include "ucg_coll/plan/messages/block_best.hpp"

namespace ucg::plan {

/// Barriers: the leader, which is the first, knows that all have arrived; all know that it has
/// called release_on_host().
void arrive_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                    OpIds& last);
void release_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                     OpIds& last);
/// Both.
double barrier_on_host_ns(const Facts& facts);

/// Vectors that ranks may publish, from the start of their inputs or outputs, where all ranks know
/// which.
struct Published {
    graph::Slice vector;             ///< As if it were the own one.
    std::uint64_t element_bytes = 0; ///< Of the request; 0: there are no such vectors.
};
/// Have ranks that do not lead shared what all of their host read? Then only leaders may share
/// after that; flag slots over levels leave those that pass on results their share.
enum class FlagSlots : std::uint8_t { unused, used };
/// By reduce_on_host() and gather_on_host().
FlagSlots used_to_reduce(const Facts& facts, std::uint64_t bytes, Operator op,
                         std::uint64_t element_bytes);
FlagSlots used_to_gather(const Facts& facts, std::uint64_t block_bytes);

/// From the leader. `published` holds at the leader what `data` is there; its other ranks read into
/// their outputs.
void bcast_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                   graph::Slice data, const Published& published = {},
                   FlagSlots flag_slots = FlagSlots::unused);
double bcast_on_host_ns(const Facts& facts, std::uint64_t bytes, std::uint64_t element_bytes = 0,
                        FlagSlots flag_slots = FlagSlots::unused);

/// To the leader: what the host's vectors are together, in its scratch, or `source` where there is
/// but one. Of no use elsewhere. `published`: what `source` is at ranks that do not lead. To be
/// called before scratch is taken.
graph::Slice reduce_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                            graph::Slice source, Operator op, const Published& published = {});
/// `leader`: its index, where that is not the first.
double reduce_on_host_ns(const Facts& facts, Rank leader, std::uint64_t bytes, Operator op,
                         std::uint64_t element_bytes = 0);

/// As gather_best() and scatter_best(), to and from the leader.
void gather_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                    graph::Slice own, const BlockMap& target, std::uint64_t block_bytes);
double gather_on_host_ns(const Facts& facts, std::uint64_t block_bytes);
void scatter_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                     const BlockMap& source, graph::Slice own, std::uint64_t block_bytes);
double scatter_on_host_ns(const Facts& facts, std::uint64_t block_bytes);

} // namespace ucg::plan
