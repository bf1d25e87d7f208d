#include "ucg_coll/plan/multiplying_choice.hpp"

#include <algorithm>
#include <array>
#include <limits>

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

/// What becomes of the members who are too many for a product.
enum class Rest { none, merged, collapsed };

struct Choice {
    double ns = std::numeric_limits<double>::infinity();
    Rest rest = Rest::none;
    Rank product = 1;
    std::size_t count = 0;
    std::array<Rank, kFactorsMax> factors{};
};

/// Branch and bound over products of falling factors. Nothing here allocates.
class Search {
  public:
    Search(const Link& link, Rank count, std::uint64_t bytes)
        : prices_(link, bytes), count_(count) {
        for (Rank base = static_cast<Rank>(kRadixMin); base <= static_cast<Rank>(kRadixMax);
             ++base) {
            first_ns_[static_cast<std::size_t>(base)] = prices_.ns(factor_phase(base), true);
            later_ns_[static_cast<std::size_t>(base)] = prices_.ns(factor_phase(base), false);
        }
        if (count == 1) {
            best_.ns = 0;
        } else {
            extend(static_cast<Rank>(kRadixMax), 0);
        }
    }

    const Choice& best() const { return best_; }

  private:
    /// Tries all products that begin with the factors so far, which cost `ns`.
    void extend(Rank largest, double ns) {
        consider(ns);
        const bool first = now_.count == 0;
        for (Rank base = largest; base >= static_cast<Rank>(kRadixMin); --base) {
            const double with_ns =
                ns + (first ? first_ns_ : later_ns_)[static_cast<std::size_t>(base)];
            if (now_.product > count_ / base || with_ns + least_ns(base) >= best_.ns) {
                continue;
            }
            now_.factors[now_.count++] = base;
            now_.product *= base;
            extend(base, with_ns);
            now_.product /= base;
            --now_.count;
        }
    }

    /// No less remains to be paid once `base` has been multiplied on: further factors up to `base`
    /// that reach half of the members, each at the price of the smallest.
    double least_ns(Rank base) const {
        double ns = 0;
        for (std::int64_t reached = std::int64_t{now_.product} * base; 2 * reached < count_;
             reached *= base) {
            ns += later_ns_[kRadixMin];
        }
        return ns;
    }

    void consider(double ns) {
        if (now_.product == count_) {
            keep(Rest::none, ns);
        } else if (now_.product >= count_ - now_.product) {
            consider_merging(ns);
            keep(Rest::collapsed, ns + collapsing_ns());
        }
    }

    void keep(Rest rest, double ns) {
        if (ns < best_.ns) {
            best_ = now_;
            best_.rest = rest;
            best_.ns = ns;
        }
    }

    /// In falling order; and with the two smallest factors at the ends, where the groups are more
    /// then, so that fewer join each.
    void consider_merging(double ns) {
        if (now_.count < 2) {
            return;
        }
        keep(Rest::merged, ns + merging_ns(now_.factors[0], now_.factors[now_.count - 1]));
        const double rotated_ns =
            ns + merging_ns(now_.factors[now_.count - 1], now_.factors[now_.count - 2]);
        if (rotated_ns < best_.ns) {
            keep(Rest::merged, rotated_ns);
            const auto begin = best_.factors.begin();
            const auto end = begin + static_cast<std::ptrdiff_t>(best_.count);
            std::rotate(begin, end - 1, end);
        }
    }

    /// What merging adds to the price of the factors, where these two go first and last.
    double merging_ns(Rank first, Rank last) const {
        const auto largest = static_cast<std::size_t>(now_.factors[0]);
        const Rank rest = count_ - now_.product;
        return later_ns_[largest] - first_ns_[largest] // None of them is the first phase.
               + prices_.ns(merge_phase(rest, now_.product / first, first), true) -
               later_ns_[static_cast<std::size_t>(first)] +
               prices_.ns(inverse_merge_phase(rest, now_.product / last, last), false) -
               later_ns_[static_cast<std::size_t>(last)];
    }

    /// The same of collapsing in pairs.
    double collapsing_ns() const {
        const Rank threshold = 2 * (count_ - now_.product);
        double ns = prices_.ns(collapse_phase(threshold, 2), true) +
                    prices_.ns(expand_phase(threshold, 2), false);
        if (now_.count > 0) { // The first factor is the first phase no more.
            const auto first = static_cast<std::size_t>(now_.factors[0]);
            ns += later_ns_[first] - first_ns_[first];
        }
        return ns;
    }

    Prices prices_;
    Rank count_;
    std::array<double, kRadixMax + 1> first_ns_{};
    std::array<double, kRadixMax + 1> later_ns_{};
    Choice now_;
    Choice best_;
};

MultiplyingSchedule schedule_of(const Choice& choice, Rank count) {
    MultiplyingSchedule schedule;
    for (std::size_t i = 0; i < choice.count; ++i) {
        schedule.phases.push_back(factor_phase(choice.factors[i]));
    }
    const Rank rest = count - choice.product;
    if (choice.rest == Rest::merged) {
        Phase& first = schedule.phases.front();
        first = merge_phase(rest, choice.product / first.base, first.base);
        Phase& last = schedule.phases.back();
        last = inverse_merge_phase(rest, choice.product / last.base, last.base);
    } else if (choice.rest == Rest::collapsed) {
        schedule.phases.insert(schedule.phases.begin(), collapse_phase(2 * rest, 2));
        schedule.phases.push_back(expand_phase(2 * rest, 2));
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
