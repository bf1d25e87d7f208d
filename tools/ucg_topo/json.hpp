// Machines and placements as JSON, for other programs.
#pragma once

#include <nlohmann/json.hpp>

#include "topo/topo.hpp"

namespace ucg::tools {

/// JSON whose keys keep a fixed order, so that outputs can be compared as text.
using Json = nlohmann::ordered_json;

/// {"packages": 2, "numa_domains": 2, ..., "cores": [{"core": 0, "package": 0, ...}, ...]}
Json to_json(const topo::Machine& machine);
/// {"host": 0, "package": 0, ...}, with the levels that are known.
Json to_json(const topo::Place& place);
/// {"hosts": 2, "ranks": [{"rank": 0, "host": 0, ...}, ...]}
Json to_json(const topo::Placement& placement);

} // namespace ucg::tools
