#include "ucg_coll/capi/wireup/places.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ucg::capi {
namespace {

topo::Placement placement_of(const std::vector<Hello>& all) {
    std::map<std::uint64_t, std::uint32_t> hosts;
    std::vector<topo::Place> places;
    std::uint32_t next = 0;
    for (const Hello& hello : all) {
        topo::Place place = hello.place;
        const auto [host, fresh] = hosts.try_emplace(hello.host, next);
        // Host 0 shares memory with nobody, not with another of its kind either.
        place.host = hello.host == 0 ? next : host->second;
        next += fresh || hello.host == 0 ? 1 : 0;
        places.push_back(place);
    }
    return topo::Placement(places);
}

/// What ranks share under one kernel. Ranks of several hosts under one kernel (containers, pods,
/// virtual hosts) share its processors, whatever each host shows of them.
struct MachineLoad {
    unsigned ranks = 0;
    unsigned granted_cpus = 0; ///< Sum over the hosts.
    CpuMask cpus;

    CpuLoad load() const { return {ranks, std::min(granted_cpus, cpus.count())}; }
};

/// Adds the ranks on a host, and the CPUs that they may use together.
void add_host(MachineLoad& machine, const std::vector<Hello>& all, Ranks ranks) {
    CpuMask cpus;
    unsigned quota = topo::kNoCpuQuota;
    for (const Rank rank : ranks) {
        const Hello& hello = all[static_cast<std::size_t>(rank)];
        cpus.add(hello.cpus);
        quota = std::min(quota, hello.cpu_quota);
    }
    machine.ranks += static_cast<unsigned>(ranks.size());
    machine.granted_cpus += std::max(1U, std::min(cpus.count(), quota));
    machine.cpus.add(cpus);
}

} // namespace

Places places_of(const std::vector<Hello>& all, Rank rank) {
    Places places;
    places.placement = placement_of(all);
    const topo::Placement& placement = places.placement;
    // A host that does not know its machine gets a number that no machine has.
    const auto machine_of = [&](std::uint32_t host) {
        const Rank first = placement.ranks_on(host).front();
        const std::uint64_t machine = all[static_cast<std::size_t>(first)].machine;
        return machine != 0 ? machine : ~std::uint64_t{host};
    };
    std::map<std::uint64_t, MachineLoad> machines;
    for (std::uint32_t host = 0; host < placement.host_count(); ++host) {
        add_host(machines[machine_of(host)], all, placement.ranks_on(host));
    }
    for (const auto& [machine, load] : machines) {
        const CpuLoad of_machine = load.load();
        places.ranks_per_cpu =
            std::max(places.ranks_per_cpu, static_cast<double>(of_machine.ranks) / of_machine.cpus);
    }
    places.one_kernel = machines.size() == 1 && all.front().machine != 0;
    places.load = machines[machine_of(placement.host(rank))].load();
    return places;
}

} // namespace ucg::capi
