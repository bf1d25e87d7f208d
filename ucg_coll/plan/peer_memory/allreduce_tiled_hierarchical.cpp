// Hierarchical tiled allreduce: in each socket every rank combines one tile of the socket's
// vectors. Trees over the sockets, one for each tile, combine these partial tiles; the results come
// down the same trees and are read within sockets. Each tile crosses between two sockets once up
// and once down. Li, Hoefler and Snir (HPDC 2013), section 2.4.
#include "ucg_coll/plan/parts/knomial.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/stages.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::OpId;
using graph::Slice;

/// Returns how many places a staging buffer has. One is enough, since the ranks of a socket meet
/// twice for each segment, and trees go up and down. In place the staging buffer of a segment's
/// results is that of the next segment's contributions, so there are two.
std::uint32_t rotation(const graph::Request& request) {
    return request.in_place ? 2 : 1;
}
// Both staging buffers, or two places in one, and the tile of the socket.
constexpr std::uint32_t kPlaces = 3;
constexpr unsigned kRadix = 2;

Segments segments_of(const Facts& facts, const graph::Request& request) {
    return segments_for(facts.shared, request.bytes, request.element_bytes, rotation(request),
                        kPlaces);
}

/// Returns the time in which a rank copies the other tiles of its socket. In a socket larger than
/// the smallest, ranks without a tile read tiles that others read as well.
double read_tiles_ns(const Facts& facts, const Tiles& tiles) {
    const cost::NodeModel node = known_node(facts);
    const auto cores = static_cast<Rank>(node.cores_per_socket);
    const double readers = cores / static_cast<double>(node.cores_min);
    return node.cores_min == node.cores_per_socket
               ? read_socket_ns(facts, tiles.bytes) * tiles.count / cores
               : tiles.count * price::read_ns(node.within, readers, tiles.bytes);
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const cost::NodeModel& node = facts.shared.node;
    const Segments segments = segments_of(facts, request);
    const unsigned levels = tree_depth(static_cast<Rank>(node.sockets), kRadix);
    const auto segment_ns = [&](std::uint64_t bytes) {
        const Tiles tiles =
            tiles_of(bytes, static_cast<Rank>(node.cores_min), request.element_bytes);
        // All ranks of a socket read over its link, up and down.
        const double over_ns = price::read_ns(node.between, tiles.count, tiles.bytes);
        return 2 * socket_barrier_ns(facts) + 2 * climb_turns_ns(facts, kRadix) +
               read_and_combine_ns(facts, read_socket_ns(facts, tiles.bytes), node.cores_per_socket,
                                   tiles.bytes, request.bytes + tiles.bytes) +
               levels * (read_and_combine_ns(facts, over_ns, 2, tiles.bytes, 2 * tiles.bytes) +
                         over_ns) +
               read_tiles_ns(facts, tiles);
    };
    const double span_ns = publish_ns(facts, request.bytes) +
                           publish_ns(facts, request.bytes / node.cores_min) + barrier_ns(facts) +
                           for_segments_ns(segments, segment_ns);
    return oversubscribed_ns(
        facts, host_link(facts), 2 * request.bytes, span_ns, [&](const Work& work) {
            // Partial tiles go up and down trees over the sockets.
            const std::uint64_t tile = request.bytes * node.sockets / node.cores;
            return tiled_work_ns(work, request.rank_count, request.bytes) +
                   2 * (work.read_ns(tile) + work.publish_ns(tile));
        });
}

/// One rank's part, one segment after the other. Where sockets differ in size, as many ranks of
/// each socket have a tile as the smallest socket has ranks.
class Hierarchy {
  public:
    Hierarchy(Builder& builder, const Facts& facts, const graph::Request& request)
        : builder_(builder), facts_(facts), request_(request),
          sockets_(facts.placement, builder.rank(), member_order(request)),
          tiles_(sockets_.smallest()),
          node_(static_cast<Rank>(sockets_.count()), 0, static_cast<Rank>(sockets_.own()), kRadix),
          segments_(segments_of(facts, request)),
          partial_(builder.shared_scratch(segments_.segment_bytes)) {}

    void run() {
        builder_.staging_buffer(segments_.staging_buffer_bytes());
        OpIds last = for_each_segment(builder_, segments_, 1,
                                      [&](const Segment& segment) { return run(segment); });
        barrier(builder_, facts_, Team::whole(request_.rank_count, builder_.rank()), last);
    }

