// The links between the hosts that are asked about: --topology.
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
    /// This object must outlive the parsing.
    void add_option(CLI::App& app);

    const std::string& path() const { return path_; }
    /// The cluster; none if no file was named. Fails if it cannot be read or is wrong.
    Result<std::optional<topo::Cluster>> load() const;
    /// Null without a cluster, or with one host: then links are not known, or not used. Fails if
    /// the cluster has fewer machines than there are hosts.
    Result<std::unique_ptr<const plan::Network>>
    network(const std::optional<topo::Cluster>& cluster, const topo::Placement& placement) const;
    /// Both.
    Result<std::unique_ptr<const plan::Network>> network(const topo::Placement& placement) const;

  private:
    std::string path_;
};

} // namespace ucg::tools
