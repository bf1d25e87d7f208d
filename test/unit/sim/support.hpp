// What the tests of ucg_coll/sim share: schedules of all ranks, generated or written by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ucg_coll/graph/graph.hpp"
#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace ucg::test {

graph::Request request_of(graph::Collective collective, Rank rank_count, std::uint64_t bytes);
graph::Request allreduce_of(std::uint64_t bytes, Rank rank_count);

/// The planner's schedules of all ranks. REQUIRES: the algorithm serves the request.
std::vector<graph::Schedule> planned(const topo::Placement& placement,
                                     const graph::Request& request, std::string_view algorithm);
std::vector<graph::Schedule> planned(const plan::Facts& facts, const graph::Request& request,
                                     std::string_view algorithm);

/// An allreduce in phases, one for each factor of the number of ranks. In each phase a rank posts
/// its receives, sends its partial result to the others of its subgroup in rising order of their
/// distance, and combines all results in one reduction.
std::vector<graph::Schedule> multi_way_exchange(std::span<const std::uint32_t> factors,
                                                std::uint64_t bytes);

/// Simulates the schedules once; the test fails if they do not fit together.
sim::Outcome simulated(std::span<const graph::Schedule> schedules, const topo::Placement& placement,
                       const sim::Options& options, std::uint64_t seed = 1,
                       sim::Trace* trace = nullptr);

/// The same on one host.
sim::Outcome simulated(std::span<const graph::Schedule> schedules, const sim::Options& options,
                       std::uint64_t seed = 1, sim::Trace* trace = nullptr);

/// Options of the pipelining postal model.
sim::Options options_of(const cost::PipeliningPostal& model);

/// The parameters of section 6.2 of the paper.
inline constexpr cost::PipeliningPostal kPaper = {.alpha_p_ns = 400,
                                                  .alpha_r_ns = 100,
                                                  .beta_ns_per_byte = 0.4,
                                                  .gamma_ns_per_byte = 0,
                                                  .reduce_fixed_ns = 10};

} // namespace ucg::test
