// N-way dissemination barrier: dissemination.hpp.
#include <algorithm>

#include "ucg_coll/plan/dissemination.hpp"
#include "ucg_coll/plan/pieces.hpp"
#include "ucg_coll/plan/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

double rounds_ns(const Link& link, const DisseminationRounds& rounds) {
    double ns = 0;
    for (unsigned round = 0; round < rounds.rounds; ++round) {
        ns += link.message_ns(0) + (rounds.base_of(round) - 2) * link.busy_ns(0);
    }
    return ns;
}

DisseminationRounds cheapest(const Facts& facts, Rank count) {
    const Link link = flat_link(facts, Traffic::dense);
    return cheapest_rounds(
        count, [&](const DisseminationRounds& rounds) { return rounds_ns(link, rounds); });
}

graph::Schedule build_as(const graph::Request& request, Rank rank,
                         const MultiplyingSchedule& schedule) {
    Builder builder(request, rank,
                    fmt::format("{}:{}", kBarrierNWayDissemination.name, to_text(schedule)));
    OpIds last;
    barrier_n_way_dissemination(builder, Team::whole(request.rank_count, rank), schedule, last);
    return builder.finish();
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    return rounds_ns(flat_link(facts, Traffic::dense), cheapest(facts, request.rank_count));
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    return build_as(request, rank, cheapest(facts, request.rank_count).schedule());
}

Result<graph::Schedule> build_with(const Facts& facts, const graph::Request& request, Rank rank,
                                   std::string_view argument) {
    static_cast<void>(facts);
    const Result<MultiplyingSchedule> rounds = parse_dissemination(argument, request.rank_count);
    if (!rounds.ok()) {
        return rounds.status();
    }
    return build_as(request, rank, *rounds);
}

} // namespace

void barrier_n_way_dissemination(Builder& builder, const Team& team,
                                 const MultiplyingSchedule& schedule, OpIds& last) {
    const std::int64_t count = team.size();
    const std::int64_t index = team.index();
    std::int64_t distance = 1;
    for (const Phase& phase : schedule.phases) {
        const std::int64_t end = std::min(distance * phase.base, count);
        OpIds arrived;
        for (std::int64_t hop = distance; hop < end; hop += distance) {
            builder.signal(team.rank(static_cast<Rank>((index + hop) % count)), last);
        }
        for (std::int64_t hop = distance; hop < end; hop += distance) {
            const auto from = static_cast<Rank>((index - hop + count) % count);
            arrived.push_back(builder.await(team.rank(from), last));
        }
        last = std::move(arrived);
        distance *= phase.base;
    }
}

const Algorithm kBarrierNWayDissemination = {
    .name = "n_way_dissemination",
    .collective = graph::Collective::barrier,
    .summary = "dissemination with a number of signals for each round (Hoefler 2006)",
    .eligible = serves_all,
    .cost_ns = cost_ns,
    .build = build,
    .build_with = build_with,
    .argument = "the rounds, such as a4,a3",
};

} // namespace ucg::plan