  private:
    SegmentOps run(const Segment& segment) {
        const Slice source = segment.of(contribution(builder_, request_));
        const Slice target = segment.of(builder_.output(0, request_.bytes));
        const OpId published = builder_.publish(source, segment.after);
        OpIds last = {published};
        barrier(builder_, facts_, sockets_.team(), last);
        const Slice own = part_of(target, sockets_.index());
        if (own.length > 0) {
            combine_in_socket(source, last);
            combine_over_sockets(own, last);
            fetch(own, last);
        }
        barrier(builder_, facts_, sockets_.team(), last);
        read_socket(target, last);
        return {published, std::move(last)};
    }

    void combine_in_socket(Slice source, OpIds& last) {
        std::vector<Slice> operands;
        for (const Rank peer : sockets_.members(sockets_.own())) {
            operands.push_back(at_rank(peer, part_of(source, sockets_.index())));
        }
        last = {builder_.reduce(operands, partial(operands.front().length), last)};
    }

    /// Combines a tile up the tree over the sockets: to the result `target` in the first socket. In
    /// other sockets it tells the parent, which reads the partial result.
    void combine_over_sockets(Slice target, OpIds& last) {
        const Slice own = partial(target.length);
        Slice sum = own;
        for (unsigned level = 0; level < node_.levels(); ++level) {
            if (node_.children(level).empty()) {
                continue; // The last socket may have none at a distance.
            }
            OpIds ready = last;
            std::vector<Slice> operands = {sum};
            for (const Rank child : node_.children(level)) {
                ready.push_back(builder_.await(colleague(child)));
                operands.push_back(at_rank(colleague(child), own));
            }
            const bool finishes = node_.parent() == kNoRank && level + 1 == node_.levels();
            sum = finishes ? target : own;
            last = {builder_.reduce(operands, sum, ready)};
        }
        if (node_.parent() != kNoRank) {
            builder_.signal(colleague(node_.parent()), last);
        }
    }

    /// Copies the result of a tile from the parent in the tree, and lets the children and the ranks
    /// of the socket read it here.
    void fetch(Slice target, OpIds& last) {
        if (node_.parent() != kNoRank) {
            const Rank from = colleague(node_.parent());
            const OpId ready = builder_.await(from);
            last = {builder_.copy(at_rank(from, target), target, std::array{ready, last.front()})};
        }
        last = {builder_.publish(target, last)};
        for (const Rank child : node_.children()) {
            builder_.signal(colleague(child), last);
        }
    }

    /// Copies the tiles of this socket's other ranks.
    void read_socket(Slice target, OpIds& last) {
        OpIds copies = last;
        for (Rank step = 1; step <= tiles_; ++step) {
            const Rank index = (sockets_.index() + step) % tiles_;
            const Slice tile = part_of(target, index);
            if (index != sockets_.index() && tile.length > 0) {
                copies.push_back(
                    builder_.copy(at_rank(member(sockets_.own(), index), tile), tile, last));
            }
        }
        last = std::move(copies);
    }

    Rank member(std::size_t socket, Rank index) const {
        return sockets_.members(socket)[static_cast<std::size_t>(index)];
    }
    /// Returns the rank that has the same tile in another socket.
    Rank colleague(Rank socket) const {
        return member(static_cast<std::size_t>(socket), sockets_.index());
    }
    Slice part_of(Slice segment, Rank index) const {
        return index < tiles_ ? tile_of(segment, index, tiles_, request_.element_bytes)
                              : part(segment, 0, 0);
    }
    Slice partial(std::uint64_t bytes) const { return part(partial_, 0, bytes); }

    Builder& builder_;
    const Facts& facts_;
    const graph::Request& request_;
    Sockets sockets_;
    Rank tiles_;
    KnomialNode node_;
    Segments segments_;
    Slice partial_;
};

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceTiledHierarchical.name);
    Hierarchy(builder, facts, request).run();
    return builder.finish();
}

constexpr auto kNeeds = peer_needs(kSegmentsFit<kPlaces>, kSeveralSockets, kSocketsInOrder);

} // namespace

const Algorithm kAllreduceTiledHierarchical = {
    .name = "tiled_hierarchical",
    .collective = graph::Collective::allreduce,
    .summary = "tiles within sockets, trees over them for each tile (Li, Hoefler, Snir 2013)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
