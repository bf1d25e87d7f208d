#include "ucg_coll/cost/memory_collectives.hpp"

#include <algorithm>
#include <vector>

namespace ucg::cost {

namespace {

/// Returns max(a + b m, a + B d m) for m = `bytes` of the vector, which need not be a whole number.
double contended(const MemoryLevel& level, double readers, double bytes) {
    return level.latency_ns +
           std::max(level.per_byte_ns, level.contended_per_byte_ns * readers) * bytes;
}

double alone(const MemoryLevel& level, double bytes) {
    return level.latency_ns + level.per_byte_ns * bytes;
}

bool is_power_of_two(unsigned count) {
    return count != 0 && (count & (count - 1)) == 0;
}

/// 2^floor(log_2 count). REQUIRES: count >= 1.
unsigned power_of_two_below(unsigned count) {
    unsigned power = 1;
    while (power <= count / 2) {
        power *= 2;
    }
    return power;
}

/// Equation 6 with `cores` of each socket taking part.
double disseminate(const NodeModel& node, unsigned cores, double bytes) {
    return contended(node.within, cores, bytes) * ceil_log(2, cores) +
           contended(node.between, cores, bytes) * ceil_log(2, node.sockets);
}

} // namespace

NodeModel node_model(const MemoryModel& model, const topo::Placement& placement,
                     std::uint32_t host) {
    const Ranks ranks = placement.ranks_on(host);
    topo::Distance widest = topo::Distance::core;
    for (const Rank rank : ranks) {
        widest = std::max(widest, placement.distance(ranks.front(), rank));
    }
    NodeModel node;
    node.between = model.level(widest);
    unsigned largest = 1;
    topo::Distance within = topo::Distance::core;
    const bool may_be_closer = topo::may_be_closer_than(placement, ranks, widest);
    const auto sockets = may_be_closer ? topo::groups_closer_than(placement, ranks, widest)
                                       : std::vector<std::vector<Rank>>();
    for (const std::vector<Rank>& socket : sockets) {
        largest = std::max(largest, static_cast<unsigned>(socket.size()));
        for (const Rank rank : socket) { // The farthest from one rank is as far as any two.
            within = std::max(within, placement.distance(socket.front(), rank));
        }
    }
    const bool flat = largest == 1;
    node.sockets = flat ? 1 : static_cast<unsigned>(sockets.size());
    node.cores_per_socket = flat ? static_cast<unsigned>(ranks.size()) : largest;
    node.within = flat ? node.between : model.level(within);
    return node;
}

unsigned ceil_log(unsigned radix, unsigned count) {
    UCG_ASSERT(radix >= 2 && count >= 1);
    unsigned height = 0;
    for (std::uint64_t reach = 1; reach < count; reach *= radix) {
        ++height;
    }
    return height;
}

double tree_reduce_within_ns(const NodeModel& node, unsigned radix, std::uint64_t bytes) {
    const unsigned height = ceil_log(radix, node.cores_per_socket);
    double sum_ns = 0;
    double readers = 1;
    for (unsigned i = 0; i < height; ++i) {
        sum_ns += contended(node.within, readers, static_cast<double>(bytes));
        readers *= radix;
    }
    return (radix - 1) * sum_ns;
}

double tree_reduce_between_ns(const NodeModel& node, unsigned radix, std::uint64_t bytes) {
    return (radix - 1) * alone(node.between, static_cast<double>(bytes)) *
           ceil_log(radix, node.sockets);
}

double tree_reduce_ns(const NodeModel& node, unsigned radix, std::uint64_t bytes) {
    return tree_reduce_within_ns(node, radix, bytes) + tree_reduce_between_ns(node, radix, bytes);
}

double one_stage_broadcast_ns(const NodeModel& node, std::uint64_t bytes) {
    const auto m = static_cast<double>(bytes);
    if (node.sockets > 1) {
        return contended(node.between, node.cores_per_socket, m);
    }
    return node.cores_per_socket > 1 ? contended(node.within, node.cores_per_socket - 1, m) : 0;
}

double two_stage_broadcast_ns(const NodeModel& node, std::uint64_t bytes) {
    const auto m = static_cast<double>(bytes);
    const double within_ns =
        node.cores_per_socket > 1 ? contended(node.within, node.cores_per_socket - 1, m) : 0;
    return within_ns + (node.sockets > 1 ? alone(node.between, m) : 0);
}

double broadcast_ns(const NodeModel& node, std::uint64_t bytes) {
    return std::min(two_stage_broadcast_ns(node, bytes), one_stage_broadcast_ns(node, bytes));
}

double tree_allreduce_ns(const NodeModel& node, unsigned radix, std::uint64_t bytes) {
    return tree_reduce_ns(node, radix, bytes) + broadcast_ns(node, bytes);
}

double barrier_ns(const NodeModel& node, unsigned radix) {
    return tree_allreduce_ns(node, radix, 0);
}

double dissemination_ns(const NodeModel& node, std::uint64_t bytes) {
    return is_power_of_two(node.cores()) ? dissemination_power_of_two_ns(node, bytes)
                                         : dissemination_any_ns(node, bytes);
}

double dissemination_power_of_two_ns(const NodeModel& node, std::uint64_t bytes) {
    return disseminate(node, node.cores_per_socket, static_cast<double>(bytes));
}

double dissemination_any_ns(const NodeModel& node, std::uint64_t bytes) {
    const unsigned cores = power_of_two_below(node.cores_per_socket);
    const unsigned others = node.cores_per_socket - cores;
    const auto m = static_cast<double>(bytes);
    return disseminate(node, cores, m) + (others > 0 ? 2 * contended(node.within, others, m) : 0);
}

double tiled_reduce_within_ns(const NodeModel& node, std::uint64_t bytes) {
    const double cores = node.cores_per_socket;
    return cores > 1 ? contended(node.within, cores, static_cast<double>(bytes) / cores) * cores
                     : 0;
}

double tiled_reduce_between_ns(const NodeModel& node, std::uint64_t bytes) {
    const double cores = node.cores_per_socket;
    return contended(node.between, cores, static_cast<double>(bytes) / cores) *
           ceil_log(2, node.sockets);
}

double tiled_reduce_ns(const NodeModel& node, std::uint64_t bytes) {
    return tiled_reduce_within_ns(node, bytes) + tiled_reduce_between_ns(node, bytes);
}

double tiled_allreduce_ns(const NodeModel& node, std::uint64_t bytes) {
    return tiled_reduce_ns(node, bytes) + broadcast_ns(node, bytes);
}

double tiled_reduce_naive_ns(const NodeModel& node, std::uint64_t bytes) {
    const double all = node.cores();
    const double near = node.cores_per_socket;
    const double tile = static_cast<double>(bytes) / all;
    const double step_ns = contended(node.within, near, tile);
    if (node.sockets == 1) {
        return all > 1 ? all * step_ns : 0;
    }
    return all * std::max(step_ns, contended(node.between, all - near, tile));
}

double tiled_reduce_cyclic_ns(const NodeModel& node, std::uint64_t bytes) {
    const double all = node.cores();
    const double near = node.cores_per_socket;
    const double tile = static_cast<double>(bytes) / all;
    if (all <= 1) {
        return 0;
    }
    return near * contended(node.within, near, tile) +
           (all - near) * contended(node.between, near, tile);
}

} // namespace ucg::cost
