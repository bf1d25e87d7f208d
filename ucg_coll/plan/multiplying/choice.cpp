#include "ucg_coll/plan/multiplying/choice.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "ucg_coll/plan/multiplying/bound.hpp"

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
    Prices(const Link& link, std::uint64_t bytes)
        : link_(link), bytes_(bytes), message_ns_(link.message_ns(bytes)),
          passing_on_ns_(link.passing_on_ns(bytes)), busy_ns_(link.busy_ns(bytes)),
          relay_ns_(link.relay_ns(bytes)) {}

    double ns(const Phase& phase, bool first) const {
        const double message_ns = first ? message_ns_ : passing_on_ns_;
        const Rank more = phase.base - 2; // Messages beside the one that is waited for.
        switch (phase.kind) {
        case PhaseKind::collapse: return message_ns + more * busy_ns_ + reduce_ns(phase.base);
        case PhaseKind::expand: return message_ns + more * busy_ns_;
        case PhaseKind::factor:
            // For each peer one message goes and one comes.
            return message_ns + more * relay_ns_ + reduce_ns(phase.base);
        case PhaseKind::merge: {
            const Rank joining = divide_up(phase.count, phase.groups);
            return message_ns + more * relay_ns_ + joining * busy_ns_ +
                   reduce_ns(phase.base + joining);
        }
        case PhaseKind::inverse_merge: {
            const Rank joining = divide_up(phase.count, phase.groups);
            return message_ns + more * relay_ns_ + joining * busy_ns_ + reduce_ns(phase.base);
        }
        }
        UCG_ASSERT(false);
        return 0;
    }

    double later_ns(const Phase& phase) const { return ns(phase, false); }
    double factor_ns(Rank base) const { return later_ns(factor_phase(base)); }
    /// Collapse and expand in groups of 1 + `folded`.
    double collapse_ns(Rank folded) const {
        return later_ns(collapse_phase(folded + 1, folded + 1)) +
               later_ns(expand_phase(folded + 1, folded + 1));
    }
    double relay_ns() const { return relay_ns_; }
    double busy_ns() const { return busy_ns_; }

  private:
    double reduce_ns(Rank operands) const {
        return link_.reduce_ns(static_cast<unsigned>(operands), bytes_);
    }

    const Link& link_;
    std::uint64_t bytes_;
    double message_ns_;
    double passing_on_ns_;
    double busy_ns_;
    double relay_ns_;
};

/// Lines that no price lies below: what more operands cost depends on which cache they fit, but it
/// is not less than that of fewer.
MultiplyingLines lines_of(const Prices& prices) {
    MultiplyingLines lines;
    lines.base_ns = prices.relay_ns();
    lines.phase_ns = prices.factor_ns(2) - 2 * lines.base_ns;
    lines.join_ns = prices.busy_ns();
    lines.part_ns = prices.busy_ns();
    lines.folded_ns = 2 * prices.busy_ns();
    lines.fold_ns = prices.collapse_ns(1) - lines.folded_ns;
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
        : prices_(link, bytes), lines_(lines_of(prices_)), count_(count), bound_(lines_, count),
          first_ns_(prices_.ns(factor_phase(2), true) - prices_.factor_ns(2)) {
        if (count == 1) {
            best_.ns = 0;
            return;
        }
        try_powers();
        extend(std::min(count, kPhaseOperandsMax), first_ns_);
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
            ns = first_ns_;
            while (now_.product <= count_ / base) {
                push(base);
                ns += prices_.factor_ns(base);
                consider(ns);
            }
            if (prices_.factor_ns(base) > best_.ns) {
                break;
            }
        }
        now_ = {};
    }

    /// Small bases come again and again.
    double factor_ns(Rank base) {
        if (static_cast<std::size_t>(base) >= kept_ns_.size()) {
            return prices_.factor_ns(base);
        }
        double& ns = kept_ns_[static_cast<std::size_t>(base)];
        if (ns == 0) {
            ns = prices_.factor_ns(base);
        }
        return ns;
    }

    void push(Rank base) {
        now_.factors[now_.count++] = base;
        now_.product *= base;
    }

    void pop() { now_.product /= now_.factors[--now_.count]; }

    /// Tries all products that begin with the factors so far, which cost `ns`. Bases go down in
    /// stretches for which the bound of what is left is one number: most are not worth a look at
    /// each of their bases.
    void extend(Rank largest, double ns) {
        consider(ns);
        Rank base = std::min(largest, count_ / now_.product);
        if (base >= 2 && now_.product * base == count_) {
            extend_by(base, ns, 0);
            --base;
        }
        while (base >= 2) {
            if (!worthwhile(ns + lines_.factor_ns(base))) {
                base = std::min(base, dearest_base(ns));
            }
            if (base < 2) {
                return;
            }
            const auto rest = bound_.least_from(static_cast<double>(count_) / now_.product / base);
            const Rank last = std::clamp(
                static_cast<Rank>(static_cast<double>(count_) / now_.product / rest.end) + 1, 2,
                base);
            if (worthwhile(ns + lines_.factor_ns(last) + rest.ns)) {
                for (Rank one = base; one >= last; --one) {
                    extend_by(one, ns, rest.ns);
                }
            }
            base = last - 1;
        }
    }

    /// The same with `base` next, after which no less than `left_ns` remains.
    void extend_by(Rank base, double ns, double left_ns) {
        if (!worthwhile(ns + lines_.factor_ns(base) + left_ns)) {
            return;
        }
        const double with_ns = ns + factor_ns(base);
        if (worthwhile(with_ns + left_ns)) {
            push(base);
            extend(base, with_ns);
            pop();
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
            const double with_ns = ns + prices_.collapse_ns(folded);
            if (!worthwhile(with_ns)) {
                break;
            }
            keep(with_ns, folded, rest % folded);
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
            const Rank first = now_.factors[now_.count - 1];
            const Rank last = now_.factors[now_.count - 2];
            if (divide_up(merged, now_.product / last) > kPhaseOperandsMax - last) {
                return; // More than one reduction takes; the first joins fewer.
            }
            if (ns + lines_.join_ns + lines_.part_ns >= best_.ns) {
                return;
            }
            ns += prices_.later_ns(merge_phase(merged, now_.product / first, first)) -
                  factor_ns(first) +
                  prices_.later_ns(inverse_merge_phase(merged, now_.product / last, last)) -
                  factor_ns(last);
        }
        if (ns < best_.ns) {
            best_ = now_;
            best_.ns = ns;
            best_.folded = folded;
            best_.merged = merged;
        }
    }

    Prices prices_;
    MultiplyingLines lines_;
    Rank count_;
    MultiplyingBound bound_;
    double first_ns_; ///< What the first phase costs more, whichever it is.
    Choice now_;
    Choice best_;
    std::array<double, 256> kept_ns_{}; ///< Prices of factors; 0: not known yet.
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
