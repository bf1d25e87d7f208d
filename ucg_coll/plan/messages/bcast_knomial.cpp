// K-nomial tree broadcast: the root sends to the largest subtrees first. Radix 2 is the binomial
// tree.
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/crowding.hpp"
#include "ucg_coll/plan/parts/knomial.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse);
    const unsigned radix = bcast_knomial_radix(link, request.rank_count, request.bytes);
    const double span_ns = bcast_knomial_ns(link, request.rank_count, request.bytes, radix);
    return crowded_ns(facts, link, 2 * request.bytes, span_ns, [&](const Work& work) {
        return all_but_one(request.rank_count) * work.link().message_ns(request.bytes);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastKnomial.name);
    const Link link = flat_link(facts, Traffic::sparse);
    bcast_knomial(builder, Team::whole(request.rank_count, rank), request.root,
                  bcast_data(builder, request),
                  bcast_knomial_radix(link, request.rank_count, request.bytes));
    return builder.finish();
}

} // namespace

void bcast_knomial(Builder& builder, const Team& team, Rank root, Slice data, unsigned radix) {
    const KnomialNode node(team.size(), root, team.index(), radix);
    if (node.parent() != kNoRank) {
        builder.recv(team.rank(node.parent()), data);
    }
    for (unsigned level = node.levels(); level-- > 0;) {
        for (const Rank child : node.children(level)) {
            builder.send(team.rank(child), data);
        }
    }
}

double bcast_knomial_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix) {
    const unsigned depth = tree_depth(count, radix);
    if (depth == 0) {
        return 0;
    }
    const auto further_ns = [&](const Link& level) {
        return level.passing_on_ns(bytes, Sender::waits);
    };
    const auto siblings_ns = [&](const Link& level) { return (radix - 2) * level.busy_ns(bytes); };
    return link.message_ns(bytes, Sender::waits) +
           link.rounds_ns(0, depth - 1, radix, Link::Partners::aligned, further_ns) +
           link.rounds_ns(0, depth, radix, Link::Partners::aligned, siblings_ns) +
           link.sends_before_ns(link.far_children(count, radix), bytes);
}

unsigned bcast_knomial_radix(const Link& link, Rank count, std::uint64_t bytes) {
    return cheapest_radix(
        [&](unsigned radix) { return bcast_knomial_ns(link, count, bytes, radix); },
        link.radix_max());
}

const Algorithm kBcastKnomial = {
    .name = "knomial",
    .collective = graph::Collective::bcast,
    .summary = "down a k-nomial tree, largest subtrees first",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
