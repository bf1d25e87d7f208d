#include "ucg_coll/plan/multiplying_choice.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "ucg_coll/plan/multiplying_bound.hpp"

namespace ucg::plan {
namespace {

/// Products of more factors are no ranks.
constexpr std::size_t kFactorsMax = std::numeric_limits<Rank>::digits;

Rank divide_up(Rank dividend, Rank divisor) {
    return (dividend - 1) / divisor + 1;
}

/// What phases cost for one length.
class Prices {
  public:
    Prices(const Link& link, std::uint64_t bytes) : link_(link), bytes_(bytes) {}

    double ns(const Phase& phase, bool first) const {
        const double message_ns = first ? link_.message_ns(bytes_) : link_.passing_on_ns(bytes_);
        const Rank more = phase.base - 2; // Messages beside the one that is waited for.
        switch (phase.kind) {
        case PhaseKind::collapse:
            return message_ns + more * link_.busy_ns(bytes_) + reduce_ns(phase.base);
        case PhaseKind::expand: return message_ns + more * link_.busy_ns(bytes_);
        case PhaseKind::factor:
            // For each peer one message goes and one comes.
            return message_ns + more * link_.relay_ns(bytes_) + reduce_ns(phase.base);
        case PhaseKind::merge: {
            const Rank joining = divide_up(phase.count, phase.groups);
            return message_ns + more * link_.relay_ns(bytes_) + joining * link_.busy_ns(bytes_) +
                   reduce_ns(phase.base + joining);
        }
        case PhaseKind::inverse_merge: {
            const Rank joining = divide_up(phase.count, phase.groups);
            return message_ns + more * link_.relay_ns(bytes_) + joining * link_.busy_ns(bytes_) +
                   reduce_ns(phase.base);
        }
        }
        UCG_ASSERT(false);
        return 0;
    }

  private:
    double reduce_ns(Rank operands) const {
        return link_.reduce_ns(static_cast<unsigned>(operands), bytes_);
    }

    const Link& link_;
    std::uint64_t bytes_;
};

/// The lines through two points of each kind of phase.
MultiplyingLines lines_of(const Prices& prices) {
    const auto later_ns = [&](const Phase& phase) { return prices.ns(phase, false); };
    const auto fold_ns = [&](Rank base) {
        return later_ns(collapse_phase(base, base)) + later_ns(expand_phase(base, base));
    };
    const double pair_ns = later_ns(factor_phase(2));
    MultiplyingLines lines;
    lines.first_ns = prices.ns(factor_phase(2), true) - pair_ns;
    lines.base_ns = later_ns(factor_phase(3)) - pair_ns;
    lines.phase_ns = pair_ns - 2 * lines.base_ns;
    lines.join_ns = later_ns(merge_phase(1, 1, 2)) - pair_ns;
    lines.part_ns = later_ns(inverse_merge_phase(1, 1, 2)) - pair_ns;
    lines.folded_ns = fold_ns(3) - fold_ns(2);
    lines.fold_ns = fold_ns(2) - lines.folded_ns;
    return lines;
}

/// A product of falling factors, and what becomes of the members who are too many for it.
struct Choice {
    double ns = std::numeric_limits<double>::infinity();
    Rank product = 1;
    Rank folded = 0; ///< Of each group of the collapse, those who do not act; 0: no collapse.
    Rank merged = 0; ///< The remainder; the smallest factors are the first phase and the last.
    std::size_t count = 0;
    std::array<Rank, kFactorsMax> factors{};
};

/// Branch and bound over products of falling factors. Nothing here allocates.
class Search {
  public:
    Search(const Link& link, Rank count, std::uint64_t bytes)
        : lines_(lines_of(Prices(link, bytes))), count_(count), bound_(lines_, count) {
        if (count == 1) {
            best_.ns = 0;
            return;
        }
        try_powers();
        extend(std::min(count, kPhaseOperandsMax), lines_.first_ns);
    }

    const Choice& best() const { return best_; }

  private:
    /// What cannot be cheaper than the best so far by more than this share of it is not looked at:
    /// the choice costs at most 1 / (1 - 0.019) of the least.
    static constexpr double kWorthwhile = 1 - 0.019;

    bool worthwhile(double ns) const { return ns < best_.ns * kWorthwhile; }

    /// Powers of one base, so that there is something good to compare with from the beginning.
    void try_powers() {
        double ns = 0;
        for (Rank base = 2; base <= std::min(count_, kPhaseOperandsMax); ++base) {
            now_ = {};
            ns = lines_.first_ns;
            while (now_.product <= count_ / base) {
                push(base);
                ns += lines_.factor_ns(base);
                consider(ns);
            }
            if (lines_.factor_ns(base) > best_.ns) {
                break;
            }
        }
        now_ = {};
    }

