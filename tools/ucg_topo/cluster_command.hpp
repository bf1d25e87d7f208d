// "ucg_topo cluster": checks, draws and converts the file of a cluster.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli.hpp"
#include "topo/topo.hpp"

namespace ucg::tools {

class ClusterCommand {
  public:
    explicit ClusterCommand(CLI::App& parent);

    bool is_chosen() const { return app_.parsed(); }
    Status run() const;

  private:
    enum class Form { text, json, dot, svg, simgrid, slurm };
    friend std::string_view name(Form form);

    Result<topo::Cluster> load() const;
    Result<topo::Cluster> prune(const topo::Cluster& cluster) const;
    topo::Cluster with_rates(const topo::Cluster& cluster) const;
    Result<std::string> print(const topo::Cluster& cluster) const;

    CLI::App& app_;
    std::string path_;
    Form form_ = Form::text;
    std::string machines_;
    std::string rate_;
    std::string unit_;
    double latency_us_ = 0;
    std::string output_ = "-";
};

} // namespace ucg::tools
