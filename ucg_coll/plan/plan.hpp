// Facade of ucg_coll/plan: (facts, request) -> Schedule, a pure function that gives every rank its
// part of one and the same plan. May include base, topo, cost and graph; never the engine, a
// transport, a clock or the environment.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/plan/algorithm.hpp"
#include "ucg_coll/plan/algorithms_by_size.hpp"

namespace ucg::plan {

/// All rows, grouped by collective.
std::span<const Algorithm> algorithms();

/// The row of that name, without an argument; null if there is none.
const Algorithm* find_algorithm(graph::Collective collective, std::string_view name);

/// The eligible rows for a request with their predicted cost, cheapest first (ties: table order).
/// Rows of ranks that help one another only if it is nonblocking; these come before others that
/// cost up to 15 % less.
struct Candidate {
    const Algorithm* algorithm = nullptr;
    double cost_ns = 0; ///< Of one call: the mean of calls_in_a_row() calls.
};
std::vector<Candidate> candidates(const Facts& facts, const graph::Request& request);

/// The cheapest eligible row without allocating. Every request has one: each collective has a row
/// that is always eligible.
const Algorithm& choose(const Facts& facts, const graph::Request& request);

/// The program of `rank`. With `algorithm` empty the planner chooses; else it must name a row that
/// is eligible, maybe with an argument (split_algorithm). Fails with invalid_argument (malformed
/// request, unknown algorithm, with the names that exist, wrong argument) or unsupported (not
/// eligible, with the reason).
Result<graph::Schedule> plan(const Facts& facts, const graph::Request& request, Rank rank,
                             std::string_view algorithm = {});

} // namespace ucg::plan
