// N-way dissemination barrier, in the rounds that dissemination.hpp describes.
#include <algorithm>

#include "ucg_coll/plan/messages/dissemination.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

class Price {
  public:
    Price(const Link& link, const graph::Request& request) : link_(link) {
        static_cast<void>(request);
    }

    double operator()(const DisseminationRounds& rounds) const {
        double ns = 0;
        std::uint64_t reach = 1;
        for (unsigned round = 0; round < rounds.rounds; ++round) {
            const std::uint64_t distance = reach;
            reach *= static_cast<std::uint64_t>(rounds.base_of(round));
            const Rank next = round + 1 < rounds.rounds ? rounds.base_of(round + 1) : 1;
            const Link link = link_.rotated(distance, reach * static_cast<std::uint64_t>(next),
                                            rounds.base_of(round) - 1);
            ns += link.message_ns(0) + (rounds.base_of(round) - 2) * link.gap_ns(0);
        }
        return ns;
    }

  private:
    Link link_;
};

graph::Schedule build_as(const graph::Request& request, Rank rank,
                         const MultiplyingSchedule& schedule) {
    Builder builder(request, rank,
                    fmt::format("{}:{}", kBarrierNWayDissemination.name, to_text(schedule)));
    OpIds last;
    barrier_n_way_dissemination(builder, Team::whole(request.rank_count, rank), schedule, last);
    return builder.finish();
}

using Row = DisseminationRow<Price, build_as>;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const DisseminationRounds rounds = Row::cheapest(facts, request);
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense), 0,
        [&](const Link& link) { return Price(link, request)(rounds); });
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
    .cost_ns = cost_ns,
    .build = Row::build,
    .build_with = Row::build_with,
    .argument = "the rounds, such as a4,a3",
};

} // namespace ucg::plan
