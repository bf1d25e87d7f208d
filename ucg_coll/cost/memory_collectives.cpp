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
    const auto cores = static_cast<unsigned>(ranks.size());
    unsigned largest = 1;
    unsigned smallest = cores;
    topo::Distance within = topo::Distance::core;
    const bool may_be_closer = topo::may_be_closer_than(placement, ranks, widest);
    const auto sockets = may_be_closer ? topo::groups_closer_than(placement, ranks, widest)
                                       : std::vector<std::vector<Rank>>();
    for (const std::vector<Rank>& socket : sockets) {
        largest = std::max(largest, static_cast<unsigned>(socket.size()));
        smallest = std::min(smallest, static_cast<unsigned>(socket.size()));
        for (const Rank rank : socket) { // The farthest from one rank is as far as any two.
            within = std::max(within, placement.distance(socket.front(), rank));
        }
    }
    const bool flat = largest == 1;
    node.sockets = flat ? 1 : static_cast<unsigned>(sockets.size());
    node.cores = cores;
    node.cores_per_socket = flat ? cores : largest;
    node.cores_min = flat ? cores : smallest;
    node.cores_of_root = flat ? cores : static_cast<unsigned>(sockets.front().size());
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

double one_stage_broadcast_ns(const NodeModel& node, std::uint64_t bytes) {
    const auto m = static_cast<double>(bytes);
    const unsigned near = node.cores_of_root - 1;
    const unsigned far = node.far_readers(node.cores_of_root);
    return std::max(near > 0 ? contended(node.within, near, m) : 0,
                    far > 0 ? contended(node.between, far, m) : 0);
}

double two_stage_broadcast_ns(const NodeModel& node, std::uint64_t bytes) {
    const auto m = static_cast<double>(bytes);
    const auto within_ns = [&](unsigned cores) {
        return cores > 1 ? contended(node.within, cores - 1, m) : 0;
    };
    const unsigned far = node.far_readers(node.cores_of_root);
    return std::max(within_ns(node.cores_of_root),
                    far > 0 ? alone(node.between, m) + within_ns(far) : 0);
}

double broadcast_ns(const NodeModel& node, std::uint64_t bytes) {
    return std::min(two_stage_broadcast_ns(node, bytes), one_stage_broadcast_ns(node, bytes));
}

} // namespace ucg::cost
