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

struct Task {
    enum class Kind : std::uint8_t {
        start,   ///< Where a rank begins; takes no time.
        proxy,   ///< Joins others; takes no time: a message, a signal or a flag slot is there.
        sleep,   ///< The rank comes late.
        compute, ///< A copy, a reduction or a publish.
        put,     ///< A message or a signal to `peer`.
        share,   ///< Writing the own flag slot.
    };
    Kind kind = Kind::start;
    Rank rank = 0;
    Rank peer = kNoRank;      ///< put: whereto; proxy: wherefrom.
    std::uint64_t bytes = 0;  ///< put, proxy, compute, share.
    Picoseconds duration = 0; ///< sleep, compute: without noise and what peers' memory adds.

    bool operator==(const Task&) const = default;
};

struct TaskGraph {
    struct Edge {
        std::uint32_t before = 0;
        std::uint32_t after = 0;
        bool operator==(const Edge&) const = default;
    };
    std::vector<Task> tasks; ///< By rank, in the order of issue.
    std::vector<Edge> edges;
};

/// The graph of schedules of all ranks, in rank order; repeats are written out, so segments should
/// be few. What a rank does first follows its start, or its sleep where options.arrival_ns has one.
TaskGraph task_graph(std::span<const graph::Schedule> schedules, const Options& options);

/// "task 3: put to 1, 8 bytes, rank 0, after 0", one a line.
std::string to_text(const TaskGraph& graph);
/// For Graphviz: one cluster for each rank, nodes with the letters of the paper's figure 17.
std::string to_dot(const TaskGraph& graph);

} // namespace ucg::sim
