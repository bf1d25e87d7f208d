#include "ucg_coll/graph/dot.hpp"

#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "ucg_coll/graph/flag_slots.hpp"
#include "ucg_coll/graph/print.hpp"

namespace ucg::graph {

namespace {

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
        }
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return result;
}

std::string_view colour(OpKind kind) {
    switch (kind) {
    case OpKind::send: return "#cfe2f3";
    case OpKind::recv: return "#d9ead3";
    case OpKind::copy: return "#eeeeee";
    case OpKind::reduce: return "#fce5cd";
    case OpKind::signal:
    case OpKind::await: return "#ead1dc";
    case OpKind::publish: return "#fff2cc";
    case OpKind::share: return "#d0e0e3";
    }
    return "#ffffff";
}

std::string node_name(Rank rank, std::uint32_t op) {
    return fmt::format("r{}_{}", rank, op);
}

/// Returns the arrows for the dependencies of an op. They point forwards in time: from the op that
/// completes first to the op that waits for it.
std::string dependency_arrows(const Schedule& schedule, std::uint32_t index) {
    std::string text;
    const IndexRange range = dependency_range(schedule, index);
    for (std::uint32_t d = range.first; d < range.last; ++d) {
        const Dependency dependency = schedule.dependencies[d];
        const std::uint32_t distance = dependency.distance;
        text += fmt::format(
            "    {} -> {}{};\n", node_name(schedule.rank, dependency.op),
            node_name(schedule.rank, index),
            distance == 0
                ? ""
                : fmt::format(" [style=dotted, constraint=false, label=\"-{}\"]", distance));
    }
    return text;
}

/// Returns the repeat that contains `op`; null if none does.
const Repeat* repeat_of(const Schedule& schedule, std::uint32_t op) {
    for (const Repeat& repeat : schedule.repeats) {
        if (op >= repeat.first_op && op - repeat.first_op < repeat.op_count) {
            return &repeat;
        }
    }
    return nullptr;
}

std::string node(const Schedule& schedule, std::uint32_t index) {
    const Op& op = schedule.ops[index];
    return fmt::format("    {} [label=\"{}: {}\", fillcolor=\"{}\"];\n",
                       node_name(schedule.rank, index), index, escaped(op_text(schedule, op)),
                       colour(op.kind));
}

std::string cluster(const Schedule& schedule) {
    std::string text = fmt::format(
        "  subgraph cluster_{} {{\n    label=\"rank {} of {}: {} {}\";\n", schedule.rank,
        schedule.rank, schedule.rank_count, name(schedule.collective), escaped(schedule.algorithm));
    std::string arrows;
    const Repeat* open = nullptr;
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        const Repeat* repeat = repeat_of(schedule, i);
        if (repeat != open) {
            text += open != nullptr ? "    }\n" : "";
            open = repeat;
            if (open != nullptr) {
                text += fmt::format("    subgraph cluster_{}_{} {{\n    style=dashed; "
                                    "label=\"{} times {} bytes\";\n",
                                    schedule.rank, i, open->iterations, open->segment_bytes);
            }
        }
        text += node(schedule, i);
        arrows += dependency_arrows(schedule, i);
    }
    text += open != nullptr ? "    }\n" : "";
    return text + arrows + "  }\n";
}

/// The nodes of the sending and of the receiving ends of all messages, or all signals, from one
/// rank to another. The k-th of one list belongs to the k-th of the other.
struct Ends {
    std::vector<std::string> out;
    std::vector<std::string> in;
};

std::string message_arrows(std::span<const Schedule> schedules) {
    std::map<std::tuple<bool, Rank, Rank>, Ends> lanes;
    for (const Schedule& schedule : schedules) {
        for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
            const Op& op = schedule.ops[i];
            const bool is_event = is_order_only(op.kind);
            switch (op.kind) {
            case OpKind::send:
            case OpKind::signal:
                lanes[{is_event, schedule.rank, op.peer}].out.push_back(
                    node_name(schedule.rank, i));
                break;
            case OpKind::recv:
            case OpKind::await:
                lanes[{is_event, op.peer, schedule.rank}].in.push_back(node_name(schedule.rank, i));
                break;
            case OpKind::copy:
            case OpKind::reduce:
            case OpKind::publish:
            case OpKind::share: break; // See flag_slot_arrows.
            }
        }
    }
    std::string text;
    for (const auto& [lane, ends] : lanes) {
        for (std::size_t k = 0; k < ends.out.size() && k < ends.in.size(); ++k) {
            text += fmt::format("  {} -> {} [color={}, constraint=false];\n", ends.out[k],
                                ends.in[k], std::get<0>(lane) ? "purple, style=dashed" : "blue");
        }
    }
    return text;
}

/// Returns the arrows from each rank's share to the ops that read its flag slot.
std::string flag_slot_arrows(std::span<const Schedule> schedules) {
    std::map<Rank, std::string> shares;
    for (const Schedule& schedule : schedules) {
        for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
            if (schedule.ops[i].kind == OpKind::share) {
                shares[schedule.rank] = node_name(schedule.rank, i);
            }
        }
    }
    std::string text;
    for (const Schedule& schedule : schedules) {
        for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
            for (const Rank owner : flag_slots_read(schedule, schedule.ops[i])) {
                const auto share = shares.find(owner);
                if (share != shares.end()) { // Not every rank's schedule need be there.
                    text += fmt::format("  {} -> {} [color=darkgreen, constraint=false];\n",
                                        share->second, node_name(schedule.rank, i));
                }
            }
        }
    }
    return text;
}

} // namespace

std::string to_dot(std::span<const Schedule> schedules) {
    std::string text = "digraph schedule {\n"
                       "  rankdir=TB;\n"
                       "  node [shape=box, style=filled, fontname=\"monospace\", fontsize=10];\n"
                       "  edge [arrowsize=0.6];\n";
    for (const Schedule& schedule : schedules) {
        text += cluster(schedule);
    }
    return text + message_arrows(schedules) + flag_slot_arrows(schedules) + "}\n";
}

} // namespace ucg::graph
