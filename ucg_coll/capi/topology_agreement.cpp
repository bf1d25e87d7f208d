#include "ucg_coll/capi/topology_agreement.hpp"

#include <algorithm>

namespace ucg::capi {

using Reason = TopologyVerdict::Reason;

namespace {

TopologyVerdict refusal(Reason reason, Rank speaker, Rank other = kNoRank) {
    TopologyVerdict verdict;
    verdict.reason = reason;
    verdict.speaker = speaker;
    verdict.other = other;
    return verdict;
}

/// Returns the verdict but for its level.
TopologyVerdict found_in_common(const topo::Cluster& own, std::span<const TopologyEnd> ends,
                                const topo::Placement& placement) {
    if (placement.host_count() < 2) {
        return {};
    }
    const auto rank_of = [&](auto end) { return static_cast<Rank>(end - ends.begin()); };
    const auto bad = std::find_if(ends.begin(), ends.end(),
                                  [](const TopologyEnd& end) { return end.complains != 0; });
    if (bad != ends.end()) {
        return refusal(Reason::bad_file, rank_of(bad));
    }
    const auto other = std::find_if(
        ends.begin(), ends.end(), [&](const TopologyEnd& end) { return end.hash != ends[0].hash; });
    if (other != ends.end()) {
        return refusal(Reason::different, 0, rank_of(other));
    }
    if (ends[0].hash == 0) {
        return {};
    }
    std::vector<std::uint32_t> machines;
    std::vector<Rank> holder(own.machine_count(), kNoRank);
    for (const Rank leader : placement.leaders()) {
        const std::uint32_t machine = ends[static_cast<std::size_t>(leader)].machine;
        if (machine >= own.machine_count()) {
            return refusal(Reason::unknown_host, leader);
        }
        if (holder[machine] != kNoRank) {
            return refusal(Reason::shared_machine, leader, holder[machine]);
        }
        if (own.is_forest() && !machines.empty() &&
            own.tree_of_machine(machine) != own.tree_of_machine(machines.front())) {
            return refusal(Reason::several_trees, leader, placement.leaders().front());
        }
        holder[machine] = leader;
        machines.push_back(machine);
    }
    TopologyVerdict verdict;
    verdict.map = topo::map_hosts(own, machines);
    return verdict;
}

} // namespace

TopologyEnd topology_end(const LoadedTopology& loaded) {
    return {loaded.hash, loaded.machine.value_or(TopologyEnd::kMissing),
            static_cast<std::uint16_t>(loaded.complaint.empty() ? 0 : 1),
            static_cast<std::uint16_t>(loaded.is_named ? 1 : 0)};
}

TopologyVerdict agree_on_topology(const topo::Cluster& own, std::span<const TopologyEnd> ends,
                                  const topo::Placement& placement) {
    TopologyVerdict verdict = found_in_common(own, ends, placement);
    const bool is_named = std::any_of(ends.begin(), ends.end(),
                                      [](const TopologyEnd& end) { return end.is_named != 0; });
    verdict.level = is_named ? LogLevel::warn : LogLevel::info;
    return verdict;
}

std::string explain(const TopologyVerdict& verdict, const LoadedTopology& loaded) {
    std::string problem;
    switch (verdict.reason) {
    case Reason::none: break;
    case Reason::bad_file: problem = loaded.complaint; break;
    case Reason::different:
        problem = loaded.path.empty()
                      ? fmt::format("rank {} has a topology file, rank {} has none", verdict.other,
                                    verdict.speaker)
                      : fmt::format("{}: rank {} has another topology than rank {}, or none",
                                    loaded.path, verdict.other, verdict.speaker);
        break;
    case Reason::unknown_host:
        problem = fmt::format("{}: host '{}' of rank {} is not in it", loaded.path, loaded.host,
                              verdict.speaker);
        break;
    case Reason::shared_machine:
        problem = fmt::format("{}: host '{}' of rank {} is the machine of rank {}, which is "
                              "another host",
                              loaded.path, loaded.host, verdict.speaker, verdict.other);
        break;
    case Reason::several_trees:
        problem = fmt::format("{}: switches form several trees, and host '{}' of rank {} is in "
                              "another one than that of rank {}",
                              loaded.path, loaded.host, verdict.speaker, verdict.other);
        break;
    }
    return fmt::format("{}. All ranks do without the topology of the network; UCG_TOPOLOGY names "
                       "one file for all, or {} to silence this",
                       problem, kNoTopology);
}

} // namespace ucg::capi
