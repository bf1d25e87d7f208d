// Internal to ucg_coll/sim: the links of a tree of switches, in both directions.
#pragma once

#include <algorithm>
#include <vector>

#include "ucg_coll/graph/network.hpp"
#include "ucg_coll/sim/time.hpp"

namespace ucg::sim {

/// The links of a tree of switches: a queue for each edge and direction, first come, first served.
/// Requests must come in order of their times.
class TreeLinks {
  public:
    /// `network` is borrowed.
    explicit TreeLinks(const graph::SwitchTree& network)
        : network_(network), free_(network.nodes.size() * 2, 0) {}

    bool joins(Rank a, Rank b) const { return node(a) != node(b); }
    void find_path(Rank from, Rank to, std::vector<graph::Edge>& path) const {
        graph::find_path(network_, from, to, path);
    }

    /// When a message passes an edge.
    struct Passage {
        Picoseconds head = 0; ///< When its first bytes pass.
        Picoseconds tail = 0; ///< When its last bytes have passed, if they are there by then.
    };
    /// Lets a message whose first bytes come to an edge at `time` pass it. Empty messages do not
    /// queue: packets of messages that meet alternate, and a signal waits for one of them at most.
    Passage pass(graph::Edge edge, Picoseconds time, std::uint64_t bytes) {
        if (bytes == 0) {
            return {time, time};
        }
        Picoseconds& free = free_[edge.index()];
        const Picoseconds head = std::max(time, free);
        const double ns_per_byte = network_.nodes[edge.node].ns_per_byte;
        free = later(head, to_picoseconds(static_cast<double>(bytes) * ns_per_byte));
        return {head, free};
    }

  private:
    std::uint32_t node(Rank rank) const { return network_.node_of[static_cast<std::size_t>(rank)]; }

    const graph::SwitchTree& network_;
    std::vector<Picoseconds> free_;
};

} // namespace ucg::sim
