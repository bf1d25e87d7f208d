// The rounds of n-way disseminations: in a round of base b every member sends to b - 1 others
// ("n-way": n = b - 1) at multiples of the distance, which is the product of the earlier bases.
// Hoefler, Mehlan, Mietke, Rehm, "Fast barrier synchronization for InfiniBand", 2006; with a base
// for each round, as recursive multiplying has one for each phase. Unlike the factors of recursive
// multiplying, bases need not divide the count: messages that would reach beyond it in the last
// round are left out.
#pragma once

#include "ucg_coll/plan/multiplying/schedule.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// Rounds with bases that differ by one at most: the last `larger` of `rounds` rounds have base
/// `base` + 1, the others base `base`.
struct DisseminationRounds {
    unsigned rounds = 0;
    unsigned larger = 0;
    Rank base = 2;

    Rank base_of(unsigned round) const { return base + (round >= rounds - larger ? 1 : 0); }
    MultiplyingSchedule schedule() const;
};

/// Returns `rounds` rounds that reach all of `count` members with the least sum of bases. Each one
/// more in a base adds the same amount to a round's price, and bases that differ by more than one
/// would need a larger sum for the same reach. REQUIRES: 1 <= rounds <= tree_depth(count, 2).
DisseminationRounds balanced_rounds(Rank count, unsigned rounds);

/// Returns the balanced rounds with the least cost_ns(rounds), among those with bases up to
/// kRadixMax; of equal costs, the fewer rounds. Returns no rounds for one member. Allocates
/// nothing.
template <typename CostOfRounds>
DisseminationRounds cheapest_rounds(Rank count, const CostOfRounds& cost_ns) {
    const unsigned most = tree_depth(count, kRadixMin);
    DisseminationRounds best;
    double best_ns = 0;
    for (unsigned rounds = tree_depth(count, kRadixMax); rounds <= most && rounds > 0; ++rounds) {
        const DisseminationRounds now = balanced_rounds(count, rounds);
        if (const double ns = cost_ns(now); best.rounds == 0 || ns < best_ns) {
            best = now;
            best_ns = ns;
        }
    }
    return best;
}

/// Checks that `rounds` consists of factors only, that they reach all of `count` members, and that
/// each is needed for that. Fails with invalid_argument and the reason.
Status disseminates(const MultiplyingSchedule& rounds, Rank count);

/// Reads `text` by parse_multiplying_schedule() and checks it by disseminates(); fails as these do.
Result<MultiplyingSchedule> parse_dissemination(std::string_view text, Rank count);

/// What the rows of n-way disseminations have in common. Price(link, request)(rounds) returns the
/// price of rounds, in nanoseconds; kBuild() returns the schedule for given rounds.
template <typename Price,
          graph::Schedule (*kBuild)(const graph::Request&, Rank, const MultiplyingSchedule&)>
struct DisseminationRow {
    static DisseminationRounds cheapest(const Facts& facts, const graph::Request& request) {
        return cheapest_rounds(request.rank_count,
                               Price(flat_link(facts, Traffic::dense).in_exchanges(), request));
    }

    static graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
        return kBuild(request, rank, cheapest(facts, request).schedule());
    }

    /// Builds the schedule for the rounds that `argument` names.
    static Result<graph::Schedule> build_with(const Facts& facts, const graph::Request& request,
                                              Rank rank, std::string_view argument) {
        static_cast<void>(facts);
        const Result<MultiplyingSchedule> rounds =
            parse_dissemination(argument, request.rank_count);
        if (!rounds.ok()) {
            return rounds.status();
        }
        return kBuild(request, rank, *rounds);
    }
};

} // namespace ucg::plan
