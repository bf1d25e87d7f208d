// Reductions in which ranks read one another's memory, by Li, Hoefler and Snir (HPDC 2013),
// sections 2.2 and 2.4. Vectors are combined up n-ary trees over the sockets, or by tiles, which
// the root collects.
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/stages.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::OpId;
using graph::Slice;

// While one segment is read, the next one is made.
constexpr std::uint32_t kRotation = 2;
// A staging buffer and partial results of as many segments.
constexpr std::uint32_t kTreePlaces = 2 * kRotation;
// A staging buffer, tiles, and the root's vector.
constexpr std::uint32_t kTiledPlaces = 3 * kRotation;

Segments segments_of(const Facts& facts, const graph::Request& request, std::uint32_t places) {
    return segments_for(facts.shared, request.bytes, request.element_bytes, kRotation, places);
}

double tree_ns(const Facts& facts, const graph::Request& request) {
    const Segments segments = segments_of(facts, request, kTreePlaces);
    const unsigned radix = climb_radix(facts, segments);
    const double ends_ns = host_link(facts).message_ns(0) + climb_turns_ns(facts, radix);
    const double span_ns = climb_by_segments_ns(facts, segments);
    const double fill_ns =
        ends_ns + climb_segment_ns(facts, radix, segments.segment_bytes, request.bytes);
    return oversubscribed_tree_ns(
        facts, host_link(facts), 2 * request.bytes, span_ns, fill_ns, [&](const Work& work) {
            return climb_work_ns(facts, work, request, static_cast<double>(segments.count()));
        });
}

graph::Schedule build_tree(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceNumaTree.name);
    const Segments segments = segments_of(facts, request, kTreePlaces);
    const Sockets sockets(facts.placement, rank, member_order(request), request.root);
    const Climb climb(builder, sockets, segments, climb_radix(facts, segments));
    builder.staging_buffer(segments.staging_buffer_bytes());
    climb_by_segments(builder, climb, segments, contribution(builder, request),
                      builder.input(0, request.bytes), builder.output(0, request.bytes));
    return builder.finish();
}

double tiled_ns(const Facts& facts, const graph::Request& request) {
    const Segments segments = segments_of(facts, request, kTiledPlaces);
    const auto operands = static_cast<unsigned>(request.rank_count);
    const Link link = host_link(facts);
    const auto segment_ns = [&](std::uint64_t bytes) {
        const Tiles tiles = tiles_of(bytes, request.rank_count, request.element_bytes);
        const double read_ns = root_reads_others_ns(facts, request.root, tiles.bytes) *
                               tiles.count / request.rank_count;
        const double combine_ns =
            combine_tile_ns(facts, tiles, operands, request.bytes + tiles.bytes);
        // A rank that has no tile to combine tells the root at once.
        const double told_ns = link.message_ns(0) - (tiles.count > 1 ? 0 : combine_ns);
        return barrier_ns(facts) + combine_ns + std::max(told_ns, link.take_overhead_ns()) +
               link.to_all_ns(operands - 2, request.rank_count,
                              [](const Link& way) { return way.take_overhead_ns(); }) +
               read_and_copy_ns(facts, read_ns, bytes - tiles.bytes, request.bytes);
    };
    // The root's vector is always copied to its staging buffer.
    const double span_ns = copy_to_staging_ns(facts, request.bytes) + barrier_ns(facts) +
                           for_segments_ns(segments, segment_ns);
    return oversubscribed_ns(
        facts, host_link(facts), request.bytes, span_ns, [&](const Work& work) {
            // While the root collects, the others of its processor wait.
            return work.copy_to_staging_ns(request.bytes) / request.rank_count +
                   work.publish_ns(request.bytes) * all_but_one(request.rank_count) +
                   work.read_ns(request.bytes) + work.read_ns(request.bytes) / facts.ranks_per_cpu +
                   barriers_work_ns(facts, segments.count());
        });
}

/// One rank's part, one segment after the other.
class TiledReduce {
  public:
    TiledReduce(Builder& builder, const Facts& facts, const graph::Request& request)
        : builder_(builder), facts_(facts), request_(request),
          team_(Team::whole(request.rank_count, builder.rank())),
          segments_(segments_of(facts, request, kTiledPlaces)),
          tiles_(builder.shared_scratch(segments_.staging_buffer_bytes())),
          roots_(builder.shared_scratch(segments_.staging_buffer_bytes())) {}

