// Measures the costs of messages between ranks of a host, and the lengths from which on they should
// be copied in another way: two processes send each other messages by the transport that ranks use.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/ucg_tune/probe_run.hpp"
#include "topo/topo.hpp"

namespace ucg::tools {

/// Measures LogGP of messages through a ring between the first two of `cpus`, which are at this
/// distance.
Status measure_messages(ProbeRun& run, topo::Distance distance,
                        const std::vector<std::uint32_t>& cpus);

/// Measures from which lengths on messages between two ranks on these CPUs should be copied in
/// another way, and which length the buffers of a ring should have. Both CPUs may be the same.
Status measure_copies(ProbeRun& run, const std::vector<std::uint32_t>& cpus);

} // namespace ucg::tools
