#include "tools/ucg_aapc/print.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "topo/cluster_load.hpp"
#include "topo/rate_text.hpp"

namespace ucg::aapc {
namespace {

Tree tree_of(const topo::Cluster& cluster) {
    Tree tree;
    for (const topo::ClusterNode& node : cluster.nodes()) {
        tree.parents.push_back(node.parent == topo::kNoNode ? kNone : node.parent);
    }
    for (std::uint32_t machine = 0; machine < cluster.machine_count(); ++machine) {
        tree.member_nodes.push_back(cluster.node_of_machine(machine));
    }
    return tree;
}

/// A text that is appended to.
class Text {
  public:
    template <typename... Args>
    void print(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    }
    std::string take() const { return fmt::to_string(buffer_); }

  private:
    fmt::memory_buffer buffer_;
};

std::string arrow(const Plan& plan, PhaseMessage message) {
    return fmt::format("{} -> {}", plan.name(message.source), plan.name(message.target));
}

std::string cell(const Plan& plan, const std::optional<PhaseMessage>& message) {
    return message ? arrow(plan, *message) : std::string();
}

std::string link_name(const Plan& plan, std::uint32_t node) {
    const topo::ClusterNode& below = plan.cluster().node(node);
    return fmt::format("{} to {}", below.name, plan.cluster().node(below.parent).name);
}

void print_head(const Plan& plan, Text& text) {
    const topo::AapcLoad load = topo::aapc_load(plan.cluster());
    text.print("machines          {}\n", plan.layout().member_count());
    text.print("root              {}\n", plan.root_name());
    text.print("load              {}\n", load.max);
    std::string bottlenecks;
    for (const std::uint32_t node : load.bottlenecks) {
        bottlenecks += (bottlenecks.empty() ? "" : ", ") + link_name(plan, node);
    }
    text.print("bottleneck        {}\n", bottlenecks);
    text.print("peak throughput   {}{}\n", topo::format_rate(load.peak()),
               load.rates_known && !load.rates_equal
                   ? ", which phases of equal messages reach only where links are alike"
                   : "");
    text.print("phases            {}\n", plan.phases().count());
    text.print("synchronisations  {}\n", plan.syncs().size());
    for (std::uint32_t i = 0; i < plan.layout().subtree_count(); ++i) {
        text.print("t{:<16} ", i);
        for (Position position = plan.layout().first(i); position < plan.layout().first(i + 1);
             ++position) {
            text.print(" {}", plan.name(position));
        }
        text.print("\n");
    }
}

/// A column of the table: the messages that leave one subtree, or those that stay in it.
struct Column {
    std::uint32_t subtree = 0;
    bool local = false;
    std::string head;
    std::size_t width = 0;
};

std::vector<Column> columns_of(const Plan& plan) {
    const Layout& layout = plan.layout();
    std::size_t longest = 0;
    std::vector<std::size_t> longest_of(layout.subtree_count(), 0);
    for (Position position = 0; position < layout.member_count(); ++position) {
        std::size_t& of = longest_of[layout.subtree_of(position)];
        of = std::max(of, plan.name(position).size());
        longest = std::max(longest, of);
    }
    std::vector<Column> columns;
    for (const bool local : {false, true}) {
        for (std::uint32_t i = 0; i < layout.subtree_count(); ++i) {
            if (!local || layout.size(i) > 1) {
                const std::string head = fmt::format("{} t{}", local ? "in" : "from", i);
                const std::size_t width = longest_of[i] + 4 + (local ? longest_of[i] : longest);
                columns.push_back({i, local, head, std::max(width, head.size())});
            }
        }
    }
    return columns;
}

std::string trimmed(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

void print_phases(const Plan& plan, Text& text) {
    const std::vector<Column> columns = columns_of(plan);
    std::string head = fmt::format("{:<7}", "phase");
    for (const Column& column : columns) {
        head += fmt::format("{:<{}}", column.head, column.width + 2);
    }
    text.print("{}\n", trimmed(std::move(head)));
    for (std::uint64_t phase = 0; phase < plan.phases().count(); ++phase) {
        std::string line = fmt::format("{:<7}", phase);
        for (const Column& column : columns) {
            const auto message = column.local ? plan.phases().local(column.subtree, phase)
                                              : plan.phases().leaving(column.subtree, phase);
            line += fmt::format("{:<{}}", cell(plan, message), column.width + 2);
        }
        text.print("{}\n", trimmed(std::move(line)));
    }
}

std::string pair(const Plan& plan, PhaseMessage message) {
    return fmt::format(R"(["{}","{}"])", plan.name(message.source), plan.name(message.target));
}

void print_subtree(const Plan& plan, const topo::AapcLoad& load, std::uint32_t node, Text& text) {
    const topo::ClusterNode& here = plan.cluster().node(node);
    const bool machine = plan.cluster().is_machine(node);
    const bool root = node == plan.layout().root();
    text.print("  \"{}\" [shape={}{}];\n", here.name, machine ? "ellipse" : "box",
               root ? ", style=bold, xlabel=\"root\"" : "");
    if (here.parent != topo::kNoNode) {
        const bool limits = std::count(load.bottlenecks.begin(), load.bottlenecks.end(), node) > 0;
        text.print("  \"{}\" -- \"{}\" [label=\"{}\"{}];\n", plan.cluster().node(here.parent).name,
                   here.name, load.by_node[node], limits ? ", color=red, penwidth=2" : "");
    }
}

} // namespace

Plan::Plan(const topo::Cluster& cluster)
    : cluster_(cluster), layout_(tree_of(cluster)), phases_(layout_),
      syncs_(minimal_syncs(phases_)) {}

std::string to_table(const Plan& plan) {
    Text text;
    print_head(plan, text);
    text.print("\n");
    print_phases(plan, text);
    text.print("\nbefore a message begins, another has ended, and its source has said so\n");
    for (const Sync& sync : plan.syncs()) {
        text.print("{}: {} of phase {} after {} of phase {}\n",
                   plan.name(sync.later.message.source), arrow(plan, sync.later.message),
                   sync.later.phase, arrow(plan, sync.earlier.message), sync.earlier.phase);
    }
    return text.take();
}

std::string to_json(const Plan& plan) {
    Text text;
    text.print("{{\"machines\":[");
    for (std::uint32_t machine = 0; machine < plan.cluster().machine_count(); ++machine) {
        text.print("{}\"{}\"", machine == 0 ? "" : ",", plan.cluster().machine_name(machine));
    }
    text.print("],\n\"root\":\"{}\",\n\"load\":{},\n\"phases\":[", plan.root_name(),
               plan.phases().count());
    const std::vector<Use> messages = all_messages(plan.phases());
    std::size_t next = 0;
    for (std::uint64_t phase = 0; phase < plan.phases().count(); ++phase) {
        text.print("{}[", phase == 0 ? "\n" : ",\n");
        for (const char* separator = ""; next < messages.size() && messages[next].phase == phase;
             ++next, separator = ",") {
            text.print("{}{}", separator, pair(plan, messages[next].message));
        }
        text.print("]");
    }
    text.print("],\n\"syncs\":[");
    const char* separator = "\n";
    for (const Sync& sync : plan.syncs()) {
        text.print(R"({}{{"from":"{}","to":"{}","after":[{},{}],"before":[{},{}]}})", separator,
                   plan.name(sync.earlier.message.source), plan.name(sync.later.message.source),
                   sync.earlier.phase, pair(plan, sync.earlier.message), sync.later.phase,
                   pair(plan, sync.later.message));
        separator = ",\n";
    }
    text.print("]}}\n");
    return text.take();
}

std::string to_dot(const Plan& plan) {
    const topo::AapcLoad load = topo::aapc_load(plan.cluster());
    Text text;
    text.print("graph aapc {{\n  label=\"{} machines, {} phases, {} synchronisations\";\n",
               plan.layout().member_count(), plan.phases().count(), plan.syncs().size());
    for (std::uint32_t node = 0; node < plan.cluster().node_count(); ++node) {
        print_subtree(plan, load, node, text);
    }
    text.print("}}\n");
    return text.take();
}

std::string to_schedule_file(const Plan& plan) {
    std::vector<std::string> names;
    for (std::uint32_t machine = 0; machine < plan.cluster().machine_count(); ++machine) {
        names.push_back(plan.cluster().machine_name(machine));
    }
    return "# Written by ucg_aapc.\n" + to_text(list_schedule(plan.phases(), std::move(names)));
}

} // namespace ucg::aapc
