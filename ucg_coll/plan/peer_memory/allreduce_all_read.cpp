// Flat allreduce: every rank reads all vectors and combines them for itself, so that no rank reads
// what another one has computed. For two ranks it moves no more bytes than any other algorithm.
#include <algorithm>

#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/pieces.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

// The place of a segment is used again two segments later. By then all ranks have announced the
// segment between, and so have read this one.
constexpr std::uint32_t kRotation = 2;

Segments segments_of(const Facts& facts, const graph::Request& request) {
    return segments_for(facts.shared, request.bytes, request.element_bytes, kRotation, kRotation);
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const auto others = static_cast<std::uint64_t>(request.rank_count - 1);
    const Segments segments = segments_of(facts, request);
    const double read_ns = for_segments_ns(segments, [&](std::uint64_t bytes) {
        return barrier_ns(facts) +
               read_and_combine_ns(facts, read_others_ns(facts, Readers::at_once, bytes),
                                   static_cast<unsigned>(others) + 1, bytes, 2 * request.bytes);
    });
    const double span_ns = publish_ns(facts, request.bytes) + barrier_ns(facts) + read_ns;
    return oversubscribed_ns(
        facts, host_link(facts), 2 * request.bytes, span_ns, [&](const Work& work) {
            return work.publish_to_all_ns(request.bytes) +
                   work.read_same_ns(others * request.bytes) + work.combine_ns(request.bytes) +
                   barriers_work_ns(facts, segments.count());
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceAllRead.name);
    const Team team = Team::whole(request.rank_count, rank);
    const Segments segments = segments_of(facts, request);
    const Slice source = builder.input(0, request.bytes);
    const Slice target = builder.output(0, request.bytes);
    builder.staging_buffer(segments.staging_buffer_bytes());
    OpIds last = for_each_segment(builder, segments, 1, [&](const Segment& segment) {
        const graph::OpId published = builder.publish(segment.of(source), segment.after);
        OpIds known = {published};
        barrier(builder, facts, team, known);
        std::vector<Slice> operands;
        for (const Rank peer : reading_order(team, false)) {
            operands.push_back(at_rank(peer, segment.of(source)));
        }
        return SegmentOps{published, {builder.reduce(operands, segment.of(target), known)}};
    });
    barrier(builder, facts, team, last); // Nobody leaves while others read its vector.
    return builder.finish();
}

constexpr auto kNeeds = peer_needs(kSegmentsFit<kRotation>, kNotInPlace);

} // namespace

const Algorithm kAllreduceAllRead = {
    .name = "all_read",
    .collective = graph::Collective::allreduce,
    .summary = "every rank reads and combines all vectors for itself",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
