// Allreduce by trees in shared memory: vectors are combined up n-ary trees, within sockets and then
// over them, and the result is read in one stage or two. Li, Hoefler and Snir (HPDC 2013), section
// 2.2.
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/stages.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

// When a segment arrives at the first leader, the segment before has been read everywhere.
constexpr std::uint32_t kRotation = 1;
// Two staging buffers and partial results.
constexpr std::uint32_t kPlaces = 3;

Segments segments_of(const Facts& facts, const graph::Request& request) {
    return segments_for(facts.shared, request.bytes, request.element_bytes, kRotation, kPlaces);
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Segments segments = segments_of(facts, request);
    const unsigned radix = climb_radix(facts, segments);
    const auto segment_ns = [&](std::uint64_t bytes) {
        return climb_turns_ns(facts, radix) + turn_ns(facts.profile, facts.ranks_per_cpu) +
               climb_segment_ns(facts, radix, bytes, request.bytes) +
               read_segment_ns(facts, bytes, request.bytes);
    };
    const double span_ns = 2 * publish_ns(facts, request.bytes) + barrier_ns(facts) +
                           for_segments_ns(segments, segment_ns);
    const double fill_ns = barrier_ns(facts) + segment_ns(segments.segment_bytes);
    return oversubscribed_tree_ns(
        facts, host_link(facts), 2 * request.bytes, span_ns, fill_ns, [&](const Work& work) {
            const double segment_count = static_cast<double>(segments.count());
            return climb_work_ns(facts, work, request, segment_count) +
                   work.publish_to_all_ns(request.bytes) / request.rank_count +
                   all_but_one(request.rank_count) *
                       (work.read_same_ns(request.bytes) +
                        2 * segment_count * work.link().message_ns(0));
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceNumaTree.name);
    const Segments segments = segments_of(facts, request);
    const Sockets sockets(facts.placement, rank, member_order(request));
    const Climb climb(builder, sockets, segments, climb_radix(facts, segments));
    builder.staging_buffer(segments.staging_buffer_bytes());
    Stages stages(builder, facts);
    if (read_in_two_stages(facts, segments.segment_bytes)) {
        stages.add_two_stages(sockets);
    } else {
        stages.add_one_stage(request.rank_count, 0);
    }
    const Slice source = contribution(builder, request);
    const Slice target = builder.output(0, request.bytes);
    OpIds last = for_each_segment(builder, segments, 1, [&](const Segment& segment) {
        const SegmentOps up = climb.run(segment, source, source, target);
        const SegmentOps down = stages.read(segment, at_rank(0, target), target, up.last);
        return SegmentOps{up.first, down.last};
    });
    barrier(builder, facts, Team::whole(request.rank_count, rank), last);
    return builder.finish();
}

constexpr auto kNeeds = peer_needs(kSegmentsFit<kPlaces>, kSocketsInOrder);

} // namespace

const Algorithm kAllreduceNumaTree = {
    .name = "numa_tree",
    .collective = graph::Collective::allreduce,
    .summary = "up n-ary trees in shared memory and down again (Li, Hoefler, Snir 2013)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
