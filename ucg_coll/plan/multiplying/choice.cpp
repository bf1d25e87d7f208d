#include "ucg_coll/plan/multiplying/choice.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "ucg_coll/plan/multiplying/bound.hpp"
#include "ucg_coll/plan/multiplying/ranks.hpp"

namespace ucg::plan {
namespace {

/// The most factors of a product: a Rank cannot hold a product of more.
constexpr std::size_t kFactorsMax = std::numeric_limits<Rank>::digits;
constexpr Rank kKeptMax = 255; ///< The largest base whose price is kept.

Rank divide_up(Rank dividend, Rank divisor) {
    return (dividend - 1) / divisor + 1;
}

/// Returns the most ranks that join a group of the merge, or that a group of the inverse merge
/// tells.
Rank most_joining(const Phase& phase) {
    return divide_up(phase.count, phase.groups);
}

/// Returns the messages of the rank that ends a phase last. A member that joins has a message for
/// each worker of its group, and in the inverse merge a worker has one for each of these members.
/// All send in the same order, so their last messages come to one rank at the same time.
Link::PhaseMessages messages_of(const Phase& phase) {
    const Rank peers = phase.base - 1;
    switch (phase.kind) {
    case PhaseKind::collapse: return {.sends = 0, .takes = peers, .last_takes = peers};
    case PhaseKind::expand: return {.sends = 0, .takes = 1, .last_sent = peers};
    case PhaseKind::factor: return {.sends = peers, .takes = peers, .last_sent = peers};
    case PhaseKind::merge:
        return {.sends = peers,
                .takes = peers + most_joining(phase),
                .last_sent = phase.base,
                .last_takes = most_joining(phase)};
    case PhaseKind::inverse_merge:
        return {.sends = peers + most_joining(phase),
                .takes = peers,
                .last_sent = peers + most_joining(phase),
                .last_takes = phase.base};
    }
    UCG_ASSERT(false);
    return {};
}

/// Returns how many vectors a rank combines at the end of a phase; 0 if none.
Rank operands_of(const Phase& phase) {
    switch (phase.kind) {
    case PhaseKind::expand: return 0;
    case PhaseKind::collapse:
    case PhaseKind::factor:
    case PhaseKind::inverse_merge: return phase.base;
    case PhaseKind::merge: return phase.base + most_joining(phase);
    }
    UCG_ASSERT(false);
    return 0;
}

/// The costs of phases for one length of vectors.
class Prices {
  public:
    Prices(const Link& link, std::uint64_t bytes) : link_(link), bytes_(bytes) {}

    double ns(const Phase& phase, bool first) const {
        const Rank operands = operands_of(phase);
        return messages_ns(messages_of(phase), first) + (operands > 0 ? reduce_ns(operands) : 0);
    }
    double reduce_ns(Rank operands) const {
        return link_.reduce_ns(static_cast<unsigned>(operands), bytes_);
    }

    double later_ns(const Phase& phase) const { return ns(phase, false); }
    double factor_ns(Rank base) const { return later_ns(factor_phase(base)); }
    /// Returns the cost of collapse and expand in groups of 1 + `folded`.
    double collapse_ns(Rank folded) const {
        return later_ns(collapse_phase(folded + 1, folded + 1)) +
               later_ns(expand_phase(folded + 1, folded + 1));
    }
    double messages_ns(const Link::PhaseMessages& messages, bool first) const {
        return link_.phase_ns(bytes_, first ? Source::settled : Source::fresh, messages);
    }

