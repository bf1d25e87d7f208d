// The tree of links between the hosts of a group, as plans see it: the schedule without contention,
// and what messages of all to all ask of the links.
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

/// A value that is large: groups of the same ranks share one, and so do their plans. Thread-safe to
/// read.
class Network {
  public:
    /// `machines[rank]` are numbers of machines of the cluster. REQUIRES: at least two ranks, each
    /// at a machine that there is.
    Network(const topo::Cluster& cluster, std::span<const std::uint32_t> machines);
    Network(const Network&) = delete; // The phases refer to the layout here.
    Network& operator=(const Network&) = delete;

    Rank rank_count() const { return static_cast<Rank>(layout_.member_count()); }
    /// Members are ranks.
    const aapc::Phases& phases() const { return phases_; }
    /// For graph::verify and simulations.
    const graph::Network& links() const { return links_; }

    /// Does each message pass the links of its two machines alone?
    bool is_one_switch() const;

    /// What an alltoall, for each byte of a block, keeps the link that limits it: the greatest load
    /// / rate. 0 if no rate is known.
    double alltoall_ns_per_byte() const { return alltoall_ns_per_byte_; }
    /// The same of its phases without contention, each of which takes as long as the slowest link
    /// that carries anything: equal where links have one rate, else no longer the least.
    double phases_ns_per_byte() const { return phases_ns_per_byte_; }

  private:
    aapc::Layout layout_;
    aapc::Phases phases_;
    graph::Network links_;
    double alltoall_ns_per_byte_ = 0;
    double phases_ns_per_byte_ = 0;
};

/// Null for an empty map. `placement` is of the hosts that the map has.
std::unique_ptr<const Network> network_between(const topo::Placement& placement,
                                               const topo::ClusterMap& map);

/// A schedule of phases from a file, for a group with one rank on each of its machines.
struct LoadedSchedule {
    std::string path;
    std::shared_ptr<const aapc::Listed> listed;
    std::vector<Rank> ranks; ///< By machine of the list.
};

/// How many messages of a schedule by that algorithm a link carries at a time; nothing for the many
/// that do not say.
std::optional<std::uint32_t> messages_at_once(std::string_view algorithm);
/// What graph::verify is to prove such a schedule on; nothing where it promises nothing of links,
/// or they are not known.
std::optional<graph::Network> links_to_prove(const Facts& facts, std::string_view algorithm);

/// The time of an alltoall which takes `alone_ns` where links are not in the way, and whose
/// messages meet on them. `traffic`: how many times a block travels. No less than `alone_ns`.
double contended_ns(const Facts& facts, double alone_ns, double traffic, std::uint64_t block_bytes);

} // namespace ucg::plan
