// Pictures of one simulated run: what each rank did when, and its messages.
#pragma once

#include <string>

#include "ucg_coll/sim/simulator.hpp"

namespace ucg::sim {

/// The text above the picture: a title, "allreduce of 8 bytes among 8 ranks: recursive_doubling",
/// and a subtitle, the prices.
struct Caption {
    std::string title;
    std::string subtitle;
};

/// Returns an SVG document that can be read by itself: a row for each rank with its processor's
/// work and its port above that, arrows for messages and for flag slots that are read, a time axis
/// and a legend; where there are several hosts, a band behind the rows of each. Dashes tell the
/// kinds of arrows apart, colours their senders, and arrows between hosts are thick. Elements have
/// tooltips.
std::string timeline_svg(const Outcome& outcome, const Trace& trace,
                         const topo::Placement& placement, const Caption& caption);

/// Returns one line for each thing that happened, by rank and time:
///   rank 0  0 .. 103.2 ns  send to 1, 8 bytes, arrives at 503.2 ns (op 1)
std::string timeline_text(const Outcome& outcome, const Trace& trace);

std::string_view name(Activity::Kind kind);
std::string_view name(Transfer::Kind kind);

} // namespace ucg::sim
