// Searches the schedules of recursive multiplying for the cheapest under a model of the network:
// all that enumerate_multiplying() knows, priced by the closed form where it is exact and by
// the simulator elsewhere.
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
    graph::Request request;      ///< Of rank 0; an allreduce among two ranks or more.
    EnumerationBounds bounds;
    std::size_t top = 1;               ///< How many of the cheapest are wanted.
    std::uint64_t schedules_limit = 0; ///< The enumeration goes no further.
    std::uint64_t runs_limit = 0;      ///< No more are simulated.
};

struct PricedSchedule {
    std::string text;
    double ns = 0; ///< When the last rank is done.
    bool simulated = false;

    bool operator==(const PricedSchedule&) const = default;
};

struct SearchResult {
    std::vector<PricedSchedule> best; ///< The cheapest first; of equals the shortest text.
    std::uint64_t enumerated = 0;
    std::uint64_t simulated = 0;
    bool all_enumerated = true; ///< False: the limit of schedules was reached.
    bool all_priced = true;     ///< False: the limit of runs was reached.
};

/// Is told now and then how many schedules have been looked at, of at most how many in this stage.
using SearchProgress =
    std::function<void(std::string_view stage, std::uint64_t done, std::uint64_t most)>;

/// No schedule that was enumerated is cheaper than those returned, unless the limit of runs was
/// reached: one is left out without being simulated only if a lower bound says so.
Result<SearchResult> search_schedules(const SearchQuestion& question,
                                      const SearchProgress& progress);

/// The price of one. Fails with invalid_argument if it does not fit the ranks.
Result<PricedSchedule> price_schedule(const SearchQuestion& question, const std::string& text);

/// What no run of the schedule can undercut, but for rounding: a path of messages and reductions
/// that all depend on one another.
double schedule_bound_ns(const SearchQuestion& question, const plan::MultiplyingSchedule& schedule);

/// The planner's own choice, were all links as the model has them. Fails with unsupported for a
/// model that the planner has no equivalent of (LogfP).
Result<plan::MultiplyingSchedule> planner_choice(const SearchQuestion& question);

} // namespace ucg::tools
