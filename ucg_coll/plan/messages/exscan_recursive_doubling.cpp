// Exclusive prefix reduction by recursive doubling. As in the inclusive one
// (scan_recursive_doubling.cpp) a rank passes on all that it has combined, including its own
// contribution. It also keeps what came from below without its own contribution.
#include <array>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/messages/scan_rounds.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::dense);
    return exscan_recursive_doubling_ns(facts, link, request.rank_count, request.bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kExscanRecursiveDoubling.name);
    exscan_recursive_doubling(builder, Team::whole(request.rank_count, rank),
                              contribution(builder, request), builder.output(0, request.bytes));
    return builder.finish();
}

} // namespace

double exscan_recursive_doubling_ns(const Facts& facts, const Link& link, Rank count,
                                    std::uint64_t bytes) {
    if (count == 1) {
        return 0;
    }
    const unsigned last = tree_depth(count, 2) - 1;
    return scan_rounds_ns(facts, link, count, bytes, Sender::waits,
                          [&](const Link& way, unsigned round) {
                              // In the first round there is no result yet to combine with, and in
                              // the last one nothing to pass on.
                              const int sums = (round > 0 ? 1 : 0) + (round < last ? 1 : 0);
                              return sums * way.reduce_ns(2, bytes);
                          });
}

void exscan_recursive_doubling(Builder& builder, const Team& team, Slice source, Slice target) {
    const Rank index = team.index();
    Slice inclusive = source; // What this member passes on.
    Slice below{};            // What came from below, without its own contribution.
    for (std::int64_t distance = 1; distance < team.size(); distance *= 2) {
        if (index + distance < team.size()) {
            builder.send(team.rank(static_cast<Rank>(index + distance)), inclusive);
        }
        if (index < distance) {
            continue;
        }
        const bool first = distance == 1;
        const bool last = index < 2 * distance;
        const bool passes_on = index + 2 * distance < team.size();
        // Member 1 receives its result straight to `target`, unless its contribution lies there and
        // has still to be passed on.
        const bool to_target = first && last && !(overlap(source, target) && passes_on);
        const Slice received = to_target ? target : builder.scratch(source.length);
        builder.recv(team.rank(static_cast<Rank>(index - distance)), received);
        if (passes_on) {
            // This comes before the result is written below, maybe over the contribution.
            const Slice sum = builder.scratch(source.length);
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
}

const Algorithm kExscanRecursiveDoubling = {
    .name = "recursive_doubling",
    .collective = graph::Collective::exscan,
    .summary = "partial results go up at doubling distances (Hillis, Steele 1986)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
