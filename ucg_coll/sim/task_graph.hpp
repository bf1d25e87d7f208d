// Schedules as the program graph of Ruefenacht, Bull and Booth (2017), section 6.1: tasks and what
// must be done before them, for all ranks together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"
#include "ucg_coll/sim/simulator.hpp"

namespace ucg::sim {

/// A task of one rank.
struct Task {
    enum class Kind : std::uint8_t {
        start,   ///< Where a rank begins; takes no time.
        proxy,   ///< A message, a signal or a flag slot has arrived; takes no time, joins others.
        sleep,   ///< The rank comes late.
        compute, ///< A copy, a reduction or a publish.
        put,     ///< A message or a signal to `peer`.
        share,   ///< Writing the rank's own flag slot.
    };
    Kind kind = Kind::start;
    Rank rank = 0;
    Rank peer = kNoRank;      ///< Of a put the receiver, of a proxy the sender.
    std::uint64_t bytes = 0;  ///< Of a put, proxy, compute or share.
    Picoseconds duration = 0; ///< Of a sleep or compute: without noise and reads of peers' memory.

    bool operator==(const Task&) const = default;
};

/// Tasks, and which of them must be done before which.
struct TaskGraph {
    struct Edge {
        std::uint32_t before = 0;
        std::uint32_t after = 0;
        bool operator==(const Edge&) const = default;
    };
    std::vector<Task> tasks; ///< By rank, in the order of issue.
    std::vector<Edge> edges;
};

/// Returns the graph of the schedules of all ranks, in rank order. Repeats are written out, so
/// segments should be few. What a rank does first follows its start or, where options.arrival_ns
/// has a time for it, its sleep.
TaskGraph task_graph(std::span<const graph::Schedule> schedules, const Options& options);

/// Returns one line for each task: "task 3: put to 1, 8 bytes, rank 0, after 0".
std::string to_text(const TaskGraph& graph);
/// Returns the graph for Graphviz: one cluster for each rank, nodes with the letters of the paper's
/// figure 17.
std::string to_dot(const TaskGraph& graph);

} // namespace ucg::sim
