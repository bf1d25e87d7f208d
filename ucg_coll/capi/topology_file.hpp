// Where a process finds the switches between the hosts: UCG_TOPOLOGY, else Slurm's own file in its
// usual place.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::capi {

/// The value of UCG_TOPOLOGY that asks for no file.
inline constexpr std::string_view kNoTopology = "none";

/// The cluster that a process knows of.
struct LoadedTopology {
    topo::Cluster cluster;  ///< Empty: none. May be a forest.
    std::uint64_t hash = 0; ///< Of the cluster; 0: none.
    std::string path;       ///< Of the file, also where it does not count; empty: there is none.
    std::string complaint;  ///< Why the file does not count, or empty. Names the file.
    std::string host;       ///< What this host calls itself.
    bool is_named = false;  ///< The setting names a file, or none; else the file is Slurm's own.
    std::optional<std::uint32_t> machine; ///< This host's number among the cluster's machines.
};

/// Returns what this host's link to its switch carries, in bytes per second; 0: not known.
std::uint64_t link_rate(const LoadedTopology& topology);

/// Returns what this host calls itself.
std::string host_name();

/// Where Slurm's own files are: those of the host, and what slurmd has from the controller on hosts
/// without ("configless").
inline constexpr std::array<std::string_view, 2> kSlurmFolders = {"/etc/slurm", "/run/slurm/conf"};

/// Returns the path of topology.conf in the folder of $SLURM_CONF, else in the first of those
/// folders that has one or a topology.yaml; in the first folder if none has.
std::string default_topology_path(std::span<const std::string_view> slurm_folders = kSlurmFolders);

/// Reads the file that `setting` names. If `setting` is empty, reads the one at
/// default_topology_path(), which may be missing or describe no tree of switches (Slurm's plugin
/// topology/block); it is not read where a topology.yaml lies beside it, since Slurm does not read
/// it then either. A file that cannot be read or is wrong is a complaint, not a failure: nothing
/// but speed depends on it. The host is looked up by its name, and by Slurm's name for it
/// ($SLURMD_NODENAME).
LoadedTopology load_topology(std::string_view setting);

} // namespace ucg::capi
