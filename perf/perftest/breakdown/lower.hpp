// The lower level's findings: its components, and the models of injection and latency over UCT.
#pragma once

#include "perf/perftest/breakdown/findings.hpp"
#include "perf/perftest/breakdown/sample.hpp"

namespace ucg::perftest::breakdown {

/// What was measured of a transport.
struct LowerKind {
    std::string transport; ///< "posix/memory"
    bool puts = false;
    bool shares_memory = false;
    bool over_sockets = false;
};

Section lower_section(const LowerKind& kind, const Rounds& rounds);

/// From the end of the sender's LLP_post to the start of the receiver's LLP_prog, and what of
/// LLP_post comes before: the terms of a latency below a message's own software.
LatencyParts message_parts(const LowerKind& kind, const Rounds& rounds);

} // namespace ucg::perftest::breakdown
