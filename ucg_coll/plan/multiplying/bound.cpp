#include "ucg_coll/plan/multiplying/bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ucg::plan {

MultiplyingBound::MultiplyingBound(const MultiplyingLines& lines, Rank count)
    : any_ns_(std::min({lines.factor_ns(2), lines.join_ns + lines.part_ns, lines.collapse_ns(1)})) {
    // The sixteenth root of 2 by square roots, which all processors round alike.
    const double step = std::sqrt(std::sqrt(std::sqrt(std::sqrt(2.0))));
    threshold_.push_back(1);
    for (std::size_t i = 1; threshold_.back() < count; ++i) {
        // Octaves are exact: errors of rounding do not add up.
        threshold_.push_back(i % kStepsOfOctave == 0 ? 2 * threshold_[i - kStepsOfOctave]
                                                     : threshold_.back() * step);
    }
    fill(lines);
}

void MultiplyingBound::fill(const MultiplyingLines& lines) {
    const std::size_t steps = threshold_.size();
    std::vector<double> factor_ns(steps);   // Both rise with the step, so that what
    std::vector<double> collapse_ns(steps); // is dearer than a bound ends the search for it.
    without_collapse_ns_.assign(steps, 0);
    least_ns_.assign(steps, 0);
    for (std::size_t step = 1; step < steps; ++step) {
        const Rank base = base_for(step);
        factor_ns[step] = lines.factor_ns(base);
        collapse_ns[step] = lines.collapse_ns(base - 1);
    }
    for (std::size_t i = 1; i < steps; ++i) {
        // A merge takes the fewest members per group, 2 (x - 1), if groups are of two at both ends.
        double without_ns = 2 * (threshold_[i] - 1) * (lines.join_ns + lines.part_ns);
        for (std::size_t step = 1; step <= i && factor_ns[step] < without_ns; ++step) {
            without_ns = std::min(without_ns, factor_ns[step] + without_collapse_ns_[i - step]);
        }
        without_collapse_ns_[i] = without_ns;
        double least_ns = without_ns;
        for (std::size_t step = 1; step <= i && factor_ns[step] < least_ns; ++step) {
            least_ns = std::min(least_ns, factor_ns[step] + least_ns_[i - step]);
        }
        for (std::size_t step = 1; step <= i && collapse_ns[step] < least_ns; ++step) {
            least_ns = std::min(least_ns, collapse_ns[step] + without_collapse_ns_[i - step]);
        }
        least_ns_[i] = least_ns;
    }
}

Rank MultiplyingBound::base_for(std::size_t step) const {
    return std::max<Rank>(2, static_cast<Rank>(threshold_[step - 1]) + 1);
}

MultiplyingBound::Stretch MultiplyingBound::least_from(double x) const {
    const auto end = threshold_.end();
    const auto above = std::upper_bound(threshold_.begin(), end, x);
    const auto step = static_cast<std::size_t>(above - threshold_.begin()) - 1;
    return {std::max(any_ns_, least_ns_[step]),
            above == end ? std::numeric_limits<double>::infinity() : *above};
}

} // namespace ucg::plan
