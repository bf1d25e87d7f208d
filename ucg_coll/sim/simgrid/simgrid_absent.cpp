// Replaces simgrid_pricing.cpp in builds without SimGrid.
#include "ucg_coll/sim/simgrid/simgrid_pricing.hpp"

namespace ucg::sim {

Result<std::unique_ptr<Pricing>> simgrid_pricing(const topo::Placement& placement,
                                                 const Options& options, std::string platform) {
    static_cast<void>(placement);
    static_cast<void>(options);
    return failure(Code::unsupported,
                   "{}: this build has no SimGrid; install libsimgrid-dev and build again",
                   platform);
}

} // namespace ucg::sim
