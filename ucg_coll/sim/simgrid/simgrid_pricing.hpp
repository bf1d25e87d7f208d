// SimGrid's prices for the network: messages flow over the links and routes of a platform and share
// their bandwidth. All else is as in simulator.hpp: Options::network says how long a message
// occupies the processors at its ends, Options::compute what computation costs.
//
// Casanova, Giersch, Legrand, Quinson, Suter, "Versatile, scalable, and accurate simulation of
// distributed applications and platforms", 2014.
#pragma once

#include <memory>
#include <string>

#include "ucg_coll/sim/simulator.hpp"

namespace ucg::sim {

/// Returns prices by SimGrid. `platform` is a file in SimGrid's XML. Host h of the placement is the
/// h-th host of the platform in the order of names, where numbers in names count by value.
/// Placement and options are borrowed. Fails with unsupported in a build without SimGrid, and for
/// noise and host links.
///
/// run() fails with invalid_argument for a platform that cannot be read or has fewer hosts than the
/// placement, and as Simulator::run does; with unsupported the second time in a process, as
/// SimGrid's engine is global to it. The seed decides only when ranks enter (Options::skew).
/// REQUIRES: check(options, placement.rank_count()).ok().
Result<std::unique_ptr<Pricing>> simgrid_pricing(const topo::Placement& placement,
                                                 const Options& options, std::string platform);

} // namespace ucg::sim
