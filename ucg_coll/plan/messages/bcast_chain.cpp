// Pipelined chain broadcast: each rank passes segments on to the next. Asymptotically every link
// carries the vector once, however many ranks there are.
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse).with_working_set(2 * request.bytes);
    const std::uint64_t segment = bcast_chain_segment(link, request.rank_count, request.bytes);
    const double span_ns = bcast_chain_ns(link, request.rank_count, request.bytes, segment);
    return oversubscribed_pieces_ns(
        facts, link, request, span_ns, divide_up(request.bytes, segment),
        [&](const Work& work) { return work.link().message_ns(segment); });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastChain.name);
    const Link link = flat_link(facts, Traffic::sparse).with_working_set(2 * request.bytes);
    bcast_chain(builder, Team::whole(request.rank_count, rank), request.root,
                bcast_data(builder, request),
                bcast_chain_segment(link, request.rank_count, request.bytes));
    return builder.finish();
}

} // namespace

void bcast_chain(Builder& builder, const Team& team, Rank root, Slice data, std::uint64_t segment) {
    const Rank count = team.size();
    if (count == 1 || data.length == 0) {
        return;
    }
    const Rank next = team.index() + 1 == count ? 0 : team.index() + 1;
    const Rank previous = team.index() == 0 ? count - 1 : team.index() - 1;
    const Builder::Segments segments = builder.begin_repeat(data.length, segment);
    const Slice piece = advance(part(data, 0, segments.first_segment));
    if (team.index() != root) {
        builder.recv(team.rank(previous), piece);
    }
    if (next != root) {
        builder.send(team.rank(next), piece);
    }
    builder.end_repeat();
}

double bcast_chain_ns(const Link& link, Rank count, std::uint64_t bytes, std::uint64_t segment) {
    if (count == 1 || bytes == 0) {
        return 0;
    }
    const auto further = static_cast<double>(divide_up(bytes, segment) - 1);
    // A rank to which no further segment comes helps to copy what it sends.
    const Sender sender = further > 0 ? Sender::busy : Sender::waits;
    const auto hop_ns = [&](const Link& hop) { return hop.message_ns(segment, sender); };
    return link.along_ns(count - 1, count, hop_ns) + further * link.chain_gap_ns(segment) +
           link.sends_before_ns(further + 1, segment);
}

std::uint64_t bcast_chain_segment(const Link& link, Rank count, std::uint64_t bytes) {
    const double fixed_ns = link.relay_gap_fixed_ns();
    return pipeline_segment(bytes, count - 1, fixed_ns, link.relay_gap_per_byte_ns(), 1);
}

const Algorithm kBcastChain = {
    .name = "chain",
    .collective = graph::Collective::bcast,
    .summary = "in segments from each rank to the next",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
