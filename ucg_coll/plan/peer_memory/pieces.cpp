#include "ucg_coll/plan/peer_memory/pieces.hpp"

#include <algorithm>
#include <numeric>

#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {

bool segments_fit(const Facts& facts, const graph::Request& request, std::uint32_t places) {
    const std::uint64_t bytes = uniform_bytes(request);
    return facts.shared.staging_bytes == 0 || bytes == 0 ||
           segments_for(facts.shared, bytes, request.element_bytes, 1, places).segment_bytes > 0;
}

namespace {

/// Returns what the borders of tiles are multiples of.
std::uint64_t tile_unit(std::uint64_t element_bytes) {
    return std::lcm(element_bytes, std::uint64_t{kCacheLine});
}

/// The prices of a barrier by dissemination, in which all members signal all others in rounds, and
/// by a tree, in which all signal one member, which answers: that has fewer signals and one more
/// wait.
struct CheapestBarrier {
    CheapestBarrier(const Facts& facts, Rank count)
        : link(host_link(facts)), dissemination_radix(barrier_dissemination_radix(link, count)),
          tree_radix(barrier_tree_radix(link, count)) {
        dissemination_ns = oversubscribed_exchange_ns(facts, link, 0, [&](const Link& prices) {
            return barrier_dissemination_ns(prices, count, dissemination_radix);
        });
        tree_ns = barrier_there_and_back_ns(facts, link, count);
    }

    bool by_tree() const { return tree_ns < dissemination_ns; }

    Link link;
    unsigned dissemination_radix;
    unsigned tree_radix;
    double dissemination_ns = 0;
    double tree_ns = 0;
};

} // namespace

void barrier(graph::Builder& builder, const Facts& facts, const Team& team, OpIds& last) {
    const CheapestBarrier cheapest(facts, team.size());
    if (cheapest.by_tree()) {
        barrier_arrive(builder, team, cheapest.tree_radix, last);
        barrier_release(builder, team, cheapest.tree_radix, last);
    } else {
        barrier_dissemination(builder, team, cheapest.dissemination_radix, last);
    }
}

double barrier_ns(const Facts& facts) {
    const CheapestBarrier cheapest(facts, facts.placement.rank_count());
    return std::min(cheapest.tree_ns, cheapest.dissemination_ns);
}

double socket_barrier_ns(const Facts& facts) {
    const CheapestBarrier cheapest(facts, static_cast<Rank>(facts.shared.node.cores_per_socket));
    return std::min(cheapest.tree_ns, cheapest.dissemination_ns);
}

double barriers_work_ns(const Facts& facts, std::uint64_t count) {
    return static_cast<double>(count) * barrier_ns(facts) / facts.ranks_per_cpu;
}

cost::NodeModel known_node(const Facts& facts) {
    cost::NodeModel node = facts.shared.node;
    const double signal_ns =
        cost::message_ns(facts.profile.level(facts.placement.widest_on_host()), 0);
    node.within.latency_ns -= signal_ns;
    node.between.latency_ns -= signal_ns;
    return node;
}

cost::NodeModel known_node(const Facts& facts, Rank root) {
    cost::NodeModel node = known_node(facts);
    if (node.cores_min < node.cores_per_socket) {
        const topo::Placement& placement = facts.placement;
        node.cores_of_root = 1;
        for (Rank rank = 0; rank < placement.rank_count(); ++rank) {
            const bool near = placement.distance(root, rank) < placement.widest_on_host();
            node.cores_of_root += near && rank != root ? 1 : 0;
        }
    }
    return node;
}

namespace {

/// Returns near_ns for each other rank of a socket of `size` ranks, and far_ns for each rank of the
/// other sockets.
double to_others(const cost::NodeModel& node, unsigned size, double near_ns, double far_ns) {
    return (size - 1) * near_ns + (node.cores - size) * far_ns;
}

double alone_ns(const cost::NodeModel& node, unsigned size, std::uint64_t bytes) {
    return to_others(node, size, price::read_ns(node.within, 1, bytes),
                     node.cores > size ? price::read_ns(node.between, 1, bytes) : 0);
}

} // namespace

