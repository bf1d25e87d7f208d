#include "ucg_coll/sim/task_graph.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "ucg_coll/graph/flag_slots.hpp"

namespace ucg::sim {

namespace {

using graph::OpKind;

class Drafter {
  public:
    explicit Drafter(const Options& options) : options_(options) {}

    void add(const graph::Schedule& schedule) {
        const std::uint32_t entry = enter(schedule.rank);
        const auto first = static_cast<std::uint32_t>(graph_.tasks.size());
        for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
            const std::uint32_t task = first + i;
            graph_.tasks.push_back(task_of(schedule, schedule.ops[i]));
            join(schedule, schedule.ops[i], task);
            const graph::IndexRange range = graph::dependency_range(schedule, i);
            for (std::uint32_t d = range.first; d < range.last; ++d) {
                graph_.edges.push_back({first + schedule.dependencies[d].op, task});
            }
            const bool follows = range.first < range.last;
            if (!follows && graph_.tasks.back().kind != Task::Kind::proxy) {
                graph_.edges.push_back({entry, task});
            }
        }
    }

    /// Joins each put with the proxy of its other end, each share with what waits for it.
    TaskGraph finish() {
        for (const auto& [lane, ends] : lanes_) {
            for (std::size_t k = 0; k < std::min(ends.out.size(), ends.in.size()); ++k) {
                graph_.edges.push_back({ends.out[k], ends.in[k]});
            }
        }
        for (const auto& [owner, task] : looks_) {
            if (const auto share = shares_.find(owner); share != shares_.end()) {
                graph_.edges.push_back({share->second, task});
            }
        }
        return std::move(graph_);
    }

  private:
    struct Ends {
        std::vector<std::uint32_t> out;
        std::vector<std::uint32_t> in;
    };

    std::uint32_t enter(Rank rank) {
        auto entry = static_cast<std::uint32_t>(graph_.tasks.size());
        graph_.tasks.push_back({.kind = Task::Kind::start, .rank = rank});
        const auto index = static_cast<std::size_t>(rank);
        if (!options_.arrival_ns.empty() && options_.arrival_ns[index] > 0) {
            graph_.tasks.push_back({.kind = Task::Kind::sleep,
                                    .rank = rank,
                                    .duration = to_picoseconds(options_.arrival_ns[index])});
            graph_.edges.push_back({entry, entry + 1});
            ++entry;
        }
        return entry;
    }

    /// Returns the time of a copy. Peers have read last the scratch that they name.
    double copied_ns(const graph::Schedule& schedule, const graph::Op& op) const {
        const graph::Slice& target = op.target;
        const bool for_peers = schedule.exposed && target.owner == schedule.rank &&
                               target.buffer == graph::BufferKind::scratch &&
                               target.end() <= schedule.own_scratch();
        const std::uint64_t bytes = op.source.length;
        return for_peers
                   ? price::publish_ns(options_.memory.model, bytes, price::touched_by_copy(bytes))
                   : copy_ns(options_.compute, bytes);
    }

    Task task_of(const graph::Schedule& schedule, const graph::Op& op) const {
        Task task;
        task.rank = schedule.rank;
        task.peer = op.peer;
        switch (op.kind) {
        case OpKind::send: task.bytes = op.source.length; [[fallthrough]];
        case OpKind::signal: task.kind = Task::Kind::put; break;
        case OpKind::recv: task.bytes = op.target.length; [[fallthrough]];
        case OpKind::await: task.kind = Task::Kind::proxy; break;
        case OpKind::reduce:
            compute(task, op.target.length,
                    reduce_ns(options_.compute, op.operand_count, op.target.length));
            break;
        case OpKind::copy:
            if (graph::only_waits(op)) {
                task.kind = Task::Kind::proxy;
                task.peer = op.source.owner;
            } else {
                compute(task, op.source.length, copied_ns(schedule, op));
            }
            break;
        case OpKind::publish:
            compute(task, op.source.length, publish_ns(options_.memory, op.source.length));
            break;
        case OpKind::share:
            task.kind = Task::Kind::share;
            task.bytes = op.source.length;
            break;
        }
        return task;
    }

    static void compute(Task& task, std::uint64_t bytes, double ns) {
        task.kind = Task::Kind::compute;
        task.bytes = bytes;
        task.duration = to_picoseconds(ns);
    }

    void join(const graph::Schedule& schedule, const graph::Op& op, std::uint32_t task) {
        for (const Rank owner : graph::flag_slots_read(schedule, op)) {
            looks_.emplace_back(owner, task);
        }
        switch (op.kind) {
        case OpKind::send: lanes_[{false, schedule.rank, op.peer}].out.push_back(task); break;
        case OpKind::signal: lanes_[{true, schedule.rank, op.peer}].out.push_back(task); break;
        case OpKind::recv: lanes_[{false, op.peer, schedule.rank}].in.push_back(task); break;
        case OpKind::await: lanes_[{true, op.peer, schedule.rank}].in.push_back(task); break;
        case OpKind::share: shares_[schedule.rank] = task; break;
        case OpKind::copy:
        case OpKind::reduce:
        case OpKind::publish: break;
        }
    }

