#include "tools/ucg_topo/cluster_command.hpp"

#include <array>

#include "topo/cluster_file.hpp"
#include "topo/draw_cluster.hpp"
#include "topo/host_list.hpp"
#include "topo/rate_text.hpp"

namespace ucg::tools {

std::string_view name(ClusterCommand::Form form) {
    static constexpr std::array<std::string_view, 6> kNames = {"text", "json",    "dot",
                                                               "svg",  "simgrid", "slurm"};
    return kNames[static_cast<std::size_t>(form)];
}

namespace {

/// Returns a validator that accepts whatever parse_rate() accepts and leaves the text as it is.
CLI::Validator rate() {
    return CLI::Validator(
        [](std::string& text) {
            const Result<std::uint64_t> rate = topo::parse_rate(text);
            return std::string(rate.status().message());
        },
        "");
}

} // namespace

ClusterCommand::ClusterCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "cluster", "Check, draw or convert the file of a cluster: the tree of switches between "
                     "its machines, with what an alltoall asks of each link")) {
    app_.add_option("file", path_,
                    "Slurm's topology.conf, or JSON as --format json writes it; \"-\": standard "
                    "input")
        ->required()
        ->type_name("FILE");
    add_choice_option(app_, "--format", form_,
                      {Form::text, Form::json, Form::dot, Form::svg, Form::simgrid, Form::slurm},
                      "Output");
    app_.add_option("--machines", machines_,
                    "Only these, as a job's, and what joins them: a list such as n[0-3,8],login")
        ->type_name("LIST");
    app_.add_option("--rate", rate_,
                    "Rate of each link of which the file has none, such as 100mbit or 1gbit")
        ->check(rate())
        ->type_name("RATE");
    app_.add_option(
            "--link-speed-unit", unit_,
            "Unit of LinkSpeed where the file has a number alone, such as mbit; what a comment "
            "of the file says counts before it; without either such rates are not known")
        ->type_name("UNIT")
        ->check(CLI::IsMember({"kbit", "mbit", "gbit"}));
    app_.add_option("--latency", latency_us_,
                    "Microseconds of each link, for --format simgrid (default: 0)")
        ->transform(real_number(0, 1e9))
        ->type_name("US");
    app_.add_option("-o,--output", output_, "File to write; \"-\", the default: standard output")
        ->type_name("FILE");
    app_.footer(
        "Formats: text is a table for people; json and slurm are read again; dot is for Graphviz;\n"
        "svg is a picture; simgrid is a platform for \"ucg_sim run --pricing simgrid "
        "--platform\".\n"
        "\n"
        "topology.conf: one switch a line, keys in any case, # begins a comment, a backslash at\n"
        "the end continues the line:\n"
        "  SwitchName=top Switches=s[0-1] LinkSpeed=10gbit\n"
        "  SwitchName=s0 Nodes=n[0-15] LinkSpeed=1gbit\n"
        "  SwitchName=s1 Nodes=n[16-31],login LinkSpeed=1gbit\n"
        "LinkSpeed is the rate of the links from that switch down, for each direction. A switch\n"
        "may have Nodes and Switches. All must be one tree.\n"
        "Slurm itself refuses a unit behind the number, and a switch with both Nodes and\n"
        "Switches: keep such a file apart from Slurm's, and name it by UCG_TOPOLOGY. In a file\n"
        "for both, LinkSpeed is a number, and a line of its own names the unit (kbit, Mbit or\n"
        "Gbit), as --format slurm writes it:\n"
        "  # UCG: LinkSpeed is in Mbit/s\n"
        "\n"
        "JSON has a rate for each link, the one above each node:\n"
        "  {\"nodes\": [{\"name\": \"top\", \"kind\": \"switch\"},\n"
        "             {\"name\": \"n0\", \"kind\": \"machine\", \"parent\": \"top\",\n"
        "              \"bytes_per_second\": 125000000}]}\n"
        "\n"
        "Load of a link: messages that cross it, each way, when each machine sends one to each\n"
        "other. The bottleneck is the link that needs the longest time for its load; all messages\n"
        "together over that time are the peak aggregate throughput.\n"
        "\n"
        "Examples:\n"
        "  ucg_topo cluster /etc/slurm/topology.conf\n"
        "  ucg_topo cluster topology.conf --machines 'n[0-7,16-23]' --rate 1gbit --format svg \\\n"
        "    -o job.svg\n"
        "  ucg_topo cluster topology.conf --format json -o cluster.json\n"
        "  UCG_TOPOLOGY=cluster.json ucg_info -d");
}

Status ClusterCommand::run() const {
    Result<topo::Cluster> cluster = load();
    if (!cluster) {
        return cluster.status();
    }
    const Result<std::string> text = print(*cluster);
    return text ? write_output(output_, *text) : text.status();
}

Result<topo::Cluster> ClusterCommand::load() const {
    const Result<std::string> text = read_input(path_);
    if (!text) {
        return text.status();
    }
    const std::uint64_t unit = unit_.empty() ? 0 : topo::parse_rate("8" + unit_).value() / 8;
    const Result<topo::Cluster> cluster = topo::parse_cluster(*text, unit);
    if (!cluster) {
        return in_file(path_, cluster.status());
    }
    const topo::Cluster full = with_rates(*cluster);
    return machines_.empty() ? full : prune(full);
}

topo::Cluster ClusterCommand::with_rates(const topo::Cluster& cluster) const {
    if (rate_.empty()) {
        return cluster;
    }
    std::vector<topo::ClusterNode> nodes = cluster.nodes();
    for (topo::ClusterNode& node : nodes) {
        if (node.parent != topo::kNoNode && node.rate == 0) {
            node.rate = topo::parse_rate(rate_).value();
        }
    }
    return topo::Cluster(std::move(nodes));
}

Result<topo::Cluster> ClusterCommand::prune(const topo::Cluster& cluster) const {
    const Result<std::vector<std::string>> names = topo::expand_host_list(machines_);
    if (!names) {
        return failure(Code::invalid_argument, "--machines: {}", names.status().message());
    }
    std::vector<std::uint32_t> machines;
    for (const std::string& machine : *names) {
        const std::optional<std::uint32_t> found = cluster.find_machine(machine);
        if (!found) {
            return failure(Code::invalid_argument, "--machines: {} has no machine '{}'", path_,
                           machine);
        }
        machines.push_back(*found);
    }
    return cluster.pruned(machines);
}

Result<std::string> ClusterCommand::print(const topo::Cluster& cluster) const {
    switch (form_) {
    case Form::text: return topo::to_outline(cluster);
    case Form::json: return topo::to_json_text(cluster);
    case Form::dot: return topo::to_dot(cluster);
    case Form::svg: return topo::to_svg(cluster);
    case Form::simgrid: return topo::to_simgrid(cluster, latency_us_ * 1e-6);
    case Form::slurm: return topo::to_slurm_topology(cluster);
    }
    return std::string();
}

} // namespace ucg::tools