double root_reads_others_ns(const Facts& facts, Rank root, std::uint64_t bytes) {
    const cost::NodeModel node = known_node(facts, root);
    return alone_ns(node, node.cores_of_root, bytes);
}

double read_others_ns(const Facts& facts, Readers readers, std::uint64_t bytes, double part) {
    const cost::NodeModel node = known_node(facts);
    const auto from_socket_ns = [&](unsigned size) {
        const unsigned owners =
            readers == Readers::in_turn ? node.cores - size : node.far_readers(size);
        const double link_ns =
            part * size * owners * node.between.contended_per_byte_ns * static_cast<double>(bytes);
        return std::max(alone_ns(node, size, bytes),
                        to_others(node, size, node.within.latency_ns, node.between.latency_ns) +
                            link_ns);
    };
    return std::max(from_socket_ns(node.cores_min), from_socket_ns(node.cores_per_socket));
}

double read_socket_ns(const Facts& facts, std::uint64_t bytes) {
    const cost::NodeModel node = known_node(facts);
    return (node.cores_per_socket - 1) * price::read_ns(node.within, 1, bytes);
}

double read_and_combine_ns(const Facts& facts, double read_ns, unsigned operands,
                           std::uint64_t bytes, std::uint64_t own_bytes) {
    const std::uint64_t touched = own_bytes + (operands - 1) * bytes;
    return std::max(read_ns,
                    price::reduce_ns(facts.profile, operands, bytes, rates_for(facts, touched)));
}

double read_and_copy_ns(const Facts& facts, double read_ns, std::uint64_t bytes,
                        std::uint64_t own_bytes) {
    return std::max(read_ns, price::copy_ns(facts.profile, bytes, rates_for(facts, 2 * own_bytes)));
}

double copy_to_staging_ns(const Facts& facts, std::uint64_t bytes) {
    // Copies go segment by segment to staging buffers that stay in cache.
    const cost::CacheRates staging_buffer = rates_for(facts, std::min(bytes, kSegmentBytesMax));
    const double source_per_byte_ns = rates_for(facts, 2 * bytes).copy_per_byte_ns;
    return static_cast<double>(bytes) *
           std::max(staging_overwrite_per_byte_ns(facts, staging_buffer), source_per_byte_ns);
}

double publish_ns(const Facts& facts, std::uint64_t bytes) {
    return facts.shared.buffers_mapped ? 0 : copy_to_staging_ns(facts, bytes);
}

Tiles tiles_of(std::uint64_t segment_bytes, Rank count, std::uint64_t element_bytes) {
    const std::uint64_t unit = tile_unit(element_bytes);
    const std::uint64_t units = divide_up(segment_bytes, unit);
    const auto most = static_cast<std::uint64_t>(count);
    return {static_cast<Rank>(std::min(units, most)),
            std::min(divide_up(units, most) * unit, segment_bytes)};
}

double combine_tile_ns(const Facts& facts, const Tiles& tiles, unsigned operands,
                       std::uint64_t own_bytes) {
    const double part = static_cast<double>(tiles.count) / operands;
    return read_and_combine_ns(facts, read_others_ns(facts, Readers::at_once, tiles.bytes, part),
                               operands, tiles.bytes, own_bytes);
}

graph::Slice tile_of(graph::Slice segment, Rank index, Rank count, std::uint64_t element_bytes) {
    const std::uint64_t unit = tile_unit(element_bytes);
    const std::uint64_t units = divide_up(segment.length, unit);
    const auto border = [&](Rank tile) {
        const auto before = static_cast<std::uint64_t>(tile);
        return std::min(units * before / static_cast<std::uint64_t>(count) * unit, segment.length);
    };
    return part(segment, border(index), border(index + 1) - border(index));
}

std::vector<Rank> reading_order(const Team& team, bool cyclic) {
    std::vector<Rank> order;
    order.reserve(static_cast<std::size_t>(team.size()));
    for (Rank step = 0; step < team.size(); ++step) {
        order.push_back(team.rank(cyclic ? (team.index() + step) % team.size() : step));
    }
    return order;
}

} // namespace ucg::plan
