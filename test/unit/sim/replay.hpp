// Runs simulated schedules in the engine, with messages and flag slots that arrive at the simulated
// times. Anything that the engine then does at another time is a difference between the simulator
// and the engine.
#pragma once

#include <span>
#include <string>

#include "ucg_coll/graph/graph.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace ucg::test {

/// Options under which time passes only while messages and shares are in flight, each for a
/// different time. So the time at which an op is issued follows from what it waits for, in the
/// simulator and in the engine. Ranks enter at different times.
sim::Options only_flights();

/// Simulates `schedules` by only_flights() and `seed`, runs them in the engine and compares when
/// each message, signal, share and reduction is issued, in which order, and when each rank is done.
/// Peers reach one another's buffers in place if `buffers_mapped`, otherwise by way of staging
/// buffers. Returns the first difference; empty if there is none.
std::string first_difference(const topo::Placement& placement,
                             std::span<const graph::Schedule> schedules, std::uint64_t seed,
                             bool buffers_mapped);

} // namespace ucg::test
