// The engine runs the schedules that were simulated, with messages and flag slots that arrive at
// the simulated times: whatever it then does at another time than the simulator says is a
// difference between the two.
#pragma once

#include <span>
#include <string>

#include "ucg_coll/graph/graph.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace ucg::test {

/// Prices under which time passes only while messages and shares are on their way, each for another
/// time, so that when an op is issued follows from what it waits for, in the simulator as in the
/// engine. Ranks enter at different times.
sim::Options only_flights();

/// Simulates `schedules` by only_flights() and `seed`, runs them in the engine and compares: when
/// each message, signal, share and reduction is issued, in which order, and when each rank is done.
/// Peers reach one another's buffers `buffers_mapped` or by way of staging buffers. Empty, or the
/// first difference.
std::string first_difference(const topo::Placement& placement,
                             std::span<const graph::Schedule> schedules, std::uint64_t seed,
                             bool buffers_mapped);

} // namespace ucg::test
