// Rabenseifner's allreduce ("Optimization of collective reduction operations", 2004):
// reduce-scatter by recursive halving, then allgather by recursive doubling, with the fold to a
// power of two. Long vectors go in segments.
#include <algorithm>
#include <numeric>

#include "ucg_coll/plan/messages/halving.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/parts/segments.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Returns the segments for a vector that is too long for the caches. They are so short that what a
/// rank receives is combined, and what it has combined is sent, while the cache holds it: own and
/// received halves, the result and the partner's copy of it come to two segments, or half the
/// cache.
Segments segments_of(const Facts& facts, const graph::Request& request) {
    constexpr std::uint64_t kSegmentsPerCache = 4;
    const std::uint64_t unit = std::lcm(request.element_bytes, std::uint64_t{kCacheLine});
    const std::uint64_t cache = facts.profile.memory.cache(cost::Cache::l2).capacity_bytes;
    return {request.bytes, std::max(cache / kSegmentsPerCache / unit, std::uint64_t{1}) * unit, 1};
}

/// Returns the price for `bytes` of a vector of `vector_bytes`.
double part_ns(const Link& link, Rank count, std::uint64_t bytes, std::uint64_t element_bytes,
               std::uint64_t vector_bytes) {
    const Rank size = static_cast<Rank>(floor_power_of_two(static_cast<std::uint32_t>(count)));
    const double fold_ns = size == count ? 0
                                         : 2 * link.of_pairs().message_ns(bytes) +
                                               link.reduce_ns(2, bytes, vector_bytes);
    const Source source = folds(count) ? Source::fresh : Source::settled;
    return fold_ns + halving_ns(link, size, bytes, element_bytes, source) +
           doubling_ns(link, size, bytes, element_bytes, Sender::busy) +
           halving_reduce_ns(link, size, bytes, element_bytes, vector_bytes);
}

double segments_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::dense).in_exchanges().in_segments();
    return for_segments_ns(segments_of(facts, request), [&](std::uint64_t bytes) {
        return part_ns(link, request.rank_count, bytes, request.element_bytes, request.bytes);
    });
}

double whole_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * request.bytes),
        5 * request.bytes, [&](const Link& link) {
            return allreduce_rabenseifner_ns(link, request.rank_count, request.bytes,
                                             operator_of(request));
        });
}

/// Does the vector go in segments? Not where ranks take turns on processors: between two turns of a
/// rank the others use its cache.
bool goes_in_segments(const Facts& facts, const graph::Request& request) {
    return facts.ranks_per_cpu <= 1 && request.bytes > segments_of(facts, request).segment_bytes &&
           segments_ns(facts, request) < whole_ns(facts, request);
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    return goes_in_segments(facts, request) ? segments_ns(facts, request)
                                            : whole_ns(facts, request);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceRabenseifner.name);
    const Team team = Team::whole(request.rank_count, rank);
    const Slice source = contribution(builder, request);
    const Slice target = builder.output(0, request.bytes);
    const Operator op = operator_of(request);
    if (!goes_in_segments(facts, request)) {
        allreduce_rabenseifner(builder, team, source, target, op);
        return builder.finish();
    }
    const std::uint64_t segment = segments_of(facts, request).segment_bytes;
    const std::uint64_t rest = request.bytes % segment;
    builder.begin_repeat(request.bytes - rest, segment);
    allreduce_rabenseifner(builder, team, advance(part(source, 0, segment)),
                           advance(part(target, 0, segment)), op);
    builder.end_repeat();
    if (rest > 0) {
        allreduce_rabenseifner(builder, team, part(source, request.bytes - rest, rest),
                               part(target, request.bytes - rest, rest), op);
    }
    return builder.finish();
}

} // namespace

void allreduce_rabenseifner(Builder& builder, const Team& team, Slice source, Slice target,
                            Operator op) {
    if (team.size() == 1) {
        builder.copy(source, target);
        return;
    }
    const Fold fold(team);
    const Halving halving(source.length, op.element_bytes);
    const Slice partial = fold_in(builder, team, fold, source);
    if (fold.acts()) {
        reduce_scatter_halving(builder, team, fold, halving, partial, VectorView{target, 0});
        allgather_doubling(builder, team, fold, halving, target);
    }
    fold_out(builder, team, fold, target);
}

double allreduce_rabenseifner_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op) {
    return part_ns(link, count, bytes, op.element_bytes, bytes);
}

const Algorithm kAllreduceRabenseifner = {
    .name = "rabenseifner",
    .collective = graph::Collective::allreduce,
    .summary = "reduce-scatter by halving, allgather by doubling (Rabenseifner 2004)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
