// Allreduce by recursive doubling. Ranks beyond a power of two first fold their vector into that of
// another rank. Partners combine as (lower, upper), so that all ranks evaluate one and the same
// expression, in rank order.
#include <array>

#include "ucg_coll/plan/messages/fold.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense), 6 * request.bytes, [&](const Link& link) {
            return allreduce_recursive_doubling_ns(link, request.rank_count, request.bytes);
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kAllreduceRecursiveDoubling.name);
    allreduce_recursive_doubling(builder, Team::whole(request.rank_count, rank),
                                 contribution(builder, request), builder.output(0, request.bytes));
    return builder.finish();
}

/// Appends the exchange among the members that act after the fold, of whom there are at least two.
void exchange(Builder& builder, const Team& team, const Fold& fold, Slice partial, Slice target) {
    const auto receive = [&](Rank distance) {
        const Slice vector = builder.scratch(partial.length);
        builder.recv(team.rank(fold.member(fold.position() ^ distance)), vector);
        return vector;
    };
    Slice next{};
    for (Rank distance = 1; distance < fold.size(); distance *= 2) {
        const Rank other = fold.position() ^ distance;
        const bool last = 2 * distance == fold.size();
        builder.send(team.rank(fold.member(other)), partial);
        const Slice received = distance == 1 ? receive(distance) : next;
        if (!last) {
            next = receive(2 * distance); // It is posted before the wait for this round's message.
        }
        const std::array operands =
            fold.position() < other ? std::array{partial, received} : std::array{received, partial};
        if (last) {
            reduce_to(builder, operands, target);
        } else {
            partial = reduce_to_scratch(builder, operands);
        }
    }
}

} // namespace

void allreduce_recursive_doubling(Builder& builder, const Team& team, Slice source, Slice target) {
    if (team.size() == 1) {
        builder.copy(source, target);
        return;
    }
    const Fold fold(team);
    const Slice partial = fold_in(builder, team, fold, source);
    if (fold.acts()) {
        exchange(builder, team, fold, partial, target);
    }
    fold_out(builder, team, fold, target);
}

double allreduce_recursive_doubling_ns(const Link& link, Rank count, std::uint64_t bytes) {
    double ns = 0;
    Source source = Source::settled;
    const auto add_step = [&](const Link& round) {
        ns += round.message_ns(bytes, source) + round.combining_ns(bytes, bytes);
        source = Source::fresh;
    };
    if (folds(count)) {
        const Link pairs = link.of_pairs();
        add_step(pairs);
        ns += pairs.message_ns(bytes, Source::fresh);
    }
    const auto ranks = static_cast<std::uint64_t>(count);
    for (std::uint64_t distance = 1; 2 * distance <= ranks; distance *= 2) {
        add_step(link.exchanged(distance));
    }
    return ns;
}

const Algorithm kAllreduceRecursiveDoubling = {
    .name = "recursive_doubling",
    .collective = graph::Collective::allreduce,
    .summary = "whole vectors are exchanged at doubling distances",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
