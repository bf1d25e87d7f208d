// The schedules of recursive multiplying, as a value and as text: "a4,a2", "c6m2,a2,a2,e6m2",
// "m1g2a3,n1g3a2". Ruefenacht, Bull, Booth, "Generalisation of recursive doubling for AllReduce:
// Now with simulation", 2017; below, sections, algorithms and figures are that paper's.
//
//   aB       Factor (4.2, algorithm 2). Ranks in groups of B exchange what they hold, each with
//            all others of its group, and reduce it. The m-th phase pairs ranks that are the
//            product of the earlier phases' B apart.
//   cTmB     Collapse, the first phase (4.2, algorithm 3). The ranks below the threshold T, a
//            multiple of B, form groups of B neighbours; the last of each group acts for it from
//            here on, numbered anew: N - T/B (B-1) ranks are left.
//   eTmB     Expand, the last phase (algorithm 4): each rank that acted for others sends them the
//            result. It is written if and only if the collapse is, with equal numbers.
//   mRgGaB   Merge (4.1, 4.2, algorithm 5), the first phase but for a collapse. R ranks, the
//            remainder, stay out of the factors: P = N - R ranks multiply. These form G = P/B
//            groups of B neighbours, which exchange as in aB. Member r of the remainder at the
//            same time sends its value to all of group r mod G, which reduces it with its own.
//   nRgGaB   Inverse merge, the last phase but for an expand (algorithm 6). As aB, in the groups of
//            ranks that are G = P/B apart; all of group r mod G send what they hold to member r of
//            the remainder too, which does the same reduction. It is written if and only if the
//            merge is, with equal R; G and B "describe the face of the hypercuboid" (4.2).
//
// N follows from all this: the product of the Bs of a, m and n is P.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::plan {

enum class PhaseKind : std::uint8_t { factor, collapse, expand, merge, inverse_merge };

/// One phase. Numbers that its kind does not have are 0.
struct Phase {
    PhaseKind kind = PhaseKind::factor;
    Rank base = 0;   ///< B
    Rank count = 0;  ///< collapse, expand: T. merge, inverse_merge: R
    Rank groups = 0; ///< merge, inverse_merge: G

    bool operator==(const Phase&) const = default;
};

inline Phase factor_phase(Rank base) {
    return {PhaseKind::factor, base, 0, 0};
}
inline Phase collapse_phase(Rank threshold, Rank base) {
    return {PhaseKind::collapse, base, threshold, 0};
}
inline Phase expand_phase(Rank threshold, Rank base) {
    return {PhaseKind::expand, base, threshold, 0};
}
inline Phase merge_phase(Rank remainder, Rank groups, Rank base) {
    return {PhaseKind::merge, base, remainder, groups};
}
inline Phase inverse_merge_phase(Rank remainder, Rank groups, Rank base) {
    return {PhaseKind::inverse_merge, base, remainder, groups};
}

/// A list of phases, which need not make sense together: fits() tells whether it does.
struct MultiplyingSchedule {
    std::vector<Phase> phases;

    bool operator==(const MultiplyingSchedule&) const = default;
};

/// The most operands of one reduction: what a graph::Op can count.
inline constexpr Rank kPhaseOperandsMax = 0xffff;

/// Returns the number of ranks that the schedule is for; 1 if it has no phases. Fails with
/// invalid_argument if phases are missing or out of place, or if their numbers contradict each
/// other; the message names the phase and the reason.
Result<Rank> rank_count_of(const MultiplyingSchedule& schedule);

/// Checks that the schedule is for `rank_count` ranks. Fails with invalid_argument and the reason
/// if it is not.
Status fits(const MultiplyingSchedule& schedule, Rank rank_count);

/// Reads the text form, such as "a4,a2". Fails with invalid_argument, naming the position (from 0),
/// what was expected there and what was found. Accepts all that to_text() writes. Does not check
/// whether the phases make sense together, as fits() does.
Result<MultiplyingSchedule> parse_multiplying_schedule(std::string_view text);

std::string to_text(const Phase& phase);
std::string to_text(const MultiplyingSchedule& schedule);

} // namespace ucg::plan
