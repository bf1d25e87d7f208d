// Measures what messages of the library cost on a host, and from which lengths on they are copied
// in another way: two processes send each other messages by the transport that serves ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/ucg_tune/probe_run.hpp"
#include "topo/topo.hpp"

namespace ucg::tools {

/// LogGP of messages through a ring, between two CPUs at this distance.
Status measure_messages(ProbeRun& run, topo::Distance distance,
                        const std::vector<std::uint32_t>& cpus);

/// The lengths at which messages between two ranks on these CPUs, one of which may be there twice,
/// are better copied in another way, and how long the buffers of a ring had better be.
Status measure_copies(ProbeRun& run, const std::vector<std::uint32_t>& cpus);

} // namespace ucg::tools
