// The option --topology, which several tools have, and the cluster that it names.
#pragma once

#include <string>

#include "tools/cli.hpp"
#include "topo/cluster_file.hpp"

namespace ucg::tools {

/// Adds the option --topology. `path` must outlive the parsing; `more` is appended to the option's
/// description.
inline CLI::Option* add_topology_option(CLI::App& app, std::string& path,
                                        const std::string& more = {}) {
    return app
        .add_option("--topology", path,
                    "The cluster: Slurm's topology.conf, or JSON as \"ucg_topo cluster\" writes "
                    "it; \"-\": standard input" +
                        more)
        ->type_name("FILE");
}

/// Returns the cluster in the file. A failure begins with the file's name.
inline Result<topo::Cluster> read_topology(const std::string& path) {
    const Result<std::string> text = read_input(path);
    if (!text) {
        return text.status();
    }
    Result<topo::Cluster> cluster = topo::parse_cluster(*text);
    return cluster ? cluster : in_file(path, cluster.status());
}

} // namespace ucg::tools