    void run() {
        builder_.staging_buffer(segments_.staging_buffer_bytes());
        OpIds last = for_each_segment(builder_, segments_, 1,
                                      [&](const Segment& segment) { return run(segment); });
        barrier(builder_, facts_, team_, last); // Nobody leaves while its vector or tile is read.
    }

  private:
    SegmentOps run(const Segment& segment) {
        const OpId shown = show(segment);
        OpIds last = {shown};
        barrier(builder_, facts_, team_, last);
        combine(segment, last);
        if (is_root()) {
            collect(segment, last);
        } else {
            last = {builder_.signal(request_.root, last)};
        }
        return {shown, std::move(last)};
    }

    /// Lets the others read this rank's vector. Only the root knows whether it is in place, so it
    /// always shows a copy.
    OpId show(const Segment& segment) {
        const Slice own = segment.of(contribution(builder_, request_));
        return is_root() ? builder_.copy(own, segment.scratch(roots_, segments_), segment.after)
                         : builder_.publish(own, segment.after);
    }

    void combine(const Segment& segment, OpIds& last) {
        std::vector<Slice> operands;
        for (const Rank peer : reading_order(team_, request_.commutative)) {
            const Slice vector = peer == request_.root
                                     ? segment.scratch(roots_, segments_)
                                     : segment.of(builder_.input(0, request_.bytes));
            operands.push_back(at_rank(peer, tile(vector, team_.index())));
        }
        const Slice target = is_root() ? result(segment) : segment.scratch(tiles_, segments_);
        const OpId combined = builder_.reduce(operands, tile(target, team_.index()), last);
        if (combined != graph::kNoOp) {
            last = {combined};
        }
    }

    void collect(const Segment& segment, OpIds& last) {
        for (Rank step = 1; step < team_.size(); ++step) {
            const Rank peer = (team_.index() + step) % team_.size();
            const OpId ready = builder_.await(peer);
            const OpId copied =
                builder_.copy(at_rank(peer, tile(segment.scratch(tiles_, segments_), peer)),
                              tile(result(segment), peer), std::array{ready});
            last.push_back(copied == graph::kNoOp ? ready : copied);
        }
    }

    bool is_root() const { return builder_.rank() == request_.root; }
    Slice result(const Segment& segment) const {
        return segment.of(builder_.output(0, request_.bytes));
    }
    Slice tile(Slice vector, Rank index) const {
        return tile_of(vector, index, team_.size(), request_.element_bytes);
    }

    Builder& builder_;
    const Facts& facts_;
    const graph::Request& request_;
    Team team_;
    Segments segments_;
    Slice tiles_;
    Slice roots_;
};

graph::Schedule build_tiled(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceTiled.name);
    TiledReduce(builder, facts, request).run();
    return builder.finish();
}

constexpr Need kTreeInOrder = {
    "a commutative operator, or root 0 and sockets of consecutive ranks",
    [](const Facts& facts, const graph::Request& request) {
        return request.commutative || (request.root == 0 && facts.shared.sockets_are_contiguous);
    }};
constexpr auto kTreeNeeds = peer_needs(kSegmentsFit<kTreePlaces>, kTreeInOrder);
constexpr auto kTiledNeeds = peer_needs(kSegmentsFit<kTiledPlaces>);

} // namespace

const Algorithm kReduceNumaTree = {
    .name = "numa_tree",
    .collective = graph::Collective::reduce,
    .summary = "up n-ary trees in shared memory, sockets first (Li, Hoefler, Snir 2013)",
    .cost_ns = tree_ns,
    .build = build_tree,
    .needs = kTreeNeeds,
};

const Algorithm kReduceTiled = {
    .name = "tiled",
    .collective = graph::Collective::reduce,
    .summary = "each rank combines a tile in shared memory, the root collects them",
    .cost_ns = tiled_ns,
    .build = build_tiled,
    .needs = kTiledNeeds,
};

} // namespace ucg::plan
