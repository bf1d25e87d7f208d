// The tree of links between the hosts of a group, as plans see it: the phases of an alltoall
// without contention, and the load that the messages of an alltoall put on the links.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topo/cluster.hpp"
#include "ucg_coll/aapc/aapc.hpp"
#include "ucg_coll/graph/network.hpp"
#include "ucg_coll/plan/algorithm.hpp"

namespace ucg::plan {

/// The network between the ranks of a group. It is a large value, so groups of the same ranks share
/// one, and so do their plans. Several threads may read it.
class Network {
  public:
    /// machines[rank] is the number of the rank's machine in the cluster. REQUIRES: at least two
    /// ranks, each at a machine of the cluster.
    Network(const topo::Cluster& cluster, std::span<const std::uint32_t> machines);
    Network(const Network&) = delete; // The phases refer to the layout here.
    Network& operator=(const Network&) = delete;

    Rank rank_count() const { return static_cast<Rank>(layout_.member_count()); }
    /// Returns the phases of an alltoall without contention; their members are ranks.
    const aapc::Phases& phases() const { return phases_; }
    /// Returns the links in the form that graph::verify and simulations need.
    const graph::SwitchTree& links() const { return links_; }

    /// Returns whether each message passes the links of its two machines alone.
    bool is_one_switch() const;

    /// Returns for how long an alltoall keeps the link that limits it busy, for each byte of a
    /// block: the greatest load / rate of any link. 0 if no rate is known.
    double alltoall_ns_per_byte() const { return alltoall_ns_per_byte_; }
    /// Returns for how long the phases without contention keep the links busy, for each byte of a
    /// block. Each phase takes as long as the slowest link that carries anything, so this equals
    /// alltoall_ns_per_byte() if all links have one rate, and may be more if not.
    double phases_ns_per_byte() const { return phases_ns_per_byte_; }

  private:
    aapc::Layout layout_;
    aapc::Phases phases_;
    graph::SwitchTree links_;
    double alltoall_ns_per_byte_ = 0;
    double phases_ns_per_byte_ = 0;
};

/// Returns the network between the ranks of `placement`, whose hosts are those of `map`; null if
/// the map is empty.
std::unique_ptr<const Network> network_between(const topo::Placement& placement,
                                               const topo::ClusterMap& map);

/// A schedule of phases from a file, for a group with one rank on each of its machines.
struct LoadedSchedule {
    std::string path;
    std::shared_ptr<const aapc::Listed> listed;
    std::vector<Rank> ranks; ///< By number of the machine in the list.
};

/// Returns how many messages a link carries at a time in a schedule by `algorithm`; nothing for the
/// many algorithms that do not limit this.
std::optional<std::uint32_t> messages_at_once(std::string_view algorithm);
/// Returns the links for which graph::verify is to prove a schedule by `algorithm`; nothing if the
/// algorithm promises nothing about links, or if the links are not known.
std::optional<graph::SwitchTree> links_to_prove(const Facts& facts, std::string_view algorithm);

/// Returns the time of an alltoall whose messages meet on the links, and which takes `alone_ns`
/// where links do not limit it. `traffic` is how many times a block travels. The result is at least
/// `alone_ns`.
double contended_ns(const Facts& facts, double alone_ns, double traffic, std::uint64_t block_bytes);

} // namespace ucg::plan
