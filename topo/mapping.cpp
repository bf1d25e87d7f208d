// Puts ranks on cores in the orders that mpirun's --map-by offers.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "topo/machine.hpp"
#include "topo/placement.hpp"

namespace ucg::topo {

std::string_view name(MapBy map_by) {
    static constexpr std::array<std::string_view, 5> kNames = {"core", "cache", "numa", "package",
                                                               "host"};
    return kNames[static_cast<std::size_t>(map_by)];
}

// Returns the index of the group, of those among which `map_by` deals out ranks, that a core
// belongs to.
static std::uint32_t group_of(const Core& core, MapBy map_by) {
    switch (map_by) {
    case MapBy::cache: return core.l3;
    case MapBy::numa: return core.numa;
    case MapBy::package: return core.package;
    case MapBy::core:
    case MapBy::host: break;
    }
    return 0;
}

// Returns the cores in the order in which consecutive ranks of a host take them: the first core of
// each group, then the second of each, and so on.
static std::vector<std::uint32_t> core_order(const Machine& machine, MapBy map_by) {
    const std::vector<Core>& cores = machine.cores();
    std::vector<std::uint32_t> taken(cores.size(), 0); // By group; each holds at least one core.
    std::vector<std::uint32_t> round(cores.size());
    for (std::size_t i = 0; i < cores.size(); ++i) {
        const std::uint32_t group = group_of(cores[i], map_by);
        round[i] = taken[group]++;
    }
    std::vector<std::uint32_t> order(cores.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        const auto key = [&](std::uint32_t i) {
            return map_by == MapBy::core || map_by == MapBy::host
                       ? std::pair(0U, i)
                       : std::pair(round[i], group_of(cores[i], map_by));
        };
        return key(a) < key(b);
    });
    return order;
}

// Returns the places of the ranks of one host, as host 0.
static std::vector<Place> host_places(const Machine& machine, Rank ranks_per_host, MapBy map_by) {
    Place unknown;
    unknown.known = Distance::host;
    std::vector<Place> places(static_cast<std::size_t>(ranks_per_host), unknown);
    const std::vector<std::uint32_t> order = core_order(machine, map_by);
    for (std::size_t i = 0; !order.empty() && i < places.size(); ++i) {
        places[i] = machine.place_of_core(order[i % order.size()]);
    }
    return places;
}

Placement map_ranks(const Machine& machine, Rank hosts, Rank ranks_per_host, MapBy map_by) {
    UCG_ASSERT(hosts >= 0 && ranks_per_host >= 0);
    const std::uint64_t count = checked_multiply(static_cast<std::uint64_t>(hosts),
                                                 static_cast<std::uint64_t>(ranks_per_host));
    UCG_ASSERT(count <= static_cast<std::uint64_t>(std::numeric_limits<Rank>::max()));
    const std::vector<Place> on_host = host_places(machine, ranks_per_host, map_by);
    const bool cyclic = map_by == MapBy::host;
    return Placement(static_cast<Rank>(count), [&](Rank rank) {
        const Rank index = cyclic ? rank / hosts : rank % ranks_per_host;
        Place place = on_host[static_cast<std::size_t>(index)];
        place.host = static_cast<std::uint32_t>(cyclic ? rank % hosts : rank / ranks_per_host);
        return place;
    });
}

} // namespace ucg::topo
