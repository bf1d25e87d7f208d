// N-way dissemination barrier: Hoefler, Mehlan, Mietke, Rehm, "Fast barrier synchronization for
// InfiniBand", 2006; with a base for each round, as recursive multiplying has one for each phase.
// In a round of base b every member signals b - 1 others ("n-way": n = b - 1), at multiples of the
// product of the earlier rounds' bases. Unlike factors, bases need not divide the count: what the
// last round has too many is left out.
#include <algorithm>

#include "ucg_coll/plan/pieces.hpp"
#include "ucg_coll/plan/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

/// `rounds` rounds, the last `larger` of them of base `base` + 1, the others of base `base`.
struct Rounds {
    unsigned rounds = 0;
    unsigned larger = 0;
    Rank base = 2;
    double ns = 0;

    Rank base_of(unsigned round) const { return base + (round >= rounds - larger ? 1 : 0); }
};

/// What `smaller` rounds of `base` and `larger` ones of `base` + 1 reach; at least `count` where it
/// is more than that.
std::int64_t reach(Rank base, unsigned smaller, unsigned larger, Rank count) {
    std::int64_t product = 1;
    for (unsigned round = 0; round < smaller + larger && product < count; ++round) {
        product *= base + (round < smaller ? 0 : 1);
    }
    return product;
}

/// The cheapest bases for that many rounds. A round's price grows with its base by the same amount
/// for each, so that the sum of the bases counts, and bases that differ by more than one would need
/// a larger sum for the same reach.
Rounds balanced(const Link& link, Rank count, unsigned rounds) {
    Rounds result{.rounds = rounds, .larger = rounds, .base = 1};
    while (reach(result.base, 0, rounds, count) < count) {
        ++result.base;
    }
    while (result.larger > 1 &&
           reach(result.base, rounds - result.larger + 1, result.larger - 1, count) >= count) {
        --result.larger;
    }
    for (unsigned round = 0; round < rounds; ++round) {
        result.ns += link.message_ns(0) + (result.base_of(round) - 2) * link.busy_ns(0);
    }
    return result;
}

Rounds cheapest(const Link& link, Rank count) {
    Rounds best;
    const unsigned most = tree_depth(count, kRadixMin);
    for (unsigned rounds = tree_depth(count, kRadixMax); rounds <= most; ++rounds) {
        if (const Rounds now = balanced(link, count, rounds);
            best.rounds == 0 || now.ns < best.ns) {
            best = now;
        }
    }
    return best;
}

MultiplyingSchedule schedule_of(const Rounds& rounds) {
    MultiplyingSchedule schedule;
    for (unsigned round = 0; round < rounds.rounds; ++round) {
        schedule.phases.push_back(factor_phase(rounds.base_of(round)));
    }
    return schedule;
}

/// Factors only, each of which is needed to reach all.
Status disseminates(const MultiplyingSchedule& schedule, Rank count) {
    std::int64_t product = 1;
    for (const Phase& phase : schedule.phases) {
        if (phase.kind != PhaseKind::factor || phase.base < 2) {
            return failure(Code::invalid_argument,
                           "{} is no round of a dissemination: aB, B at least 2", to_text(phase));
        }
        if (product >= count) {
            return failure(Code::invalid_argument,
                           "{} is too much: the rounds before it reach all {} ranks",
                           to_text(phase), count);
        }
        product *= phase.base;
    }
    return product >= count
               ? Status()
               : failure(Code::invalid_argument, "the rounds '{}' reach {} ranks of {}",
                         to_text(schedule), product, count);
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
    return cheapest(flat_link(facts, Traffic::dense), request.rank_count).ns;
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    const Link link = flat_link(facts, Traffic::dense);
    return build_as(request, rank, schedule_of(cheapest(link, request.rank_count)));
}

Result<graph::Schedule> build_with(const Facts& facts, const graph::Request& request, Rank rank,
                                   std::string_view argument) {
    static_cast<void>(facts);
    const Result<MultiplyingSchedule> schedule = parse_multiplying_schedule(argument);
    if (!schedule.ok()) {
        return schedule.status();
    }
    if (Status status = disseminates(*schedule, request.rank_count); !status.ok()) {
        return status;
    }
    return build_as(request, rank, *schedule);
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
