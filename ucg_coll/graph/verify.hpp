// Proves schedules of all ranks together, symbolically: no data, no transport, no time.
//
// What is proved (design: "the schedule graph is the product"):
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
//   help      where ranks help one another, what one may do for another hangs together with nothing
//             else: any rank may do any of it at any time between the start and the end of the
//             collective at those that it names
//   network   where one is given: messages that pass one link the same way follow one another, in
//             as many rows as it carries at a time
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

/// Proves `schedules` (one per rank, in rank order) against `requests` (likewise, or a single one
/// that holds for every rank). Repeats are written out first, so segments should be few.
///
/// What is shared on flag slots is proved as the messages that it stands for (flag_slots.hpp), with
/// sends that wait for their receives, which a share does not.
///
/// What is published is proved twice: as reached in place, and by way of staging buffers.
///
/// May two ranks use each other's slices? `shares_memory` says; without it, none may.
///
/// With a `network`, which is borrowed, messages must not meet on it: of two with bytes that pass
/// one edge of it, one starts to be sent after the other has been sent or received. Where it says
/// that more than one may pass at once, the same holds of any set of so many and one more: two of
/// them are ordered. Signals and empty messages may meet whom they like.
///
/// Returns ok, or invalid_argument with a message that names the rank, the op and the reason.
using SharesMemory = bool (*)(Rank a, Rank b, const void* context);
Status verify(std::span<const Schedule> schedules, std::span<const Request> requests,
              SharesMemory shares_memory = nullptr, const void* context = nullptr,
              const Network* network = nullptr);

} // namespace ucg::graph
