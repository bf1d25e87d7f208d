// Internal to choice.hpp: lower bounds of what the phases of recursive multiplying cost, as lines
// in their bases, and of what any schedule must pay to reach x times as many ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "ucg_coll/plan/multiplying/schedule.hpp"

namespace ucg::plan {

/// Lower bounds of the prices of phases, as lines: in the base of a factor, in the number of
/// members that join a merge, in the number of members that a collapse folds. In nanoseconds.
struct MultiplyingLines {
    double phase_ns = 0; ///< A phase of base B costs at least phase_ns + B base_ns, for its links,
    double base_ns = 0;
    double busy_phase_ns = 0; ///< and busy_phase_ns + B busy_base_ns, for its processors.
    double busy_base_ns = 0;
    double join_ns = 0; ///< Each further member of the remainder per group adds this to the merge,
    double part_ns = 0; ///< and this to the inverse merge.
    double fold_ns = 0; ///< Collapse and expand of 1 + d ranks cost at least fold_ns + d folded_ns.
    double folded_ns = 0;

    double factor_ns(Rank base) const {
        return std::max(phase_ns + base * base_ns, busy_phase_ns + base * busy_base_ns);
    }
    double collapse_ns(Rank folded) const { return fold_ns + folded * folded_ns; }
};

/// A lower bound of the cost of phases that take a product of P ranks to x P ranks or more. Bases
/// are rounded up to steps of a sixteenth of an octave. So the bound lies below the least cost by
/// what 2 to 4 per cent of each base cost.
class MultiplyingBound {
  public:
    /// Computes the bounds for x up to `count`.
    MultiplyingBound(const MultiplyingLines& lines, Rank count);

    /// A bound, which holds for all numbers from the x in question up to, but not including, `end`.
    struct Stretch {
        double ns = 0;
        double end = 0;
    };
    /// Returns the bound for x; for x = 1 it is that of numbers just above 1. REQUIRES: 1 <= x <=
    /// count.
    Stretch least_from(double x) const;

  private:
    static constexpr std::size_t kStepsOfOctave = 16;

    void fill(const MultiplyingLines& lines);
    /// Returns the smallest base that is rounded up to threshold_[step]: the smallest integer above
    /// threshold_[step - 1], and at least 2.
    Rank base_for(std::size_t step) const;

    double any_ns_ = 0; ///< The least that a single factor, member that joins or collapse costs.
    // These are indexed by step. They are on the heap because up to 12 KiB are too much for a small
    // thread's stack.
    std::vector<double> threshold_;
    std::vector<double> without_collapse_ns_;
    std::vector<double> least_ns_;
};

} // namespace ucg::plan
