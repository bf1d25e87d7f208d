#include "tools/ucg_plan/usual_placements.hpp"

#include <string_view>

namespace ucg::tools {

Result<std::vector<NamedPlacement>> usual_placements() {
    struct Nodes {
        std::string_view name;
        const char* machine; ///< One host, in hwloc's synthetic form.
        Rank hosts;
        Rank ranks_per_host;
    };
    constexpr Nodes kNodes[] = {
        {"1 host of 2 ranks", "package:1 core:2 pu:1", 1, 2},
        {"1 host of 8 ranks", "package:1 core:8 pu:1", 1, 8},
        {"1 host of 2 x 6 ranks", "package:2 core:6 pu:1", 1, 12},
        {"1 host of 4 x 8 ranks", "package:4 core:8 pu:1", 1, 32},
        {"1 host of 2 x 64 ranks", "package:2 core:64 pu:1", 1, 128},
        {"4 hosts of 8 ranks", "package:1 core:8 pu:1", 4, 8},
        {"64 hosts of 16 ranks", "package:1 core:16 pu:1", 64, 16},
    };
    std::vector<NamedPlacement> placements;
    for (const Nodes& nodes : kNodes) {
        const Result<topo::Machine> machine = topo::machine_from_synthetic(nodes.machine);
        if (!machine) {
            return machine.status();
        }
        placements.push_back(
            {std::string(nodes.name),
             topo::Placement::packed(*machine, nodes.hosts, nodes.ranks_per_host)});
    }
    return placements;
}

} // namespace ucg::tools
