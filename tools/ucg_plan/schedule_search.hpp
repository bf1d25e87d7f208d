// Searches the schedules of recursive multiplying for the cheapest ones under a model of the
// network. It looks at all schedules that enumerate_multiplying() visits, and prices them by the
// closed form where that is exact and by the simulator elsewhere.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/ucg_plan/multiplying_enumeration.hpp"
#include "ucg_coll/plan/algorithm.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace ucg::tools {

struct SearchQuestion {
    const plan::Facts& facts;
    const sim::Options& options; ///< Without random delays.
    graph::Request request;      ///< Rank 0's: an allreduce among two or more.
    EnumerationBounds bounds;
    std::size_t top = 1;               ///< Number of schedules to return.
    std::uint64_t schedules_limit = 0; ///< Most schedules that are enumerated.
    std::uint64_t runs_limit = 0;      ///< Most schedules that are simulated.
};

struct PricedSchedule {
    std::string text;
    double ns = 0; ///< Time at which the last rank is done.
    bool simulated = false;

    bool operator==(const PricedSchedule&) const = default;
};

struct SearchResult {
    std::vector<PricedSchedule> best; ///< Cheapest first; of equal ones the shortest text.
    std::uint64_t enumerated = 0;
    std::uint64_t simulated = 0;
    bool all_enumerated = true; ///< False: the limit of schedules was reached.
    bool all_priced = true;     ///< False: the limit of runs was reached.
};

/// A function that is called now and then with the number of schedules looked at so far, `done`,
/// and the largest number that this stage may look at, `most`.
using SearchProgress =
    std::function<void(std::string_view stage, std::uint64_t done, std::uint64_t most)>;

/// Returns the cheapest schedules. No other schedule that was enumerated is cheaper, unless the
/// limit of runs was reached: a schedule is left out without a simulation only if a lower bound of
/// its price allows it.
Result<SearchResult> search_schedules(const SearchQuestion& question,
                                      const SearchProgress& progress);

/// Returns the price of one schedule. Fails with invalid_argument if it does not fit the ranks.
Result<PricedSchedule> price_schedule(const SearchQuestion& question, const std::string& text);

/// Returns a lower bound of the time of any run of the schedule, except for rounding: the time of a
/// path of messages and reductions each of which depends on the one before.
double schedule_bound_ns(const SearchQuestion& question, const plan::MultiplyingSchedule& schedule);

/// Returns the schedule that the planner would choose if all links were as the model says. Fails
/// with unsupported for a model to which the planner has no equivalent (LogfP).
Result<plan::MultiplyingSchedule> planner_choice(const SearchQuestion& question);

} // namespace ucg::tools
