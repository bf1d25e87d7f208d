// Inclusive prefix reduction by recursive doubling (Hillis, Steele, "Data parallel algorithms",
// 1986): in each round a rank passes what it has combined so far to the rank at doubling distance
// above it.
#include <array>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/crowding.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::dense);
    const unsigned rounds = tree_depth(request.rank_count, 2);
    if (rounds == 0) {
        return link.copy_ns(request.bytes);
    }
    return recursive_doubling_messages_ns(facts, link, rounds, request.bytes) +
           link.sends_before_ns(rounds, request.bytes) +
           rounds * sharers(facts) * link.combining_ns(request.bytes, request.bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kScanRecursiveDoubling.name);
    const Slice target = builder.output(0, request.bytes);
    // Combines the ranks from max(0, rank - 2 distance + 1) to this one after each round.
    Slice partial = contribution(builder, request);
    if (rank == 0) {
        builder.copy(partial, target);
    }
    for (std::int64_t distance = 1; distance < request.rank_count; distance *= 2) {
        if (rank + distance < request.rank_count) {
            builder.send(static_cast<Rank>(rank + distance), partial);
        }
        if (rank < distance) {
            continue;
        }
        const Slice received = builder.scratch(request.bytes);
        builder.recv(static_cast<Rank>(rank - distance), received);
        const std::array operands = {received, partial};
        if (rank < 2 * distance) {
            reduce_to(builder, operands, target);
            partial = target;
        } else {
            partial = reduce_to_scratch(builder, operands);
        }
    }
    return builder.finish();
}

} // namespace

const Algorithm kScanRecursiveDoubling = {
    .name = "recursive_doubling",
    .collective = graph::Collective::scan,
    .summary = "partial results go up at doubling distances (Hillis, Steele 1986)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