  private:
    const Link& link_;
    std::uint64_t bytes_;
};

/// Returns lines that no price lies below. What more operands cost depends on which cache they fit,
/// but it is not less than the cost of fewer. What messages cost is convex in their number, so the
/// step from the first to the second is the smallest.
MultiplyingLines lines_of(const Prices& prices) {
    const auto step_ns = [&](Link::PhaseMessages one, Link::PhaseMessages two) {
        return prices.messages_ns(two, false) - prices.messages_ns(one, false);
    };
    const double take_ns = step_ns({.takes = 1}, {.takes = 2, .last_takes = 2});
    const double send_ns = step_ns({.last_sent = 1}, {.last_sent = 2});
    MultiplyingLines lines;
    lines.base_ns = step_ns(messages_of(factor_phase(2)), messages_of(factor_phase(3)));
    lines.phase_ns = prices.factor_ns(2) - 2 * lines.base_ns;
    const Rank wide = kPhaseOperandsMax;
    lines.busy_base_ns =
        step_ns(messages_of(factor_phase(wide - 1)), messages_of(factor_phase(wide)));
    lines.busy_phase_ns = prices.messages_ns(messages_of(factor_phase(wide)), false) +
                          prices.reduce_ns(2) - wide * lines.busy_base_ns;
    lines.join_ns = std::min(take_ns, send_ns);
    lines.part_ns = lines.busy_base_ns > lines.base_ns ? lines.join_ns : send_ns;
    lines.folded_ns = take_ns + send_ns;
    lines.fold_ns = prices.collapse_ns(1) - lines.folded_ns;
    return lines;
}

/// The places of two factors in a choice: those of the merge and of the inverse merge.
struct Ends {
    std::size_t first = 0;
    std::size_t last = 0;
};

/// A candidate: a product of factors that never rise, and what becomes of the members in excess of
/// it.
struct Choice {
    double ns = std::numeric_limits<double>::infinity();
    Rank product = 1;
    Rank folded = 0; ///< Ranks of each group of the collapse that do not act; 0: no collapse.
    Rank merged = 0; ///< Ranks of the remainder; 0: no merge.
    Ends ends;       ///< The factors that merge the remainder.
    std::size_t count = 0;
    std::array<Rank, kFactorsMax> factors{};
};

/// Searches products of factors that never rise, by branch and bound.
class Search {
  public:
    /// Skips what costs no less than `worthwhile` times the best so far.
    Search(const Link& link, Rank count, std::uint64_t bytes, double worthwhile)
        : worthwhile_(worthwhile), prices_(link, bytes), lines_(lines_of(prices_)), count_(count),
          bound_(lines_, count),
          first_ns_(prices_.ns(factor_phase(2), true) - prices_.factor_ns(2)),
          kept_ns_(static_cast<std::size_t>(std::min(count, kKeptMax)) + 1) {
        if (count == 1) {
            best_.ns = 0;
            return;
        }
        try_powers();
        extend(std::min(count, kPhaseOperandsMax), first_ns_);
    }

    const Choice& best() const { return best_; }
    /// Returns the `most` cheapest of the choices that were looked at and cost less than
    /// `worthwhile` times the best; none unless `worthwhile` is above 1.
    std::vector<Choice> close_to_best(std::size_t most) {
        std::erase_if(looked_at_, [&](const Choice& choice) { return !worthwhile(choice.ns); });
        std::sort(looked_at_.begin(), looked_at_.end(),
                  [](const Choice& a, const Choice& b) { return a.ns < b.ns; });
        looked_at_.resize(std::min(looked_at_.size(), most));
        return std::move(looked_at_);
    }

  private:
    bool worthwhile(double ns) const { return ns < best_.ns * worthwhile_; }

    /// Tries powers of one base, so that there is something good to compare with from the
    /// beginning.
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

    /// Returns the cost of a factor. Keeps those of small bases, which come again and again.
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

    /// Tries all products that begin with the factors so far, which cost `ns`. Bases are tried from
    /// the largest down, in stretches that share one bound of what is left to pay: most stretches
    /// are not worth a look at each of their bases.
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

    /// Tries all products that go on with `base`, after which at least `left_ns` is left to pay.
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

    /// Returns a base above which none is worthwhile after phases that cost `ns`.
    Rank dearest_base(double ns) const {
        const double left_ns = best_.ns * worthwhile_ - ns - lines_.phase_ns;
        return lines_.base_ns * kPhaseOperandsMax <= left_ns
                   ? kPhaseOperandsMax
                   : static_cast<Rank>(std::max(1.0, left_ns / lines_.base_ns));
    }

