// The chosen schedule of recursive multiplying against the cheapest of all schedules.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "test/support/catch.hpp"
#include "tools/ucg_plan/multiplying_enumeration.hpp"
#include "ucg_coll/plan/multiplying/choice.hpp"

namespace ucg::plan::test {

using tools::enumerate_multiplying;
using tools::Orders;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// What allreduce_recursive_multiplying_schedule() promises.
constexpr double kPromised = 1.02;

struct Model {
    std::string_view name;
    cost::LogGp link;
    double reduce_fixed_ns = 0;
    double reduce_per_byte_ns = 0;
};

/// Where o is 0, L + g - G stands for the postal model's alpha_p + alpha_r, and g for its alpha_r.
constexpr Model kModels[] = {
    {"pipelining postal, as in section 6.2", {500, 0, 100, 0.4}, 10, 0},
    {"pipelining postal, alpha_p / alpha_r = 100", {10'100, 0, 100, 0}, 0, 0},
    {"postal", {100, 0, 100, 0}, 0, 0},
    {"LogP", {400, 50, 200, 0}, 0, 0},
    {"LogP, messages cost processors most", {1000, 200, 1, 0.1}, 10, 0.1},
    {"nothing but gaps", {0, 0, 100, 0.1}, 10, 0.1},
    {"nothing but latency", {1000, 0, 0, 0}, 0, 0},
    {"nothing but reductions", {0, 0, 0, 0}, 20, 1},
    {"LogGP", {5000, 100, 100, 0.1}, 100, 0.2},
};

cost::Profile profile_of(const Model& model) {
    cost::Profile profile = cost::default_profile();
    profile.levels.fill(model.link);
    profile.reduce_fixed_ns = model.reduce_fixed_ns;
    profile.reduce_per_byte_ns = model.reduce_per_byte_ns;
    return profile;
}

/// The least price of all schedules, each priced by itself.
template <typename PriceNs>
double cheapest_ns(const Link& link, Rank count, std::uint64_t bytes, PriceNs&& price_ns) {
    double best_ns = kInfinity;
    enumerate_multiplying(count, {.orders = Orders::falling}, [&](const auto& schedule) {
        best_ns = std::min(best_ns, price_ns(link, schedule, bytes));
        return true;
    });
    return best_ns;
}

/// The least sum of phases for all counts up to a limit. Since the price is a sum, the cheapest
/// schedule within a collapse is the cheapest for its number of ranks; and of all products of as
/// many ranks with the same first and last phase, the cheapest serves each remainder.
class Cheapest {
  public:
    Cheapest(const Link& link, std::uint64_t bytes, Rank count_max)
        : link_(link), bytes_(bytes), products_(static_cast<std::size_t>(count_max) + 1) {
        joins_ns_.assign(products_.size() * products_.size(), -1);
        parts_ns_ = joins_ns_;
        inside_ns_.assign(products_.size(), kInfinity);
        inside_ns_[1] = 0;
        for (Rank count = 2; count <= count_max; ++count) {
            find_products(count);
        }
        for (Rank count = 2; count <= count_max; ++count) {
            find_inside(count);
        }
    }

    double ns(Rank count) const {
        double best_ns = inside_ns_[static_cast<std::size_t>(count)];
        for (Rank base = 2; base <= count; ++base) {
            const double fold_ns =
                later_ns(collapse_phase(base, base)) + later_ns(expand_phase(base, base));
            for (Rank groups = 1; groups <= count / base; ++groups) {
                const auto acting = static_cast<std::size_t>(count - groups * (base - 1));
                best_ns = std::min(best_ns, fold_ns + inside_ns_[acting]);
            }
        }
        return best_ns;
    }

  private:
    struct Product {
        Rank first_base = 1;
        Rank first_groups = 1;
        Rank last_base = 1;
        Rank last_groups = 1;
        double ns = 0;
    };

    /// The price of a phase that is not the first one of a schedule. These models price all later
    /// ones alike.
    double later_ns(const Phase& phase) const {
        const MultiplyingSchedule pair = {{factor_phase(2), phase}};
        return sum_of_phases_ns(link_, pair, bytes_) -
               sum_of_phases_ns(link_, {{factor_phase(2)}}, bytes_);
    }

    /// Finds all products that come to `count`, with each choice of the first and the last phase.
    void find_products(Rank count) {
        std::map<std::pair<Rank, Rank>, double> ends;
        const auto visit = [&](const MultiplyingSchedule& schedule) {
            if (schedule.phases.front().kind != PhaseKind::factor) {
                return false; // The search visits the products first.
            }
            const double ns = sum_of_phases_ns(link_, schedule, bytes_);
            inside(count) = std::min(inside(count), ns);
            for (const Phase& first : schedule.phases) {
                for (const Phase& last : schedule.phases) {
                    if (&first != &last) {
                        const auto [at, is_new] =
                            ends.emplace(std::pair(first.base, last.base), ns);
                        at->second = std::min(at->second, ns);
                    }
                }
            }
            return true;
        };
        enumerate_multiplying(count, {.orders = Orders::falling}, visit);
        for (const auto& [bases, ns] : ends) {
            products_[static_cast<std::size_t>(count)].push_back(
                {bases.first, count / bases.first, bases.second, count / bases.second, ns});
        }
    }

    void find_inside(Rank count) {
        for (Rank product = 4; product < count; ++product) {
            const Rank rest = count - product;
            for (const Product& one : products_[static_cast<std::size_t>(product)]) {
                const Rank first = (rest - 1) / one.first_groups + 1;
                const Rank last = (rest - 1) / one.last_groups + 1;
                inside(count) = std::min(inside(count), one.ns + join_ns(one.first_base, first) +
                                                            part_ns(one.last_base, last));
            }
        }
    }

    /// The price of `joining` more members in each group of a merge. Longer reductions may cost
    /// more for each operand.
    double join_ns(Rank base, Rank joining) {
        double& ns = joins_ns_[static_cast<std::size_t>(base) * products_.size() +
                               static_cast<std::size_t>(joining)];
        if (ns < 0) {
            ns = later_ns(merge_phase(joining, 1, base)) - later_ns(factor_phase(base));
        }
        return ns;
    }

    /// The same for the members of an inverse merge that receive the result only.
    double part_ns(Rank base, Rank told) {
        double& ns = parts_ns_[static_cast<std::size_t>(base) * products_.size() +
                               static_cast<std::size_t>(told)];
        if (ns < 0) {
            ns = later_ns(inverse_merge_phase(told, 1, base)) - later_ns(factor_phase(base));
        }
        return ns;
    }

    double& inside(Rank count) { return inside_ns_[static_cast<std::size_t>(count)]; }

    const Link& link_;
    std::uint64_t bytes_;
    /// The index is the base and how many join; a value below 0 is not known yet.
    std::vector<double> joins_ns_;
    std::vector<double> parts_ns_;
    std::vector<std::vector<Product>> products_;
    std::vector<double> inside_ns_; ///< Without a collapse.
};

void compare(const Link& link, const Cheapest& cheapest, Rank count, std::uint64_t bytes) {
    const double found_ns = allreduce_recursive_multiplying_ns(link, count, bytes);
    const double least_ns = cheapest.ns(count);
    INFO(count << " ranks: "
               << to_text(allreduce_recursive_multiplying_schedule(link, count, bytes)) << ", "
               << found_ns << " ns, the least is " << least_ns);
    CHECK(found_ns <= kPromised * least_ns);
    CHECK(found_ns >= least_ns * (1 - 1e-9));
}

void compare_all(Rank count_max, const std::vector<Rank>& samples) {
    for (const Model& model : kModels) {
        for (const std::uint64_t bytes : {8, 2000}) {
            INFO(model.name << ", " << bytes << " bytes");
            const cost::Profile profile = profile_of(model);
            const topo::Placement hosts = topo::Placement::regular(2, 1);
            const Link link({hosts, profile}, topo::Distance::network);
            const Rank largest = std::max(count_max, samples.empty() ? 0 : samples.back());
            const Cheapest cheapest(link, bytes, largest);
            for (Rank count = kPricedByRank + 1; count <= count_max; ++count) {
                compare(link, cheapest, count, bytes);
            }
            for (const Rank count : samples) {
                compare(link, cheapest, count, bytes);
            }
        }
    }
}

/// Compares the choice with all schedules, each of them priced rank by rank.
void compare_by_rank(Rank first, Rank last) {
    const auto price_ns = [](const Link& link, const MultiplyingSchedule& schedule,
                             std::uint64_t bytes) {
        return allreduce_recursive_multiplying_ns(link, schedule, bytes);
    };
    for (const Model& model : kModels) {
        const cost::Profile profile = profile_of(model);
        const topo::Placement hosts = topo::Placement::regular(2, 1);
        const Link link({hosts, profile}, topo::Distance::network);
        for (Rank count = first; count <= last; ++count) {
            const MultiplyingSchedule schedule =
                allreduce_recursive_multiplying_schedule(link, count, 8);
            INFO(model.name << ", " << count << " ranks: " << to_text(schedule));
            CHECK(allreduce_recursive_multiplying_ns(link, schedule, 8) <=
                  kPromised * cheapest_ns(link, count, 8, price_ns));
        }
    }
}

/// Computed by the recursion H(n) = sum of H(d) over the divisors d < n.
std::vector<std::uint64_t> ordered_factorizations(Rank count_max) {
    std::vector<std::uint64_t> counts(static_cast<std::size_t>(count_max) + 1, 0);
    counts[1] = 1;
    for (std::size_t divisor = 1; divisor < counts.size(); ++divisor) {
        for (std::size_t n = 2 * divisor; n < counts.size(); n += divisor) {
            counts[n] += counts[divisor];
        }
    }
    return counts;
}

} // namespace

TEST_CASE("multiplying: each schedule is enumerated once, and fits", "[multiplying]") {
    for (const Orders orders : {Orders::every, Orders::falling}) {
        for (Rank count = 2; count <= 26; ++count) {
            std::set<std::string> texts;
            const bool ended =
                enumerate_multiplying(count, {.orders = orders}, [&](const auto& schedule) {
                    INFO(to_text(schedule));
                    CHECK(fits(schedule, count).ok());
                    CHECK(texts.insert(to_text(schedule)).second);
                    return true;
                });
            CHECK(ended);
        }
    }
}

TEST_CASE("multiplying: as many schedules are enumerated as there are", "[multiplying]") {
    constexpr Rank kMost = 64;
    const std::vector<std::uint64_t> products = ordered_factorizations(kMost);
    std::vector<std::uint64_t> inside = products;
    for (std::size_t count = 2; count <= kMost; ++count) {
        for (std::size_t product = 4; product < count; ++product) {
            // Products of a single factor are left out, since they have no two ends.
            inside[count] += products[product] - 1;
        }
    }
    for (Rank count = 2; count <= kMost; ++count) {
        auto expected = inside[static_cast<std::size_t>(count)];
        for (Rank base = 2; base <= count; ++base) {
            for (Rank groups = 1; groups <= count / base; ++groups) {
                expected += inside[static_cast<std::size_t>(count - groups * (base - 1))];
            }
        }
        std::uint64_t found = 0;
        enumerate_multiplying(count, {}, [&](const auto&) { return ++found > 0; });
        INFO(count << " ranks");
        CHECK(found == expected);
    }
}

TEST_CASE("multiplying: an enumeration ends where it is told, and keeps to its bases",
          "[multiplying]") {
    int seen = 0;
    CHECK(!enumerate_multiplying(24, {}, [&](const auto&) { return ++seen < 10; }));
    CHECK(seen == 10);
    enumerate_multiplying(24, {.base_max = 3}, [&](const auto& schedule) {
        INFO(to_text(schedule));
        for (const Phase& phase : schedule.phases) {
            CHECK(phase.base <= 3);
        }
        return true;
    });
}

TEST_CASE("multiplying: the cheapest of all is what its parts say", "[multiplying]") {
    for (const Model& model : kModels) {
        const cost::Profile profile = profile_of(model);
        const topo::Placement hosts = topo::Placement::regular(2, 1);
        const Link link({hosts, profile}, topo::Distance::network);
        const Cheapest cheapest(link, 8, 48);
        for (Rank count = 2; count <= 48; ++count) {
            INFO(model.name << ", " << count << " ranks");
            CHECK(cheapest.ns(count) == Approx(cheapest_ns(link, count, 8, sum_of_phases_ns)));
        }
    }
}

TEST_CASE("multiplying: the choice for few ranks is close to the cheapest of all",
          "[multiplying]") {
    compare_by_rank(2, 20);
}

TEST_CASE("multiplying: so it is for all that are priced rank by rank",
          "[.exhaustive][multiplying]") {
    compare_by_rank(21, kPricedByRank);
}

TEST_CASE("multiplying: the choice is close to the cheapest of all", "[multiplying][thorough]") {
    compare_all(512, {521, 529, 625, 720, 729, 840, 961, 1009, 1023, 1024});
}

TEST_CASE("multiplying: the same for thousands of ranks", "[.exhaustive][multiplying]") {
    compare_all(1024, {1680, 2047, 2048, 2053, 2187, 2520, 3125, 3481, 4093, 4095, 4096});
}

} // namespace ucg::plan::test
