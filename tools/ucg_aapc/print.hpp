// The alltoall schedule of a whole cluster, and how it is printed for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "topo/topo.hpp"
#include "ucg_coll/aapc/aapc.hpp"

namespace ucg::aapc {

/// The schedule of an alltoall among all machines of a cluster. Its members are the machines, by
/// their number in the cluster.
class Plan {
  public:
    /// Borrows `cluster`, which has two machines at least. Finds all phases and synchronisations.
    explicit Plan(const topo::Cluster& cluster);
    Plan(const Plan&) = delete; // The phases refer to layout_.
    Plan& operator=(const Plan&) = delete;

    const topo::Cluster& cluster() const { return cluster_; }
    const Phases& phases() const { return phases_; }
    const Layout& layout() const { return layout_; }
    const std::vector<Sync>& syncs() const { return syncs_; }
    const std::string& name(Position position) const {
        return cluster_.machine_name(layout_.member(position));
    }
    const std::string& root_name() const { return cluster_.node(layout_.root()).name; }

  private:
    const topo::Cluster& cluster_;
    Layout layout_;
    Phases phases_;
    std::vector<Sync> syncs_;
};

/// Returns load, bottleneck, peak throughput, root, the phases in the form of table 4 of Faraj and
/// Yuan, and which message waits for which.
std::string to_table(const Plan& plan);

/// {"machines": [names], "root": name, "load": L, "phases": [[[source, destination], ...], ...],
/// "syncs": [{"from", "to", "after": [phase, [source, destination]], "before": [...]}, ...]}
std::string to_json(const Plan& plan);

/// Returns the tree with the load of each link, and with the subtrees of the root numbered, for
/// Graphviz.
std::string to_dot(const Plan& plan);

/// Returns the schedule in the form that aapc::parse_listed reads.
std::string to_schedule_file(const Plan& plan);

} // namespace ucg::aapc
