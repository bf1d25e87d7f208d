#include "topo/draw_cluster_text.hpp"

#include <algorithm>

#include "topo/host_list.hpp"
#include "topo/rate_text.hpp"

namespace ucg::topo {

namespace {

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// Returns what is known of the links' rates: ", links of 100 Mbit/s".
std::string rates(const Cluster& cluster) {
    std::vector<std::uint64_t> found;
    for (std::uint32_t node = 1; node < cluster.node_count(); ++node) {
        found.push_back(cluster.node(node).rate);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    if (found.empty() || found.back() == 0) {
        return ", rates of links not known";
    }
    if (found.size() == 1) {
        return ", links of " + format_rate(static_cast<double>(found[0]));
    }
    const bool some_unknown = found.front() == 0;
    const std::string most = format_rate(static_cast<double>(found.back()));
    if (some_unknown && found.size() == 2) {
        return fmt::format(", links of {}, some not known", most);
    }
    return fmt::format(", links of {} to {}{}",
                       format_rate(static_cast<double>(found[some_unknown ? 1 : 0])), most,
                       some_unknown ? ", some not known" : "");
}

std::string peak(const AapcLoad& load) {
    if (load.seconds_per_byte == 0) {
        return fmt::format("{:.4g} times the rate of a link",
                           static_cast<double>(load.total) / static_cast<double>(load.max));
    }
    return fmt::format("{}{}", load.rates_known ? "" : "at most ", format_rate(load.peak()));
}

/// Returns the links that are bottlenecks, "s[0-3] to top, n0 to s1", grouped by the switch above.
std::string bottlenecks(const Cluster& cluster, const AapcLoad& load) {
    static constexpr std::size_t kGroupsShown = 8;
    std::vector<std::uint32_t> nodes = load.bottlenecks;
    std::stable_sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) {
        return cluster.node(a).parent < cluster.node(b).parent;
    });
    std::string text;
    std::size_t groups = 0;
    for (auto first = nodes.begin(); first != nodes.end(); ++groups) {
        const std::uint32_t parent = cluster.node(*first).parent;
        std::vector<std::string_view> names;
        for (; first != nodes.end() && cluster.node(*first).parent == parent; ++first) {
            names.push_back(cluster.node(*first).name);
        }
        if (groups < kGroupsShown) {
            text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", host_list(names),
                                cluster.node(parent).name);
        }
    }
    return text + (groups > kGroupsShown ? fmt::format(" and {} more", groups - kGroupsShown) : "");
}

} // namespace

std::string rate_of(const Cluster& cluster, std::uint32_t node) {
    return format_rate(static_cast<double>(cluster.node(node).rate));
}

std::string link_label(const Cluster& cluster, const AapcLoad& load, std::uint32_t node) {
    const std::string rate = cluster.node(node).rate == 0 ? "" : ", " + rate_of(cluster, node);
    return fmt::format("{}{}", load.by_node[node], rate);
}

std::array<std::string, 2> link_lines(const Cluster& cluster, const AapcLoad& load,
                                      std::uint32_t node, std::uint32_t count) {
    bool alike = true;
    for (std::uint32_t other = node; other < node + count; ++other) {
        alike = alike && cluster.node(other).rate == cluster.node(node).rate;
    }
    const bool known = cluster.node(node).rate > 0;
    return {fmt::format("load {}{}", load.by_node[node], count > 1 ? " each" : ""),
            !alike  ? "rates differ"
            : known ? rate_of(cluster, node)
                    : ""};
}

std::string machines_of(const Cluster& cluster, std::uint32_t node) {
    std::vector<std::string_view> names;
    // A switch's machines come before its switches.
    for (std::uint32_t child = node + 1;
         child < cluster.subtree_end(node) && cluster.is_machine(child); ++child) {
        names.push_back(cluster.node(child).name);
    }
    return host_list(names);
}

std::vector<std::string> summary(const Cluster& cluster, const AapcLoad& load) {
    static constexpr double kExample = 64 * 1024;
    const std::uint32_t machines = cluster.machine_count();
    std::vector<std::string> lines = {
        fmt::format("Cluster: {}, {}{}", counted(cluster.switch_count(), "switch", "switches"),
                    counted(machines, "machine", "machines"), rates(cluster))};
    if (load.max == 0) {
        return lines;
    }
    lines.push_back(
        fmt::format("Alltoall, one rank on each machine: load {}, peak aggregate throughput {}",
                    load.max, peak(load)));
    if (load.seconds_per_byte > 0) {
        const double seconds = kExample * load.seconds_per_byte;
        lines.push_back(fmt::format("  of 64 KiB for each: at least {:.4g} {}",
                                    seconds < 1 ? 1e3 * seconds : seconds,
                                    seconds < 1 ? "ms" : "s"));
    }
    const std::uint32_t first = load.bottlenecks.front();
    lines.push_back(
        fmt::format("Bottleneck: {}, load {}{}", bottlenecks(cluster, load), load.by_node[first],
                    cluster.node(first).rate == 0 ? "" : ", " + rate_of(cluster, first)));
    return lines;
}

} // namespace ucg::topo
