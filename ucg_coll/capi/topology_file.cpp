#include "ucg_coll/capi/topology_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <unistd.h>

#include <climits>

#include "topo/cluster_file.hpp"
#include "ucg_coll/capi/read_file.hpp"

namespace ucg::capi {
namespace {

/// Longest file that is read: kClusterNodesMax nodes have some 100 bytes each.
constexpr std::size_t kTopologyBytesMax = std::size_t{256} << 20;

std::string_view variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

/// Is there a topology.yaml beside it? Newer versions of Slurm then do not read topology.conf.
bool is_ignored_by_slurm(const std::string& path) {
    return exists(path.substr(0, path.rfind('/')) + "/topology.yaml");
}

Result<topo::Cluster> read_cluster(const std::string& path, int& error) {
    const Result<std::string> text = read_file(path, "the topology", kTopologyBytesMax, error);
    if (!text.ok()) {
        return text.status();
    }
    error = 0;
    Result<topo::Cluster> cluster = topo::parse_cluster(*text, 0, topo::Trees::several);
    return cluster.ok()
               ? cluster
               : failure(cluster.status().code(), "{}: {}", path, cluster.status().message());
}

} // namespace

std::uint64_t link_rate(const LoadedTopology& topology) {
    if (!topology.machine) {
        return 0;
    }
    const topo::Cluster& cluster = topology.cluster;
    return cluster.nodes()[cluster.node_of_machine(*topology.machine)].rate;
}

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name = {};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string default_topology_path(std::span<const std::string_view> slurm_folders) {
    const auto in_folder = [](std::string_view folder) {
        return std::string(folder) + "/topology.conf";
    };
    const std::string_view configuration = variable("SLURM_CONF");
    if (!configuration.empty() && configuration.front() == '/') {
        return in_folder(configuration.substr(0, configuration.rfind('/')));
    }
    const auto found =
        std::find_if(slurm_folders.begin(), slurm_folders.end(), [&](std::string_view folder) {
            return exists(in_folder(folder)) || is_ignored_by_slurm(in_folder(folder));
        });
    return in_folder(found == slurm_folders.end() ? slurm_folders.front() : *found);
}

LoadedTopology load_topology(std::string_view setting) {
    LoadedTopology loaded;
    loaded.host = host_name();
    loaded.is_named = !setting.empty();
    const std::string path = loaded.is_named ? std::string(setting) : default_topology_path();
    if (path == kNoTopology || (!loaded.is_named && is_ignored_by_slurm(path))) {
        return loaded;
    }
    int error = 0;
    Result<topo::Cluster> cluster = read_cluster(path, error);
    if (!cluster.ok()) {
        const bool no_news = error == ENOENT || error == ENOTDIR ||
                             cluster.status().code() == Code::unsupported; // topology/block.
        if (loaded.is_named || !no_news) {
            loaded.path = path;
            loaded.complaint = cluster.status().message();
        }
        return loaded;
    }
    loaded.path = path;
    loaded.cluster = std::move(*cluster);
    loaded.hash = loaded.cluster.hash();
    loaded.machine = loaded.cluster.find_machine(loaded.host);
    if (const std::string_view node = variable("SLURMD_NODENAME");
        !loaded.machine && !node.empty()) {
        loaded.machine = loaded.cluster.find_machine(node);
    }
    return loaded;
}

} // namespace ucg::capi
