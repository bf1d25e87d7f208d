#include "topo/draw_cluster.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "topo/cluster_load.hpp"
#include "topo/draw_cluster_text.hpp"

namespace ucg::topo {

namespace {

/// Returns rows of cells, padded to the width of their columns, without blanks at the ends of
/// lines.
std::string table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const std::vector<std::string>& row : rows) {
        for (std::size_t column = 0; column < row.size(); ++column) {
            widths[column] = std::max(widths[column], row[column].size());
        }
    }
    fmt::memory_buffer text;
    const auto out = std::back_inserter(text);
    for (const std::vector<std::string>& row : rows) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column) {
            line += fmt::format("{:{}}  ", row[column], widths[column]);
        }
        fmt::format_to(out, "{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }
    return fmt::to_string(text);
}

std::vector<std::uint32_t> depths(const Cluster& cluster) {
    std::vector<std::uint32_t> depths(cluster.node_count(), 0);
    for (std::uint32_t node = 1; node < cluster.node_count(); ++node) {
        depths[node] = depths[cluster.node(node).parent] + 1;
    }
    return depths;
}

} // namespace

std::string to_outline(const Cluster& cluster) {
    static constexpr std::uint32_t kIndentMax = 20; // A chain of switches may be thousands deep.
    const AapcLoad load = aapc_load(cluster);
    std::string text;
    for (const std::string& line : summary(cluster, load)) {
        text += line + "\n";
    }
    const std::vector<std::uint32_t> depth = depths(cluster);
    std::vector<std::vector<std::string>> rows = {{"switch", "load", "rate", "machines"}};
    for (std::uint32_t node = 0; node < cluster.node_count(); ++node) {
        if (!cluster.is_machine(node)) {
            const bool is_root = node == 0;
            rows.push_back({std::string(std::size_t{2} * std::min(depth[node], kIndentMax), ' ') +
                                cluster.node(node).name,
                            is_root ? "-" : fmt::format("{}", load.by_node[node]),
                            is_root ? "-" : rate_of(cluster, node), machines_of(cluster, node)});
        }
    }
    return text + "\n" + table(rows);
}

std::string to_dot(const Cluster& cluster) {
    const AapcLoad load = aapc_load(cluster);
    std::vector<bool> is_bottleneck(cluster.node_count(), false);
    for (const std::uint32_t node : load.bottlenecks) {
        is_bottleneck[node] = true;
    }
    fmt::memory_buffer text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "graph cluster {{\n  node [fontname=\"Helvetica\"];\n"
                        "  edge [fontname=\"Helvetica\", fontsize=10];\n");
    for (std::uint32_t node = 0; node < cluster.node_count(); ++node) {
        fmt::format_to(out, "  \"{}\" [shape={}];\n", cluster.node(node).name,
                       cluster.is_machine(node) ? "ellipse"
                                                : "box, style=filled, fillcolor=grey90");
        if (node > 0) {
            const double part = load.max == 0 ? 0
                                              : static_cast<double>(load.by_node[node]) /
                                                    static_cast<double>(load.max);
            fmt::format_to(out, "  \"{}\" -- \"{}\" [label=\"{}\", penwidth={:.1f}{}];\n",
                           cluster.node(cluster.node(node).parent).name, cluster.node(node).name,
                           link_label(cluster, load, node), 1 + 4 * part,
                           is_bottleneck[node] ? ", color=red" : "");
        }
    }
    fmt::format_to(out, "}}\n");
    return fmt::to_string(text);
}

Result<std::string> to_simgrid(const Cluster& cluster, double latency_s) {
    for (std::uint32_t node = 1; node < cluster.node_count(); ++node) {
        if (cluster.node(node).rate == 0) {
            return failure(Code::unsupported,
                           "the rate of the link above '{}' is not known, and SimGrid needs those "
                           "of all links",
                           cluster.node(node).name);
        }
    }
    fmt::memory_buffer text;
    const auto out = std::back_inserter(text);
    // SimGrid requires a speed for each host; the simulator prices computation by itself.
    fmt::format_to(out, "<?xml version='1.0'?>\n"
                        "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                        "<platform version=\"4.1\">\n"
                        "  <zone id=\"cluster\" routing=\"DijkstraCache\">\n");
    for (std::uint32_t node = 0; node < cluster.node_count(); ++node) {
        const std::string& id = cluster.node(node).name;
        cluster.is_machine(node) ? fmt::format_to(out, "    <host id=\"{}\" speed=\"1Gf\"/>\n", id)
                                 : fmt::format_to(out, "    <router id=\"{}\"/>\n", id);
    }
    for (std::uint32_t node = 1; node < cluster.node_count(); ++node) {
        fmt::format_to(out,
                       "    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"{}s\" "
                       "sharing_policy=\"SPLITDUPLEX\"/>\n",
                       cluster.node(node).name, cluster.node(node).rate, latency_s);
    }
    for (std::uint32_t node = 1; node < cluster.node_count(); ++node) {
        const std::string& below = cluster.node(node).name;
        const std::string& above = cluster.node(cluster.node(node).parent).name;
        static constexpr std::string_view kRoute =
            "    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\">"
            "<link_ctn id=\"{}\" direction=\"{}\"/></route>\n";
        fmt::format_to(out, kRoute, below, above, below, "UP");
        fmt::format_to(out, kRoute, above, below, below, "DOWN");
    }
    fmt::format_to(out, "  </zone>\n</platform>\n");
    return fmt::to_string(text);
}

} // namespace ucg::topo
