// How a blocking call waits: for its own collective, while everything that peers may wait for in
// this process goes on.
#pragma once

#include "ucg_coll/capi/group.hpp"

namespace ucg::capi {

/// Did the call sleep while it waited, so that much may have gathered at the host?
enum class Slept : bool { no, yes };

/// Waits until `execution`, of a collective of `group`, is no longer in progress. The caller holds
/// no lock.
Slept wait(Group& group, engine::Execution& execution);

/// Makes the progress that a blocking call owes the host, and other groups, once its own result is
/// there, so that no peer waits for it: a process that only ever calls collectives, and never waits
/// in them, still moves its point-to-point messages and what other groups have in progress. A
/// barrier, and a call that has slept, drive the host until nothing more comes of it: what peers
/// sent before they arrived has arrived by then (MPI libraries count on it when they free windows).
/// The caller holds no lock.
inline void serve_host(Context& context, graph::Collective type, Slept slept) {
    /// A host that always has more to do does not keep a call from returning for ever.
    constexpr unsigned kRoundsMax = 4096;
    if (type == graph::Collective::barrier || slept == Slept::yes) {
        for (unsigned round = 0; round < kRoundsMax && context.host().messages() > 0; ++round) {
        }
    }
    context.progress_at_end();
}

} // namespace ucg::capi
