// Broadcasts in which the others read the root's memory. Li, Hoefler and Snir (HPDC 2013), section
// 2.2: in one stage all read the root's vector; in two stages one rank of each socket reads it, and
// the others of its socket read the copy that it made. Or each rank reads a block, and the cheapest
// allgather brings all blocks to all ranks.
#include "ucg_coll/plan/messages/block_best.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/stages.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

// The root publishes one segment while the others read the one before.
constexpr std::uint32_t kRotation = 2;

Segments segments_of(const Facts& facts, const graph::Request& request) {
    return segments_for(facts.shared, request.bytes, 1, kRotation, kRotation);
}

/// Returns the time of a broadcast that takes `span_ns` where each rank has a processor, and in
/// which others read `publishers` of the ranks.
double oversubscribed_stages_ns(const Facts& facts, const graph::Request& request, double span_ns,
                                unsigned publishers) {
    const double segments = static_cast<double>(segments_of(facts, request).count());
    const Rank count = request.rank_count;
    return oversubscribed_ns(
        facts, host_link(facts), request.bytes, span_ns, [&](const Work& work) {
            return work.publish_to_all_ns(request.bytes) * publishers / count +
                   all_but_one(count) * (work.read_same_ns(request.bytes) +
                                         2 * segments * work.link().message_ns(0));
        });
}

double one_stage_ns(const Facts& facts, const graph::Request& request) {
    const double read_ns =
        cost::one_stage_broadcast_ns(known_node(facts, request.root), request.bytes);
    return oversubscribed_stages_ns(facts, request,
                                    read_once_ns(facts, segments_of(facts, request), read_ns), 1);
}

double two_stage_ns(const Facts& facts, const graph::Request& request) {
    const cost::NodeModel& node = facts.shared.node;
    const double span_ns =
        read_twice_ns(facts, known_node(facts, request.root), segments_of(facts, request));
    return oversubscribed_stages_ns(facts, request, span_ns, node.sockets);
}

graph::Schedule run(Builder& builder, const Facts& facts, const graph::Request& request,
                    const Stages& stages) {
    const Segments segments = segments_of(facts, request);
    builder.staging_buffer(segments.staging_buffer_bytes());
    const Slice roots = at_rank(request.root, builder.input(0, request.bytes));
    const Slice own = bcast_data(builder, request);
    read_by_segments(builder, stages, segments, roots, own);
    return builder.finish();
}

graph::Schedule build_one_stage(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastOneStage.name);
    Stages stages(builder, facts);
    stages.add(Team::rotated(request.rank_count, rank, request.root));
    return run(builder, facts, request, stages);
}

graph::Schedule build_two_stage(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastTwoStage.name);
    const Sockets sockets(facts.placement, rank, MemberOrder::by_place, request.root);
    Stages stages(builder, facts);
    if (sockets.leads()) {
        stages.add(sockets.leaders());
    }
    stages.add(sockets.team());
    return run(builder, facts, request, stages);
}

double read_allgather_ns(const Facts& facts, const graph::Request& request) {
    graph::Request scatter = request;
    scatter.collective = graph::Collective::scatter;
    scatter.bytes = bcast_block_bytes(request.rank_count, request.bytes);
    const Link link = host_link(facts);
    const Rank count = request.rank_count;
    const double there_and_back_ns = kScatterPeerRead.cost_ns(facts, scatter);
    // A rank goes on once it has read and told its parent, and the root once it has told its
    // children.
    const double back_ns = facts.ranks_per_cpu > 1 ? 0 : link.message_ns(0); // All turns count.
    // Of two ranks one reads a block and receives the other.
    const double taken_ns = count == 2 ? link.gap_to_one_ns(scatter.bytes) : 0;
    const double told_ns =
        publish_ns(facts, request.bytes) + barrier_tree_radix(link, count) * link.gap_ns(0);
    return std::max(there_and_back_ns,
                    after_scatter_ns(count, request.bytes, there_and_back_ns - back_ns + taken_ns,
                                     told_ns, bcast_allgather_ns(facts, request)));
}

graph::Schedule build_read_allgather(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastReadAllgather.name);
    builder.staging_buffer(request.bytes);
    const Team from_root = Team::rotated(request.rank_count, rank, request.root);
    const unsigned radix = barrier_tree_radix(host_link(facts), from_root.size());
    const Slice roots = builder.input(0, request.bytes);
    const BlockMap blocks = bcast_blocks(from_root, bcast_data(builder, request));
    const Slice own = blocks.block(from_root.index());
    OpIds last;
    if (rank == request.root) {
        last = {builder.publish(roots)};
    }
    barrier_release(builder, from_root, radix, last);
    if (rank != request.root && own.length > 0) {
        const Slice source = bcast_blocks(from_root, roots).block(from_root.index());
        last.push_back(builder.copy(at_rank(request.root, source), own, last));
    }
    barrier_arrive(builder, from_root, radix, last); // The root's vector has been read.
    bcast_allgather(builder, from_root, blocks, bcast_allgather_choice(facts, request),
                    held_by_root);
    return builder.finish();
}

constexpr Need kVectorFits = {
    "staging memory that holds the vector", [](const Facts& facts, const graph::Request& request) {
        return facts.shared.staging_bytes == 0 || request.bytes <= facts.shared.staging_bytes;
    }};

constexpr auto kReadAllgatherNeeds = peer_needs(kVectorFits);
constexpr auto kOneStageNeeds = peer_needs(kSegmentsFit<kRotation>);
constexpr auto kTwoStageNeeds = peer_needs(kSegmentsFit<kRotation>, kSeveralSockets);

} // namespace

const Algorithm kBcastOneStage = {
    .name = "one_stage",
    .collective = graph::Collective::bcast,
    .summary = "all read the root's vector in shared memory (Li, Hoefler, Snir 2013)",
    .cost_ns = one_stage_ns,
    .build = build_one_stage,
    .needs = kOneStageNeeds,
};

const Algorithm kBcastTwoStage = {
    .name = "two_stage",
    .collective = graph::Collective::bcast,
    .summary = "one rank of each socket reads the root's vector, the others its copy",
    .cost_ns = two_stage_ns,
    .build = build_two_stage,
    .needs = kTwoStageNeeds,
};

const Algorithm kBcastReadAllgather = {
    .name = "read_allgather",
    .collective = graph::Collective::bcast,
    .summary = "each rank reads a block of the root's vector, then the cheapest allgather",
    .cost_ns = read_allgather_ns,
    .build = build_read_allgather,
    .needs = kReadAllgatherNeeds,
};

} // namespace ucg::plan
