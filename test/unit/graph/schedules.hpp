// Schedules for tests, written by hand as text or drawn at random from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/graph/graph.hpp"

namespace ucg::graph::test {

/// The schedules of all ranks: `bodies` has one line "rank ..." for each, followed by its ops, one
/// a line, which are numbered here. Example: "rank scratch 8
///  send to 1 input[0:8]
///  rank scratch 8
///  recv from 0 output[0:8]".
std::vector<Schedule> programs(const std::vector<Request>& requests, std::string_view bodies);

/// What verify says of the schedules; "" if it accepts them.
std::string verdict(const Request& request, std::string_view bodies, bool shared_memory = false);
std::string verdict(const std::vector<Request>& requests, std::string_view bodies,
                    bool shared_memory = false);

/// A schedule that is well-formed but makes no sense, with all op kinds, strides, repeats and
/// dependencies.
Schedule random_schedule(std::uint32_t seed);

Request request(Collective collective, Rank rank_count, std::uint64_t bytes, Rank root = 0);

} // namespace ucg::graph::test
