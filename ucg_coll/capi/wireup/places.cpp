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

/// Ranks that share a quota, or, where no quota is known of them, those on a host.
struct Share {
    unsigned ranks = 0;
    unsigned quota = topo::kNoCpuQuota;
    CpuMask cpus;

    CpuLoad load() const { return {ranks, std::max(1U, std::min(cpus.count(), quota))}; }
};

/// What ranks share under one kernel, on however many hosts (containers, pods, virtual hosts): its
/// processors, whatever each host shows of them. The quotas of several control groups add up. Where
/// ranks are limited by a group, and others by one that lies in it, the sum is too large.
class MachineLoad {
  public:
    void add(const Hello& hello, std::uint32_t host) {
        Share& share = shares_[key(hello, host)];
        ++share.ranks;
        share.quota = std::min(share.quota, hello.cpu_quota);
        share.cpus.add(hello.cpus);
        ++ranks_;
        cpus_.add(hello.cpus);
    }

    CpuLoad load() const {
        std::uint64_t granted = 0;
        for (const auto& [group, share] : shares_) {
            granted += share.load().cpus;
        }
        const std::uint64_t cpus = std::min<std::uint64_t>(granted, cpus_.count());
        return {ranks_, std::max(1U, static_cast<unsigned>(cpus))};
    }

    /// Returns the load of that rank, whose share may be fuller than the machine.
    CpuLoad load_of(const Hello& hello, std::uint32_t host) const {
        return std::max(load(), shares_.at(key(hello, host)).load());
    }

    /// Returns the load of the ranks that have the least.
    CpuLoad fullest() const {
        CpuLoad fullest = load();
        for (const auto& [group, share] : shares_) {
            fullest = std::max(fullest, share.load());
        }
        return fullest;
    }

  private:
    using Key = std::pair<std::uint64_t, std::uint32_t>; ///< A control group, or 0 and a host.
    static Key key(const Hello& hello, std::uint32_t host) {
        return hello.cpu_quota_group != 0 ? Key{hello.cpu_quota_group, 0} : Key{0, host};
    }

    std::map<Key, Share> shares_;
    unsigned ranks_ = 0;
    CpuMask cpus_;
};

void add_host(MachineLoad& machine, const std::vector<Hello>& all, const topo::Placement& placement,
              std::uint32_t host) {
    for (const Rank rank : placement.ranks_on(host)) {
        machine.add(all[static_cast<std::size_t>(rank)], host);
    }
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
        add_host(machines[machine_of(host)], all, placement, host);
    }
    for (const auto& [machine, load] : machines) {
        const CpuLoad fullest = load.fullest();
        places.ranks_per_cpu =
            std::max(places.ranks_per_cpu, static_cast<double>(fullest.ranks) / fullest.cpus);
    }
    places.one_kernel = machines.size() == 1 && all.front().machine != 0;
    const std::uint32_t own = placement.host(rank);
    places.load = machines[machine_of(own)].load_of(all[static_cast<std::size_t>(rank)], own);
    MachineLoad own_host;
    add_host(own_host, all, placement, own);
    places.host_cpus = own_host.load().cpus;
    return places;
}

} // namespace ucg::capi