    void consider(double ns) {
        const Rank rest = count_ - now_.product;
        keep(ns, 0, rest);
        // Groups of 1 + d leave (count - product) mod d members over. There are no more groups than
        // the product has members, from this d on.
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

    /// Returns which of the two smallest factors merges and which one undoes that, and what both
    /// cost more than the factors alone.
    std::pair<double, Ends> cheapest_ends(Rank merged) {
        std::pair<double, Ends> best{std::numeric_limits<double>::infinity(), {}};
        for (const Ends ends :
             {Ends{now_.count - 1, now_.count - 2}, Ends{now_.count - 2, now_.count - 1}}) {
            const Rank first = now_.factors[ends.first];
            const Rank last = now_.factors[ends.last];
            const Rank most = std::max(divide_up(merged, now_.product / first) + first,
                                       divide_up(merged, now_.product / last) + last);
            if (most > kPhaseOperandsMax) {
                continue; // More operands than one reduction takes.
            }
            const double ns =
                prices_.later_ns(merge_phase(merged, now_.product / first, first)) -
                factor_ns(first) +
                prices_.later_ns(inverse_merge_phase(merged, now_.product / last, last)) -
                factor_ns(last);
            if (ns < best.first) {
                best = {ns, ends};
            }
        }
        return best;
    }

    void keep(double ns, Rank folded, Rank merged) {
        if (merged > 0) {
            if (now_.count < 2) {
                return;
            }
            if (ns + lines_.join_ns + lines_.part_ns >= best_.ns * std::max(1.0, worthwhile_)) {
                return;
            }
            const auto [merged_ns, ends] = cheapest_ends(merged);
            ns += merged_ns;
            now_.ends = ends;
        }
        const bool is_close = worthwhile_ > 1 && worthwhile(ns);
        if (ns >= best_.ns && !is_close) {
            return;
        }
        Choice choice = now_;
        choice.ns = ns;
        choice.folded = folded;
        choice.merged = merged;
        if (is_close) {
            looked_at_.push_back(choice);
        }
        if (ns < best_.ns) {
            best_ = choice;
        }
    }

    double worthwhile_;

    Prices prices_;
    MultiplyingLines lines_;
    Rank count_;
    MultiplyingBound bound_;
    double first_ns_; ///< What any phase costs more if it is the first.
    Choice now_;
    Choice best_;
    std::vector<Choice> looked_at_;
    std::vector<double> kept_ns_; ///< Prices of small factors; 0: not known yet.
};

MultiplyingSchedule schedule_of(const Choice& choice, Rank count) {
    MultiplyingSchedule schedule;
    std::vector<Phase>& phases = schedule.phases;
    for (std::size_t i = 0; i < choice.count; ++i) {
        if (choice.merged == 0 || (i != choice.ends.first && i != choice.ends.last)) {
            phases.push_back(factor_phase(choice.factors[i]));
        }
    }
    if (choice.merged > 0) {
        const Rank first = choice.factors[choice.ends.first];
        const Rank last = choice.factors[choice.ends.last];
        phases.insert(phases.begin(), merge_phase(choice.merged, choice.product / first, first));
        phases.push_back(inverse_merge_phase(choice.merged, choice.product / last, last));
    }
    if (choice.folded > 0) {
        const Rank base = choice.folded + 1;
        const Rank threshold = (count - choice.product - choice.merged) / choice.folded * base;
        phases.insert(phases.begin(), collapse_phase(threshold, base));
        phases.push_back(expand_phase(threshold, base));
    }
    return schedule;
}

/// Returns whether the ends are two different factors, and unlike those of a choice with earlier
/// ends.
bool has_new_ends(const Choice& choice) {
    const auto alike_before = [&](std::size_t place) {
        return std::count(choice.factors.begin(),
                          choice.factors.begin() + static_cast<std::ptrdiff_t>(place),
                          choice.factors[place]);
    };
    const auto [first, last] = choice.ends;
    const bool same = choice.factors[first] == choice.factors[last];
    return first != last && alike_before(first) == 0 && alike_before(last) == (same ? 1 : 0);
}

struct PricedChoice {
    MultiplyingSchedule schedule;
    double ns = std::numeric_limits<double>::infinity();
};

/// Sums of phases are wrong by at most this factor.
constexpr double kSumsAreWithin = 1.35;
/// The schedule whose last rank is done first is among so many that have the least sums.
constexpr std::size_t kChoicesMax = 24;

/// Returns, of the schedules whose sums of phases are close to the least, the one whose last rank
/// is done first.
PricedChoice cheapest_of_small(const Link& link, Rank count, std::uint64_t bytes) {
    MultiplyingRanks ranks(link, bytes);
    PricedChoice best;
    const auto look_at = [&](const Choice& choice) {
        MultiplyingSchedule schedule = schedule_of(choice, count);
        if (const double ns = ranks.finish_ns(schedule, count, best.ns); ns < best.ns) {
            best = {std::move(schedule), ns};
        }
    };
    for (Choice& choice : Search(link, count, bytes, kSumsAreWithin).close_to_best(kChoicesMax)) {
        if (choice.merged == 0) {
            look_at(choice);
            continue;
        }
        Ends& ends = choice.ends;
        for (ends.first = 0; ends.first < choice.count; ++ends.first) {
            for (ends.last = 0; ends.last < choice.count; ++ends.last) {
                if (has_new_ends(choice)) {
                    look_at(choice);
                }
            }
        }
    }
    return best;
}

bool is_priced_by_rank(const Link& link, Rank count, std::uint64_t bytes) {
    return count <= kPricedByRank && link.has_plain_messages(bytes);
}

/// Returns a choice by sums of phases. Skips what cannot be cheaper than the best so far by more
/// than this share, so the choice costs at most 1 / (1 - 0.019) of the least.
Choice cheapest_of_many(const Link& link, Rank count, std::uint64_t bytes) {
    constexpr double kWorthwhile = 1 - 0.019;
    return Search(link, count, bytes, kWorthwhile).best();
}

} // namespace

double sum_of_phases_ns(const Link& link, const MultiplyingSchedule& schedule,
                        std::uint64_t bytes) {
    double ns = 0;
    std::uint64_t product = 1;
    bool aligned = true; // While all phases so far are factors, partners are.
    for (std::size_t i = 0; i < schedule.phases.size(); ++i) {
        const Phase& phase = schedule.phases[i];
        aligned = (aligned && phase.kind == PhaseKind::factor) || link.levels().are_hosts_only();
        product *= aligned ? static_cast<std::uint64_t>(phase.base) : 1;
        const Link level =
            aligned ? link.within(product, static_cast<std::uint64_t>(phase.base)) : link;
        ns += Prices(level, bytes).ns(phase, i == 0);
    }
    return ns;
}

double allreduce_recursive_multiplying_ns(const Link& link, const MultiplyingSchedule& schedule,
                                          std::uint64_t bytes) {
    const Result<Rank> count = rank_count_of(schedule);
    UCG_ASSERT(count.ok());
    return is_priced_by_rank(link, *count, bytes)
               ? MultiplyingRanks(link, bytes).finish_ns(schedule, *count)
               : sum_of_phases_ns(link, schedule, bytes);
}

double allreduce_recursive_multiplying_ns(const Link& link, Rank count, std::uint64_t bytes) {
    if (count > 1 && is_priced_by_rank(link, count, bytes)) {
        const PricedChoice best = cheapest_of_small(link, count, bytes);
        return link.levels().count() > 0 ? sum_of_phases_ns(link, best.schedule, bytes) : best.ns;
    }
    const Choice choice = cheapest_of_many(link, count, bytes);
    // The search priced all phases as if they went as far as any.
    return link.levels().count() > 0 ? sum_of_phases_ns(link, schedule_of(choice, count), bytes)
                                     : choice.ns;
}

MultiplyingSchedule allreduce_recursive_multiplying_schedule(const Link& link, Rank count,
                                                             std::uint64_t bytes) {
    if (count > 1 && is_priced_by_rank(link, count, bytes)) {
        return cheapest_of_small(link, count, bytes).schedule;
    }
    return schedule_of(cheapest_of_many(link, count, bytes), count);
}

} // namespace ucg::plan
