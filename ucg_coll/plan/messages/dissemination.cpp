#include "ucg_coll/plan/messages/dissemination.hpp"

namespace ucg::plan {

/// Returns how many members `smaller` rounds of `base` and `larger` rounds of `base` + 1 reach. If
/// these are more than `count`, the result may be any number from `count` on.
static std::int64_t reach(Rank base, unsigned smaller, unsigned larger, Rank count) {
    std::int64_t product = 1;
    for (unsigned round = 0; round < smaller + larger && product < count; ++round) {
        product *= base + (round < smaller ? 0 : 1);
    }
    return product;
}

MultiplyingSchedule DisseminationRounds::schedule() const {
    MultiplyingSchedule schedule;
    for (unsigned round = 0; round < rounds; ++round) {
        schedule.phases.push_back(factor_phase(base_of(round)));
    }
    return schedule;
}

DisseminationRounds balanced_rounds(Rank count, unsigned rounds) {
    DisseminationRounds result{.rounds = rounds, .larger = rounds, .base = 1};
    while (reach(result.base, 0, rounds, count) < count) {
        ++result.base;
    }
    while (result.larger > 1 &&
           reach(result.base, rounds - result.larger + 1, result.larger - 1, count) >= count) {
        --result.larger;
    }
    return result;
}

Status disseminates(const MultiplyingSchedule& rounds, Rank count) {
    std::int64_t product = 1;
    for (const Phase& phase : rounds.phases) {
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
                         to_text(rounds), product, count);
}

Result<MultiplyingSchedule> parse_dissemination(std::string_view text, Rank count) {
    Result<MultiplyingSchedule> rounds = parse_multiplying_schedule(text);
    if (rounds.ok()) {
        if (Status status = disseminates(*rounds, count); !status.ok()) {
            return status;
        }
    }
    return rounds;
}

} // namespace ucg::plan
