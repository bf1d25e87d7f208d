// Internal to choice.hpp: what recursive multiplying costs at least, as a line in its
// bases, and the least that any schedule must pay to reach x times as many ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "ucg_coll/plan/multiplying/schedule.hpp"

namespace ucg::plan {

/// Lower bounds of each phase's price: lines in its base, in what joins it, in what a collapse
/// folds.
struct MultiplyingLines {
    double phase_ns = 0; ///< A phase of base B: no less than phase + B base, while links limit,
    double base_ns = 0;
    double busy_phase_ns = 0; ///< nor than busy_phase + B busy_base, while processors do.
    double busy_base_ns = 0;
    double join_ns = 0; ///< One member more of the remainder in each group of the merge,
    double part_ns = 0; ///< and of the inverse merge.
    double fold_ns = 0; ///< Collapse and expand in groups of 1 + d: fold + d folded.
    double folded_ns = 0;

    double factor_ns(Rank base) const {
        return std::max(phase_ns + base * base_ns, busy_phase_ns + base * busy_base_ns);
    }
    double collapse_ns(Rank folded) const { return fold_ns + folded * folded_ns; }
};

/// A lower bound of what takes a product of P to x P ranks or more. Bases are rounded up to steps
/// of a sixteenth of an octave, so the bound is less than the least by what 2 to 4 per cent of each
/// base cost.
class MultiplyingBound {
  public:
    /// For x up to `count`.
    MultiplyingBound(const MultiplyingLines& lines, Rank count);

    /// The bound for x, which is that of all from `x` up to `end`, without it.
    struct Stretch {
        double ns = 0;
        double end = 0;
    };
    /// REQUIRES: 1 <= x <= count; for x = 1 the bound is that of numbers just above.
    Stretch least_from(double x) const;

  private:
    static constexpr std::size_t kStepsOfOctave = 16;

    void fill(const MultiplyingLines& lines);
    /// The smallest integer above threshold_[step - 1], at least 2: it may pass for
    /// threshold_[step].
    Rank base_for(std::size_t step) const;

    double any_ns_ = 0; ///< The cheapest single thing to do.
    // By step. They are on the heap because up to 12 KiB are too much for a small thread's stack.
    std::vector<double> threshold_;
    std::vector<double> without_collapse_ns_;
    std::vector<double> least_ns_;
};

} // namespace ucg::plan
