// Inclusive prefix reduction by recursive doubling (Hillis, Steele, "Data parallel algorithms",
// 1986): in each round a rank passes what it has combined so far to the rank at doubling distance
// above it.
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
    return scan_recursive_doubling_ns(facts, link, request.rank_count, request.bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kScanRecursiveDoubling.name);
    scan_recursive_doubling(builder, Team::whole(request.rank_count, rank),
                            contribution(builder, request), builder.output(0, request.bytes));
    return builder.finish();
}

} // namespace

double scan_recursive_doubling_ns(const Facts& facts, const Link& link, Rank count,
                                  std::uint64_t bytes) {
    if (count == 1) {
        return link.copy_ns(bytes);
    }
    return scan_rounds_ns(
        facts, link, count, bytes, Sender::busy,
        [&](const Link& way, unsigned /*round*/) { return way.combining_ns(bytes, bytes); });
}

void scan_recursive_doubling(Builder& builder, const Team& team, Slice source, Slice target) {
    const Rank index = team.index();
    // After each round it combines the members from max(0, index - 2 distance + 1) to this one.
    Slice partial = source;
    for (std::int64_t distance = 1; distance < team.size(); distance *= 2) {
        if (index + distance < team.size()) {
            builder.send(team.rank(static_cast<Rank>(index + distance)), partial);
        }
        if (index < distance) {
            continue;
        }
        const Slice received = builder.scratch(source.length);
        builder.recv(team.rank(static_cast<Rank>(index - distance)), received);
        const std::array operands = {received, partial};
        if (index < 2 * distance) {
            reduce_to(builder, operands, target);
            partial = target;
        } else {
            partial = reduce_to_scratch(builder, operands);
        }
    }
    if (index == 0) { // While what it has sent travels.
        builder.copy(partial, target);
    }
}

const Algorithm kScanRecursiveDoubling = {
    .name = "recursive_doubling",
    .collective = graph::Collective::scan,
    .summary = "partial results go up at doubling distances (Hillis, Steele 1986)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
