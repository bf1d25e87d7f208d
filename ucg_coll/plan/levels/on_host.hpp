// The stages of a two-level algorithm among the ranks of each host. A stage goes by messages, by
// flag slots, by flag slots over the levels of the host, or by reading one another's memory. Of the
// ways that can serve it, all hosts take the one that costs least on the fullest host. All ranks
// must call these functions alike, also those that are alone on their host, since a collective uses
// the flag slots, and has staging buffers, on all ranks or on none. Prices are those of the fullest
// host, in nanoseconds.
#pragma once

#include "ucg_coll/plan/levels/host_blocks.hpp"
#include "ucg_coll/plan/levels/two_level.hpp"
#include "ucg_coll/plan/messages/block_best.hpp"

namespace ucg::plan {

/// The two halves of a barrier: arrive_on_host() makes the leader, which must be the first rank of
/// its host, know that all have arrived; release_on_host() makes all know that the leader has
/// called it. `last` is as in the barriers of messages/pieces.hpp.
void arrive_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                    OpIds& last);
void release_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                     OpIds& last);
/// Returns the price of both halves.
double barrier_on_host_ns(const Facts& facts);

/// Vectors that ranks may publish. They begin where ranks' inputs or outputs begin, and all ranks
/// know in which of the two.
struct Published {
    graph::Slice vector;             ///< A peer's vector, named as if it were this rank's own.
    std::uint64_t element_bytes = 0; ///< Length of an element; 0: ranks publish no such vectors.
};
/// Whether ranks that do not lead have shared in an earlier stage. A rank shares only once in a
/// collective; so if they have, only leaders may share in later stages, which rules out flag slots
/// over the levels of a host. An earlier stage by flag slots over levels counts as unused, since it
/// leaves the ranks that pass on results their share.
enum class FlagSlotState : std::uint8_t { unused, used };
/// Return whether reduce_on_host() or gather_on_host() uses flag slots in this sense.
FlagSlotState used_to_reduce(const Facts& facts, std::uint64_t bytes, Operator op,
                             std::uint64_t element_bytes);
FlagSlotState used_to_gather(const Facts& facts, std::uint64_t block_bytes);

/// Broadcasts the leader's `data` to the `data` of its host's ranks. `published` names the leader's
/// vector; ranks that read it have their `data` in their outputs.
void bcast_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                   graph::Slice data, const Published& published = {},
                   FlagSlotState flag_slots = FlagSlotState::unused);
double bcast_on_host_ns(const Facts& facts, std::uint64_t bytes, std::uint64_t element_bytes = 0,
                        FlagSlotState flag_slots = FlagSlotState::unused);

/// Combines the vectors of the host's ranks at the leader. Returns the result there: a slice of
/// scratch, or `source` if the rank is alone on its host. What other ranks get is of no use.
/// `published` names `source` of ranks that do not lead. To be called before any scratch is taken.
graph::Slice reduce_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                            graph::Slice source, Operator op, const Published& published = {});
/// `leader` is the leader's index among the ranks of its host.
double reduce_on_host_ns(const Facts& facts, Rank leader, std::uint64_t bytes, Operator op,
                         std::uint64_t element_bytes = 0);

/// Like gather_best() and scatter_best() among the host's ranks, with the leader as the root.
void gather_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                    graph::Slice own, const BlockMap& target, std::uint64_t block_bytes);
double gather_on_host_ns(const Facts& facts, std::uint64_t block_bytes);
void scatter_on_host(graph::Builder& builder, const Facts& facts, const TwoLevels& levels,
                     const BlockMap& source, graph::Slice own, std::uint64_t block_bytes);
double scatter_on_host_ns(const Facts& facts, std::uint64_t block_bytes);

} // namespace ucg::plan
