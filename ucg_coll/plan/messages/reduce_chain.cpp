// Pipelined chain reduction with an arm on either side of the root: segments come from the first
// rank upwards and from the last rank downwards, so that operands meet in rank order at any root.
#include <algorithm>
#include <array>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Each segment has its own buffer while the previous one is still on its way.
constexpr std::uint32_t kRotation = 2;

/// Returns the number of links of the longer arm.
Rank hops(Rank count, Rank root) {
    return std::max(root, count - 1 - root);
}

/// Combines what `from` sends with this rank's own `piece` and passes the result to `to`. Operands
/// of lower ranks come first: `from_is_lower` tells which arm this is.
void relay(Builder& builder, Rank from, Rank to, bool from_is_lower, Slice piece, Slice inbox,
           Slice partial) {
    builder.recv(from, inbox);
    if (from_is_lower) {
        builder.reduce(std::array{inbox, piece}, inbox);
        builder.send(to, inbox);
    } else {
        builder.reduce(std::array{piece, inbox}, partial);
        builder.send(to, partial);
    }
}

/// Appends the ops for one segment at a rank other than the root.
void pass_towards_root(Builder& builder, const Team& team, Rank root, Slice piece,
                       std::span<const Slice> buffers) {
    const Rank index = team.index();
    const bool lower_arm = index < root;
    const Rank to = team.rank(lower_arm ? index + 1 : index - 1);
    if (index == 0 || index + 1 == team.size()) { // An end of the chain.
        builder.send(to, piece);
        return;
    }
    const Rank from = team.rank(lower_arm ? index - 1 : index + 1);
    relay(builder, from, to, lower_arm, piece, buffers[0], buffers[1]);
}

/// Appends the ops for one segment at the root, where the arms meet.
void gather_arms(Builder& builder, const Team& team, Slice piece, Slice result,
                 std::span<const Slice> buffers) {
    const Rank index = team.index();
    std::vector<Slice> operands;
    if (index > 0) {
        builder.recv(team.rank(index - 1), buffers[0]);
        operands.push_back(buffers[0]);
    }
    operands.push_back(piece);
    if (index + 1 < team.size()) {
        builder.recv(team.rank(index + 1), buffers[1]);
        operands.push_back(buffers[1]);
    }
    reduce_to(builder, operands, result);
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse).with_working_set(2 * request.bytes);
    const Rank count = request.rank_count;
    const std::uint64_t segment =
        reduce_chain_segment(link, count, request.root, request.bytes, operator_of(request));
    const double span_ns = reduce_chain_ns(link, count, request.root, request.bytes, segment);
    return oversubscribed_pieces_ns(
        facts, link, request, span_ns, divide_up(request.bytes, segment), [&](const Work& work) {
            return work.link().message_ns(segment) + work.link().reduce_ns(2, segment);
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceChain.name);
    const Link link = flat_link(facts, Traffic::sparse).with_working_set(2 * request.bytes);
    const std::uint64_t segment = reduce_chain_segment(link, request.rank_count, request.root,
                                                       request.bytes, operator_of(request));
    reduce_chain(builder, Team::whole(request.rank_count, rank), request.root,
                 contribution(builder, request), builder.output(0, request.bytes), segment);
    return builder.finish();
}

} // namespace

void reduce_chain(Builder& builder, const Team& team, Rank root, Slice source, Slice target,
                  std::uint64_t segment) {
    if (team.size() == 1) {
        builder.copy(source, target);
        return;
    }
    if (source.length == 0) {
        return;
    }
    const bool end = team.index() != root && (team.index() == 0 || team.index() + 1 == team.size());
    const Builder::Segments segments = builder.begin_repeat(source.length, segment, kRotation);
    std::array<Slice, 2> buffers;
    for (Slice& buffer : buffers) {
        if (!end) {
            buffer = builder.rotating_scratch(segments.first_segment, kRotation);
        }
    }
    const Slice piece = advance(part(source, 0, segments.first_segment));
    if (team.index() == root) {
        gather_arms(builder, team, piece, advance(part(target, 0, segments.first_segment)),
                    buffers);
    } else {
        pass_towards_root(builder, team, root, piece, buffers);
    }
    builder.end_repeat();
}

double reduce_chain_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes,
                       std::uint64_t segment) {
    if (count == 1 || bytes == 0) {
        return link.copy_ns(bytes);
    }
    const auto further = static_cast<double>(divide_up(bytes, segment) - 1);
    const bool two_arms = root > 0 && root + 1 < count;
    // Ranks between the ends send on from where a segment came, which is not combined on its way.
    const Link parts = further > 0 ? link.in_segments() : link;
    const double combining_ns = further > 0 && count > 2 ? parts.reduce_ns(2, segment, bytes)
                                                         : parts.combining_ns(segment, bytes);
    const auto hop_ns = [&](const Link& hop) { return hop.message_ns(segment) + combining_ns; };
    const Source source = count > 2 ? Source::fresh : Source::settled;
    return link.along_ns(hops(count, root), count, hop_ns) +
           further * link.chain_gap_ns(segment, combining_ns, source) +
           std::max(link.receives_before_ns(two_arms ? 2 : 1, bytes),
                    link.relays_before_ns(further + 1, segment));
}

std::uint64_t reduce_chain_segment(const Link& link, Rank count, Rank root, std::uint64_t bytes,
                                   Operator op) {
    const double fixed_ns = link.relay_gap_fixed_ns() + link.reduce_ns(2, 0);
    const double per_byte_ns =
        link.relay_gap_per_byte_ns() + (link.reduce_ns(2, 1) - link.reduce_ns(2, 0));
    const std::uint64_t segment = pipeline_segment(bytes, std::max(hops(count, root), 2), fixed_ns,
                                                   per_byte_ns, op.element_bytes);
    // That length is best for a single call; in a row of calls each further message keeps the ranks
    // of the chain busy.
    const std::uint64_t whole = std::max(round_up(bytes, op.element_bytes), op.element_bytes);
    const auto cheaper = [&](std::uint64_t one, std::uint64_t other) {
        return reduce_chain_ns(link, count, root, bytes, one) <
                       reduce_chain_ns(link, count, root, bytes, other)
                   ? one
                   : other;
    };
    const std::uint64_t best = cheaper(whole, segment);
    return count > 2 ? best : cheaper(link.segment_copied_twice(bytes, op.element_bytes), best);
}

const Algorithm kReduceChain = {
    .name = "chain",
    .collective = graph::Collective::reduce,
    .summary = "in segments along the ranks from both ends to the root",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
