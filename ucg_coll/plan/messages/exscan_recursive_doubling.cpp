// Exclusive prefix reduction by recursive doubling. As in the inclusive one a rank passes on all
// that it has combined with its own contribution; beside it, it keeps what came from below alone.
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
        return 0;
    }
    // The first round has no result yet to combine with, and the last nothing to pass on.
    return recursive_doubling_messages_ns(facts, link, rounds, request.bytes) +
           link.sends_before_ns(rounds, request.bytes) +
           (2 * rounds - 2) * sharers(facts) * link.reduce_ns(2, request.bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kExscanRecursiveDoubling.name);
    const Slice target = builder.output(0, request.bytes);
    Slice inclusive = contribution(builder, request); // What this rank passes on.
    Slice below{};                                    // The same without its own contribution.
    for (std::int64_t distance = 1; distance < request.rank_count; distance *= 2) {
        if (rank + distance < request.rank_count) {
            builder.send(static_cast<Rank>(rank + distance), inclusive);
        }
        if (rank < distance) {
            continue;
        }
        const bool first = distance == 1;
        const bool last = rank < 2 * distance;
        const bool passes_on = rank + 2 * distance < request.rank_count;
        // Rank 1 receives its result; in place its contribution is there until it has passed it on.
        const bool to_target = first && last && !(request.in_place && passes_on);
        const Slice received = to_target ? target : builder.scratch(request.bytes);
        builder.recv(static_cast<Rank>(rank - distance), received);
        if (passes_on) {
            // Before the result below is written: in place, that is where the contribution was.
            const Slice sum = builder.scratch(request.bytes);
            builder.reduce(std::array{received, inclusive}, sum);
            inclusive = sum;
        }
        if (first) {
            below = received;
        } else {
            const std::array operands = {received, below};
            builder.reduce(operands, last ? target : received);
            below = received;
        }
        if (first && last) {
            builder.copy(received, target);
        }
    }
    return builder.finish();
}

} // namespace

const Algorithm kExscanRecursiveDoubling = {
    .name = "recursive_doubling",
    .collective = graph::Collective::exscan,
    .summary = "partial results go up at doubling distances (Hillis, Steele 1986)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
