// Facade of ucg_coll/plan: (facts, request) -> Schedule, a pure function that gives every rank its
// part of one and the same plan. May include base, topo, cost, price, graph and aapc; never the
// engine, a transport, a clock or the environment.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/plan/algorithm.hpp"
#include "ucg_coll/plan/algorithms_by_size.hpp"

namespace ucg::plan {

/// Returns all rows, grouped by collective.
std::span<const Algorithm> algorithms();

/// Returns the row of that name, which has no argument in it; null if there is none.
const Algorithm* find_algorithm(graph::Collective collective, std::string_view name);

/// A row with its predicted cost for a request.
struct Candidate {
    const Algorithm* algorithm = nullptr;
    double cost_ns = 0; ///< Of one call: the mean of calls_in_a_row() calls.
};
/// Returns the eligible rows for a request, cheapest first (ties: table order). Rows whose ranks
/// help one another (Algorithm::helped) are among them only if the request is nonblocking and
/// buffers are mapped; they come before other rows as long as they cost at most 15 % more.
std::vector<Candidate> candidates(const Facts& facts, const graph::Request& request);

/// Returns the first of candidates(), without allocating. Every request has one: each collective
/// has a row that is always eligible.
const Algorithm& choose(const Facts& facts, const graph::Request& request);

/// Returns the schedule of `rank`. If `algorithm` is empty the planner chooses; else it must name a
/// row that is eligible, maybe with an argument (split_algorithm). Fails with invalid_argument
/// (malformed request; unknown algorithm, with the names that exist; wrong argument) or unsupported
/// (not eligible, with the reason).
Result<graph::Schedule> plan(const Facts& facts, const graph::Request& request, Rank rank,
                             std::string_view algorithm = {});

} // namespace ucg::plan
