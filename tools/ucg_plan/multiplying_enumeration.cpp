#include "tools/ucg_plan/multiplying_enumeration.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace ucg::tools {

using namespace plan;

namespace {

/// Writes one schedule after another into the same phases. All functions that enumerate return
/// whether to continue.
class Enumeration {
  public:
    Enumeration(Rank rank_count, const EnumerationBounds& bounds,
                const std::function<bool(const MultiplyingSchedule&)>& visit)
        : rank_count_(rank_count), bounds_(bounds), visit_(visit) {}

    bool run() { return inside(rank_count_) && collapses(); }

  private:
    bool collapses() {
        const Rank base_max = std::min(bounds_.base_max, rank_count_);
        for (Rank base = 2; base <= base_max; ++base) {
            for (Rank groups = 1; groups <= rank_count_ / base; ++groups) {
                collapse_ = collapse_phase(groups * base, base);
                if (!inside(rank_count_ - groups * (base - 1))) {
                    return false;
                }
            }
        }
        return true;
    }

    /// Enumerates products and merges for `count` ranks.
    bool inside(Rank count) {
        remainder_ = 0;
        if (!factors(count, bounds_.base_max)) {
            return false;
        }
        for (Rank product = 4; product < count; ++product) {
            remainder_ = count - product;
            if (!factors(product, bounds_.base_max)) {
                return false;
            }
        }
        return true;
    }

    /// Extends the factors chosen so far by all products that equal `rest`. If only falling orders
    /// are wanted, bases do not exceed `largest`.
    bool factors(Rank rest, Rank largest) {
        if (rest == 1) {
            return complete();
        }
        const Rank base_max = std::min(rest, largest);
        for (Rank base = base_max; base >= 2; --base) {
            if (rest % base != 0) {
                base = std::min(base, rest / 2 + 1); // No divisor lies in between.
                continue;
            }
            factors_.push_back(base);
            const bool more =
                factors(rest / base, bounds_.orders == Orders::every ? bounds_.base_max : base);
            factors_.pop_back();
            if (!more) {
                return false;
            }
        }
        return true;
    }

    bool complete() {
        if (remainder_ == 0) {
            return emit(factors_);
        }
        if (factors_.size() < 2) {
            return true; // Merges need a first and a last phase.
        }
        return bounds_.orders == Orders::every ? emit(factors_) : choose_ends();
    }

    /// Tries each of the factors as the first, with each of the others as the last.
    bool choose_ends() {
        for (std::size_t first = 0; first < factors_.size(); ++first) {
            for (std::size_t last = 0; last < factors_.size(); ++last) {
                // Of equal factors, only the first ones are tried, so that no schedule occurs
                // twice.
                if (first == last || repeats(first, factors_.size()) || repeats(last, first)) {
                    continue;
                }
                arranged_.assign(1, factors_[first]);
                for (std::size_t i = 0; i < factors_.size(); ++i) {
                    if (i != first && i != last) {
                        arranged_.push_back(factors_[i]);
                    }
                }
                arranged_.push_back(factors_[last]);
                if (!emit(arranged_)) {
                    return false;
                }
            }
        }
        return true;
    }

    /// Returns whether a factor before `place`, other than the one at `taken`, equals that at
    /// `place`.
    bool repeats(std::size_t place, std::size_t taken) const {
        return place > 0 && factors_[place - 1] == factors_[place] &&
               (place - 1 != taken || (place > 1 && factors_[place - 2] == factors_[place]));
    }

    bool emit(const std::vector<Rank>& factors) {
        std::vector<Phase>& phases = schedule_.phases;
        phases.clear();
        if (collapse_.base != 0) {
            phases.push_back(collapse_);
        }
        Rank product = 1;
        for (const Rank factor : factors) {
            phases.push_back(factor_phase(factor));
            product *= factor;
        }
        if (remainder_ > 0) {
            Phase& first = phases[collapse_.base != 0 ? 1 : 0];
            first = merge_phase(remainder_, product / first.base, first.base);
            Phase& last = phases.back();
            last = inverse_merge_phase(remainder_, product / last.base, last.base);
            if (operands(first) > kPhaseOperandsMax || operands(last) > kPhaseOperandsMax) {
                return true;
            }
        }
        if (collapse_.base != 0) {
            phases.push_back(expand_phase(collapse_.count, collapse_.base));
        }
        return visit_(schedule_);
    }

    static Rank operands(const Phase& phase) {
        return phase.base + (phase.count - 1) / phase.groups + 1;
    }

    Rank rank_count_;
    EnumerationBounds bounds_;
    const std::function<bool(const MultiplyingSchedule&)>& visit_;
    Phase collapse_{PhaseKind::collapse, 0, 0, 0}; ///< Base 0: there is no collapse.
    Rank remainder_ = 0;
    std::vector<Rank> factors_;
    std::vector<Rank> arranged_;
    MultiplyingSchedule schedule_;
};

} // namespace

bool enumerate_multiplying(Rank rank_count, const EnumerationBounds& bounds,
                           const std::function<bool(const MultiplyingSchedule&)>& visit) {
    UCG_ASSERT(rank_count >= 2 && bounds.base_max <= kPhaseOperandsMax);
    return Enumeration(rank_count, bounds, visit).run();
}

} // namespace ucg::tools
