#include "tools/ucg_plan/usual_placements.hpp"

#include <array>
#include <string_view>

namespace ucg::tools {
namespace {

/// Hosts of which each has the next ranks.
struct Hosts {
    Rank count = 0;
    Rank ranks = 0; ///< Of each.
};

enum class Order : std::uint8_t { by_host, round_robin };

struct Nodes {
    std::string_view name;
    const char* machine; ///< One host, in hwloc's synthetic form.
    std::array<Hosts, 2> hosts;
    Order order = Order::by_host;
};

constexpr Nodes kNodes[] = {
    {"1 host of 2 ranks", "package:1 l3:1 core:2 pu:1", {{{1, 2}}}},
    {"1 host of 8 ranks", "package:1 l3:1 core:8 pu:1", {{{1, 8}}}},
    {"1 host of 2 x 6 ranks", "package:2 l3:1 core:6 pu:1", {{{1, 12}}}},
    {"1 host of 4 x 8 ranks", "package:4 l3:1 core:8 pu:1", {{{1, 32}}}},
    {"1 host of 2 x 64 ranks", "package:2 l3:1 core:64 pu:1", {{{1, 128}}}},
    {"1 host of 8 + 1 ranks", "package:2 l3:1 core:8 pu:1", {{{1, 9}}}},
    {"1 host of 64 + 2 ranks", "package:2 l3:1 core:64 pu:1", {{{1, 66}}}},
    {"2 hosts of 31 and 1 ranks", "package:1 l3:1 core:31 pu:1", {{{1, 31}, {1, 1}}}},
    {"4 hosts of 8 ranks", "package:1 l3:1 core:8 pu:1", {{{4, 8}}}},
    {"4 hosts of 8 ranks in turn", "package:1 l3:1 core:8 pu:1", {{{4, 8}}}, Order::round_robin},
    {"16 hosts of 1 rank", "package:1 l3:1 core:16 pu:1", {{{16, 1}}}},
    {"16 hosts of 1 rank, 1 of 16", "package:1 l3:1 core:16 pu:1", {{{16, 1}, {1, 16}}}},
    {"4 hosts of 1, 16, 16, 16 ranks", "package:1 l3:1 core:16 pu:1", {{{1, 1}, {3, 16}}}},
    {"64 hosts of 16 ranks", "package:1 l3:1 core:16 pu:1", {{{64, 16}}}},
};

topo::Placement placement_of(const Nodes& nodes, const topo::Machine& machine) {
    if (nodes.order == Order::round_robin) {
        return topo::map_ranks(machine, nodes.hosts[0].count, nodes.hosts[0].ranks,
                               topo::MapBy::host);
    }
    std::vector<topo::Place> places;
    std::uint32_t host = 0;
    for (const Hosts& hosts : nodes.hosts) {
        const topo::Placement one = topo::Placement::packed(machine, 1, hosts.ranks);
        for (Rank i = 0; i < hosts.count; ++i, ++host) {
            for (Rank rank = 0; rank < hosts.ranks; ++rank) {
                places.push_back(one.place(rank));
                places.back().host = host;
            }
        }
    }
    return topo::Placement(places);
}

} // namespace

Result<std::vector<NamedPlacement>> usual_placements() {
    std::vector<NamedPlacement> placements;
    for (const Nodes& nodes : kNodes) {
        const Result<topo::Machine> machine = topo::machine_from_synthetic(nodes.machine);
        if (!machine) {
            return machine.status();
        }
        placements.push_back({std::string(nodes.name), placement_of(nodes, *machine)});
    }
    return placements;
}

} // namespace ucg::tools
