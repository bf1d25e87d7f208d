// Tree barrier: arrivals are gathered up a k-ary tree, the release goes down the same tree. Half
// the signals of dissemination at twice the depth. Li, Hoefler, Snir, "NUMA-aware shared-memory
// collective communication for MPI", 2013, section 2.6.
#include <algorithm>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/crowding.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

/// The members below `index`: radix * index + 1, ... + radix.
struct Children {
    std::int64_t first;
    std::int64_t last; ///< One past the last.
};

Children children_of(const Team& team, unsigned radix) {
    const std::int64_t first = std::int64_t{team.index()} * radix + 1;
    return {first, std::min<std::int64_t>(first + radix, team.size())};
}

Rank parent_of(const Team& team, unsigned radix) {
    return team.rank((team.index() - 1) / static_cast<Rank>(radix));
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse);
    return barrier_there_and_back_ns(facts, link, request.rank_count);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBarrierKaryTree.name);
    const Team team = Team::whole(request.rank_count, rank);
    const unsigned radix =
        barrier_tree_radix(flat_link(facts, Traffic::sparse), request.rank_count);
    OpIds last;
    barrier_arrive(builder, team, radix, last);
    barrier_release(builder, team, radix, last);
    return builder.finish();
}

} // namespace

void barrier_arrive(Builder& builder, const Team& team, unsigned radix, OpIds& last) {
    OpIds arrived = last;
    const Children children = children_of(team, radix);
    for (std::int64_t child = children.first; child < children.last; ++child) {
        arrived.push_back(builder.await(team.rank(static_cast<Rank>(child)), last));
    }
    last = std::move(arrived);
    if (team.index() != 0) {
        last = {builder.signal(parent_of(team, radix), last)};
    }
}

void barrier_release(Builder& builder, const Team& team, unsigned radix, OpIds& last) {
    if (team.index() != 0) {
        last = {builder.await(parent_of(team, radix), last)};
    }
    OpIds released = last;
    const Children children = children_of(team, radix);
    for (std::int64_t child = children.first; child < children.last; ++child) {
        released.push_back(builder.signal(team.rank(static_cast<Rank>(child)), last));
    }
    last = std::move(released);
}

double barrier_tree_ns(const Link& link, Rank count, unsigned radix) {
    unsigned depth = 0; // Of the last member, which is on the lowest level.
    for (Rank index = count - 1; index > 0; index = (index - 1) / static_cast<Rank>(radix)) {
        ++depth;
    }
    // The last child of each parent waits for its siblings.
    const Rank fan = std::min(static_cast<Rank>(radix), count - 1);
    return depth * (link.message_ns(0) + std::max(fan - 1, 0) * link.busy_ns(0));
}

unsigned barrier_tree_radix(const Link& link, Rank count) {
    return cheapest_radix([&](unsigned radix) { return barrier_tree_ns(link, count, radix); },
                          link.radix_max());
}

double barrier_there_and_back_ns(const Facts& facts, const Link& link, Rank count) {
    const double span_ns = 2 * barrier_tree_ns(link, count, barrier_tree_radix(link, count));
    return crowded_ns(facts, link, 0, span_ns, [&](const Work& work) {
        return 2 * all_but_one(count) * work.link().message_ns(0);
    });
}

const Algorithm kBarrierKaryTree = {
    .name = "kary_tree",
    .collective = graph::Collective::barrier,
    .summary = "arrivals go up a k-ary tree, the release comes down (Li, Hoefler, Snir 2013)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
