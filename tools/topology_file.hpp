// --topology: the cluster that several tools ask about.
#pragma once

#include <string>

#include "tools/cli.hpp"
#include "topo/cluster_file.hpp"

namespace ucg::tools {

/// `path` must outlive the parsing; `more` follows the option's description.
inline CLI::Option* add_topology_option(CLI::App& app, std::string& path,
                                        const std::string& more = {}) {
    return app
        .add_option("--topology", path,
                    "The cluster: Slurm's topology.conf, or JSON as \"ucg_topo cluster\" writes "
                    "it; \"-\": standard input" +
                        more)
        ->type_name("FILE");
}

/// Fails with the file's name.
inline Result<topo::Cluster> read_topology(const std::string& path) {
    const Result<std::string> text = read_input(path);
    if (!text) {
        return text.status();
    }
    Result<topo::Cluster> cluster = topo::parse_cluster(*text);
    return cluster ? cluster : in_file(path, cluster.status());
}

} // namespace ucg::tools
