// The findings at the lower level: its components, and the models of injection and latency over
// UCT.
#pragma once

#include "perf/perftest/breakdown/findings.hpp"
#include "perf/perftest/breakdown/sample.hpp"

namespace ucg::perftest::breakdown {

/// A transport, and which of its properties determine what is measured.
struct LowerKind {
    std::string transport; ///< "posix/memory"
    bool puts = false;
    bool shares_memory = false;
    bool over_sockets = false;
};

Section lower_section(const LowerKind& kind, const Rounds& rounds);

/// Returns the terms of a latency below a message's own software: the path from the end of the
/// sender's LLP_post to the start of the receiver's LLP_prog, and the part of LLP_post that
/// precedes it.
LatencyParts message_parts(const LowerKind& kind, const Rounds& rounds);

} // namespace ucg::perftest::breakdown
