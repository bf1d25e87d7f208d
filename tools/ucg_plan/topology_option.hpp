// The option --topology: the links between the hosts of the placement.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "topo/topo.hpp"
#include "ucg_coll/plan/network/network.hpp"

namespace ucg::tools {

class TopologyOption {
  public:
    /// Adds the option. This object must outlive the parsing.
    void add_option(CLI::App& app);

    const std::string& path() const { return path_; }
    /// Returns the cluster, or no value if no file was named. Fails if the file cannot be read or
    /// is wrong.
    Result<std::optional<topo::Cluster>> load() const;
    /// Returns the links between the hosts of `placement`; null without a cluster or with a single
    /// host, where links are not known or not used. Fails if the cluster has fewer machines than
    /// there are hosts.
    Result<std::unique_ptr<const plan::Network>>
    network(const std::optional<topo::Cluster>& cluster, const topo::Placement& placement) const;
    /// Loads the cluster and returns the links between its hosts, as the two functions above do.
    Result<std::unique_ptr<const plan::Network>> network(const topo::Placement& placement) const;

  private:
    std::string path_;
};

} // namespace ucg::tools