    const Options& options_;
    TaskGraph graph_;
    std::map<std::tuple<bool, Rank, Rank>, Ends> lanes_; ///< By (is a signal, from, to).
    std::map<Rank, std::uint32_t> shares_;
    std::vector<std::pair<Rank, std::uint32_t>> looks_; ///< The owner of a flag slot, its reader.
};

std::string describe(const Task& task) {
    switch (task.kind) {
    case Task::Kind::start: return "start";
    case Task::Kind::proxy: return fmt::format("proxy from {}, {} bytes", task.peer, task.bytes);
    case Task::Kind::sleep: return fmt::format("sleep {} ns", to_ns(task.duration));
    case Task::Kind::compute:
        return fmt::format("compute {} ns, {} bytes", to_ns(task.duration), task.bytes);
    case Task::Kind::put: return fmt::format("put to {}, {} bytes", task.peer, task.bytes);
    case Task::Kind::share: return fmt::format("share, {} bytes", task.bytes);
    }
    return {};
}

/// Returns the label of a task: the letter of figure 17, or a word for a task that it has none for.
std::string label(const Task& task) {
    switch (task.kind) {
    case Task::Kind::start: return "S";
    case Task::Kind::proxy: return fmt::format("from {}", task.peer);
    case Task::Kind::sleep: return fmt::format("Z {} ns", to_ns(task.duration));
    case Task::Kind::compute: return fmt::format("C {} ns", to_ns(task.duration));
    case Task::Kind::put: return fmt::format("P to {}", task.peer);
    case Task::Kind::share: return "share";
    }
    return {};
}

std::string_view style(Task::Kind kind) {
    switch (kind) {
    case Task::Kind::start: return "shape=circle, fillcolor=\"#ffffff\"";
    case Task::Kind::proxy: return "shape=plaintext, fillcolor=\"#f4f4f4\"";
    case Task::Kind::sleep: return "shape=box, fillcolor=\"#bdbdbd\"";
    case Task::Kind::compute: return "shape=box, fillcolor=\"#fce5cd\"";
    case Task::Kind::put: return "shape=box, fillcolor=\"#cfe2f3\"";
    case Task::Kind::share: return "shape=box, fillcolor=\"#d0e0e3\"";
    }
    return "";
}

} // namespace

TaskGraph task_graph(std::span<const graph::Schedule> schedules, const Options& options) {
    Drafter drafter(options);
    for (const graph::Schedule& schedule : schedules) {
        if (schedule.repeats.empty()) {
            drafter.add(schedule);
        } else {
            drafter.add(graph::unroll(schedule));
        }
    }
    return drafter.finish();
}

std::string to_text(const TaskGraph& graph) {
    std::vector<std::vector<std::uint32_t>> before(graph.tasks.size());
    for (const TaskGraph::Edge& edge : graph.edges) {
        before[edge.after].push_back(edge.before);
    }
    std::string text;
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
        text +=
            fmt::format("task {}: {}, rank {}", i, describe(graph.tasks[i]), graph.tasks[i].rank);
        std::string_view lead = ", after ";
        for (const std::uint32_t task : before[i]) {
            text += lead;
            text += std::to_string(task);
            lead = " ";
        }
        text += '\n';
    }
    return text;
}

std::string to_dot(const TaskGraph& graph) {
    std::string text = "digraph program {\n"
                       "  rankdir=TB;\n"
                       "  node [style=filled, fontname=\"sans-serif\", fontsize=10];\n"
                       "  edge [arrowsize=0.6];\n";
    Rank open = kNoRank;
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
        const Task& task = graph.tasks[i];
        if (task.rank != open) {
            text += open == kNoRank ? "" : "  }\n";
            text += fmt::format("  subgraph cluster_{0} {{\n    label=\"rank {0}\";\n", task.rank);
            open = task.rank;
        }
        text += fmt::format("    t{} [label=\"{}\", tooltip=\"{}\", {}];\n", i, label(task),
                            describe(task), style(task.kind));
    }
    text += open == kNoRank ? "" : "  }\n";
    for (const TaskGraph::Edge& edge : graph.edges) {
        const bool crosses = graph.tasks[edge.before].rank != graph.tasks[edge.after].rank;
        text += fmt::format("  t{} -> t{}{};\n", edge.before, edge.after,
                            crosses ? " [color=blue]" : "");
    }
    return text + "}\n";
}

} // namespace ucg::sim
