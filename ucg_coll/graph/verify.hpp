// Proves schedules of all ranks together, symbolically: no data, no transport, no time.
//
// What is proved:
//   shape     dependencies point backwards, slices lie in their buffers, reductions cut at
//             elements, the input is never written, peers and owners are in range, owners of
//             slices that peers name, and who names them, expose their buffers
//   matching  the k-th send from a to b meets the k-th recv at b from a, of equal length; likewise
//             signals and awaits; nothing is left over
//   progress  no cycle under in-order issue with synchronous sends, hence no deadlock under any
//             arrival order or buffering
//   order     no two unordered accesses to one byte of which one writes (happens-before over
//             dependencies, messages and signals; the issue order alone orders nothing); a peer's
//             slice is touched only when the peer is known to have entered, and has not left
//   help      where ranks help one another, the units that one may do for another are independent:
//             any rank may do any of them at any time between the start and the end of the
//             collective at the ranks that the unit names
//   network   where one is given: messages that pass one link in the same direction follow one
//             another, in as many rows as the link carries messages at a time
//   memory    what is reduced or copied to an output was written before; what only travels, by
//             messages, shares and copies between scratch, may have gaps that nobody reads; every
//             byte of the output that the collective defines is written exactly once (at most once
//             where in-place input already is the result)
//   meaning   every contribution reaches its result exactly once; an allreduce's results are the
//             same expression on every rank; non-commutative operators see their operands in rank
//             order; no rank leaves a barrier before all have entered
#pragma once

#include <span>

#include "ucg_coll/graph/collective.hpp"
#include "ucg_coll/graph/network.hpp"
#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// Returns whether two ranks may name each other's slices.
using SharesMemory = bool (*)(Rank a, Rank b, const void* context);

/// Proves `schedules` (one per rank, in rank order) against `requests` (likewise, or a single one
/// that holds for every rank). Repeats are written out first, so segments should be few.
///
/// What is shared on flag slots is proved as the messages that it stands for (flag_slots.hpp), with
/// sends that wait for their receives, which a share does not.
///
/// Schedules that publish are proved twice: with all buffers reached in place, and with staging
/// buffers.
///
/// `shares_memory` says, with `context`, which ranks may name each other's slices; without it, none
/// may.
///
/// With a `network`, which is not owned, messages must not meet on it: of two messages with bytes
/// that pass the same edge, one starts to be sent after the other has been sent or received. Where
/// n = network->at_once messages may pass an edge at once, two of any n + 1 are ordered in this
/// way. Signals and empty messages may meet any others.
///
/// Returns ok, or invalid_argument with a message that names the rank, the op and the reason.
Status verify(std::span<const Schedule> schedules, std::span<const Request> requests,
              SharesMemory shares_memory = nullptr, const void* context = nullptr,
              const SwitchTree* network = nullptr);

} // namespace ucg::graph