    void push(Rank base) {
        now_.factors[now_.count++] = base;
        now_.product *= base;
    }

    void pop() { now_.product /= now_.factors[--now_.count]; }

    /// Tries all products that begin with the factors so far, which cost `ns`.
    void extend(Rank largest, double ns) {
        consider(ns);
        for (Rank base = std::min(largest, count_ / now_.product); base >= 2; --base) {
            const double with_ns = ns + lines_.factor_ns(base);
            if (!worthwhile(with_ns)) {
                base = std::min(base, dearest_base(ns) + 1);
                continue;
            }
            const Rank product = now_.product * base;
            const double left_ns =
                product == count_ ? 0 : bound_.least_ns(static_cast<double>(count_) / product);
            if (worthwhile(with_ns + left_ns)) {
                push(base);
                extend(base, with_ns);
                pop();
            }
        }
    }

    /// No larger base is worthwhile after phases that cost `ns`.
    Rank dearest_base(double ns) const {
        const double left_ns = best_.ns * kWorthwhile - ns - lines_.phase_ns;
        return lines_.base_ns * kPhaseOperandsMax <= left_ns
                   ? kPhaseOperandsMax
                   : static_cast<Rank>(std::max(1.0, left_ns / lines_.base_ns));
    }

    void consider(double ns) {
        const Rank rest = count_ - now_.product;
        keep(ns, 0, rest);
        // Groups of 1 + d leave (count - product) mod d too many; there are no more groups than
        // the product has members from here on.
        for (Rank folded = rest / (now_.product + 1) + 1;
             folded <= rest && folded < kPhaseOperandsMax &&
             worthwhile(ns + lines_.collapse_ns(folded));
             ++folded) {
            keep(ns + lines_.collapse_ns(folded), folded, rest % folded);
            if (rest % folded == 0) {
                break;
            }
        }
    }

    void keep(double ns, Rank folded, Rank merged) {
        if (merged > 0) {
            if (now_.count < 2) {
                return;
            }
            const Rank first = joining(merged, now_.factors[now_.count - 1]);
            const Rank last = joining(merged, now_.factors[now_.count - 2]);
            ns += first * lines_.join_ns + last * lines_.part_ns;
            if (std::max(first, last) > kPhaseOperandsMax - now_.factors[now_.count - 2]) {
                return;
            }
        }
        if (ns < best_.ns) {
            best_ = now_;
            best_.ns = ns;
            best_.folded = folded;
            best_.merged = merged;
        }
    }

    /// How many of the remainder join the group that has most of them.
    Rank joining(Rank merged, Rank base) const { return divide_up(merged, now_.product / base); }

    MultiplyingLines lines_;
    Rank count_;
    MultiplyingBound bound_;
    Choice now_;
    Choice best_;
};

MultiplyingSchedule schedule_of(const Choice& choice, Rank count) {
    MultiplyingSchedule schedule;
    std::vector<Phase>& phases = schedule.phases;
    for (std::size_t i = 0; i < choice.count; ++i) {
        phases.push_back(factor_phase(choice.factors[i]));
    }
    if (choice.merged > 0) {
        std::rotate(phases.begin(), phases.end() - 1, phases.end());
        Phase& first = phases.front();
        first = merge_phase(choice.merged, choice.product / first.base, first.base);
        Phase& last = phases.back();
        last = inverse_merge_phase(choice.merged, choice.product / last.base, last.base);
    }
    if (choice.folded > 0) {
        const Rank base = choice.folded + 1;
        const Rank threshold = (count - choice.product - choice.merged) / choice.folded * base;
        phases.insert(phases.begin(), collapse_phase(threshold, base));
        phases.push_back(expand_phase(threshold, base));
    }
    return schedule;
}

} // namespace

double allreduce_recursive_multiplying_ns(const Link& link, const MultiplyingSchedule& schedule,
                                          std::uint64_t bytes) {
    const Prices prices(link, bytes);
    double ns = 0;
    for (std::size_t i = 0; i < schedule.phases.size(); ++i) {
        ns += prices.ns(schedule.phases[i], i == 0);
    }
    return ns;
}

double allreduce_recursive_multiplying_ns(const Link& link, Rank count, std::uint64_t bytes) {
    return Search(link, count, bytes).best().ns;
}

MultiplyingSchedule allreduce_recursive_multiplying_schedule(const Link& link, Rank count,
                                                             std::uint64_t bytes) {
    return schedule_of(Search(link, count, bytes).best(), count);
}

} // namespace ucg::plan
