// Allreduce by trees in shared memory: vectors are combined up n-ary trees, within sockets and then
// over them, and the result is read in one stage or two. Li, Hoefler and Snir (HPDC 2013), section
// 2.2.
#include "ucg_coll/plan/parts/crowding.hpp"
#include "ucg_coll/plan/peer_memory/stages.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

// A strip's arrival at the first leader says that the strip before has been read everywhere.
constexpr std::uint32_t kRotation = 1;
// Two windows and partial results.
constexpr std::uint32_t kPlaces = 3;

Strips strips_of(const Facts& facts, const graph::Request& request) {
    return strips_for(facts.shared, request.bytes, request.element_bytes, kRotation, kPlaces);
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Strips strips = strips_of(facts, request);
    const unsigned radix = climb_radix(facts, strips);
    const auto strip_ns = [&](std::uint64_t bytes) {
        return climb_turns_ns(facts, radix) + turn_ns(facts.profile, facts.ranks_per_cpu) +
               climb_strip_ns(facts, radix, bytes, request.bytes) +
               read_strip_ns(facts, bytes, request.bytes);
    };
    const double span_ns =
        2 * publish_ns(facts, request.bytes) + meet_ns(facts) + for_strips_ns(strips, strip_ns);
    const double fill_ns = meet_ns(facts) + strip_ns(strips.strip_bytes);
    return crowded_tree_ns(
        facts, host_link(facts), 2 * request.bytes, span_ns, fill_ns, [&](const Work& work) {
            const double strip_count = static_cast<double>(strips.count());
            return climb_work_ns(facts, work, request, strip_count) +
                   work.publish_ns(request.bytes) / request.rank_count +
                   all_but_one(request.rank_count) *
                       (work.read_ns(request.bytes) + 2 * strip_count * work.link().message_ns(0));
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceNumaTree.name);
    const Strips strips = strips_of(facts, request);
    const Sockets sockets(facts.placement, rank, member_order(request));
    const Climb climb(builder, sockets, strips, climb_radix(facts, strips));
    builder.window(strips.window_bytes());
    Stages stages(builder, facts);
    if (read_in_two_stages(facts, strips.strip_bytes)) {
        stages.add_two_stages(sockets);
    } else {
        stages.add_one_stage(request.rank_count, 0);
    }
    const Slice source = contribution(builder, request);
    const Slice target = builder.output(0, request.bytes);
    OpIds last = for_each_strip(builder, strips, 1, [&](const Strip& strip) {
        const StripOps up = climb.run(strip, source, source, target);
        const StripOps down = stages.read(strip, at_rank(0, target), target, up.last);
        return StripOps{up.first, down.last};
    });
    meet(builder, facts, Team::whole(request.rank_count, rank), last);
    return builder.finish();
}

constexpr auto kNeeds = peer_needs(kStripsFit<kPlaces>, kSocketsInOrder);

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
