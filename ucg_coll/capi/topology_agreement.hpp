// Do the ranks of a group know one cluster, and are all their hosts in it? The answer is a pure
// function of what they told one another, so that all ranks come to the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/topology_file.hpp"

namespace ucg::capi {

/// What a rank tells the others of its LoadedTopology.
struct TopologyEnd {
    static constexpr std::uint32_t kMissing = UINT32_MAX;

    std::uint64_t hash = 0;           ///< Of the cluster; 0: the rank knows none.
    std::uint32_t machine = kMissing; ///< This host's number in it.
    std::uint16_t complains = 0;      ///< 1: there is a file that does not count.
    std::uint16_t is_named = 0;       ///< 1: the rank's setting names a file, or none.
};
TopologyEnd topology_end(const LoadedTopology& loaded);

/// What all ranks do. Where the cluster does not count although some rank has a file, `speaker` is
/// the rank that tells why.
struct TopologyVerdict {
    enum class Reason : std::uint8_t {
        none,           ///< The cluster counts, or nobody has one, or one host needs none.
        bad_file,       ///< The speaker has a complaint.
        different,      ///< The speaker's cluster is not that of rank `other`.
        unknown_host,   ///< The speaker's host is not in the cluster.
        shared_machine, ///< The speaker's host is the same machine as that of rank `other`.
        several_trees ///< Nothing connects the switches of the speaker's host and of rank `other`.
    };

    Reason reason = Reason::none;
    Rank speaker = kNoRank;
    Rank other = kNoRank;
    topo::ClusterMap map; ///< Empty: the group does without.
    /// At which to tell the reason. Where no rank's setting names a file, nobody has asked for one,
    /// and Slurm's own file may well be of use to Slurm alone.
    LogLevel level = LogLevel::warn;
};

/// Decides what all ranks do. `ends` is by rank; `own` is the cluster of any rank, which counts
/// only where all have the same.
TopologyVerdict agree_on_topology(const topo::Cluster& own, std::span<const TopologyEnd> ends,
                                  const topo::Placement& placement);

/// Returns what the speaker says, in a sentence: the file, the host, the reason, the remedy.
/// REQUIRES: verdict.reason != none; `loaded` is the speaker's.
std::string explain(const TopologyVerdict& verdict, const LoadedTopology& loaded);

} // namespace ucg::capi
