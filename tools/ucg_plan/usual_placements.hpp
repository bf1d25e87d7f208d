// Placements for which tools check predictions: from two ranks on one host to a thousand on several
// hosts.
#pragma once

#include <string>
#include <vector>

#include "topo/topo.hpp"

namespace ucg::tools {

struct NamedPlacement {
    std::string name; ///< "1 host of 2 x 6 ranks"
    topo::Placement placement;
};

Result<std::vector<NamedPlacement>> usual_placements();

} // namespace ucg::tools
