#include "ucg_coll/capi/phases_file.hpp"

#include <algorithm>

#include "ucg_coll/capi/read_file.hpp"

namespace ucg::capi {
namespace {

/// Longest file that is read: aapc::kListedMachinesMax machines have 16 million messages.
constexpr std::size_t kPhasesBytesMax = std::size_t{1} << 30;

/// Returns the machines of the list on one switch, to be looked up by the names of hosts.
topo::Cluster machines_of(const aapc::Listed& listed) {
    using Kind = topo::ClusterNode::Kind;
    std::string hub = "_"; // A switch has a name of its own.
    while (std::count(listed.machines.begin(), listed.machines.end(), hub) > 0) {
        hub += '_';
    }
    std::vector<topo::ClusterNode> nodes = {{hub, Kind::network_switch, topo::kNoNode, 0}};
    for (const std::string& name : listed.machines) {
        nodes.push_back({name, Kind::machine, 0, 0});
    }
    return topo::Cluster(std::move(nodes));
}

Result<aapc::Listed> read_list(const std::string& path) {
    int error = 0;
    const Result<std::string> text = read_file(path, "the schedule", kPhasesBytesMax, error);
    if (!text.ok()) {
        return text.status();
    }
    Result<aapc::Listed> listed = aapc::parse_listed(*text);
    return listed.ok() ? listed
                       : failure(listed.status().code(), "{}: {}", path, listed.status().message());
}

} // namespace

LoadedPhases load_phases(const Config& config, std::string_view host) {
    LoadedPhases loaded;
    const std::vector<std::string> paths = config.phases_files();
    if (paths.empty()) {
        return loaded;
    }
    loaded.path = paths.front();
    if (paths.size() > 1) {
        loaded.complaint =
            fmt::format("{} and {}: one schedule can be loaded, not several", paths[0], paths[1]);
        return loaded;
    }
    Result<aapc::Listed> listed = read_list(loaded.path);
    if (!listed.ok()) {
        loaded.complaint = listed.status().message();
        return loaded;
    }
    loaded.hash = aapc::hash_of(*listed);
    loaded.machine = machines_of(*listed).find_machine(host);
    loaded.listed = std::make_shared<const aapc::Listed>(std::move(*listed));
    return loaded;
}

TopologyEnd phases_end(const LoadedPhases& loaded) {
    return {loaded.hash, loaded.machine.value_or(TopologyEnd::kMissing),
            static_cast<std::uint16_t>(loaded.complaint.empty() ? 0 : 1)};
}

PhasesVerdict agree_on_phases(const LoadedPhases& own, std::span<const TopologyEnd> ends) {
    const auto refusal = [&](std::size_t speaker, std::string reason) {
        return PhasesVerdict{{}, std::move(reason), static_cast<Rank>(speaker)};
    };
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        if (ends[rank].complains != 0) {
            return refusal(rank, own.complaint);
        }
        if (ends[rank].hash != ends[0].hash) {
            return refusal(rank, fmt::format("{}: rank {} has read another schedule than rank 0",
                                             own.path, rank));
        }
    }
    if (ends[0].hash == 0) {
        return {};
    }
    const std::size_t count = own.listed->machines.size();
    if (ends.size() != count) {
        return refusal(0, fmt::format("{}: it is for one rank on each of {} machines, there are {} "
                                      "ranks",
                                      own.path, count, ends.size()));
    }
    std::vector<Rank> ranks(count, kNoRank);
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        const std::uint32_t machine = ends[rank].machine;
        if (machine >= count) {
            return refusal(rank,
                           fmt::format("{}: the host of rank {} is not in it", own.path, rank));
        }
        if (ranks[machine] != kNoRank) {
            return refusal(rank, fmt::format("{}: ranks {} and {} are both on machine {}", own.path,
                                             ranks[machine], rank, own.listed->machines[machine]));
        }
        ranks[machine] = static_cast<Rank>(rank);
    }
    return {std::move(ranks), {}, kNoRank};
}

} // namespace ucg::capi
