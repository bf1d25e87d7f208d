// Schedules for tests: written by hand as text, or at random from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/graph/graph.hpp"

namespace ucg::graph::test {

/// One schedule per "rank" line of `bodies`, for `request`; an op is a line "op ...", numbered
/// here. Example: "rank scratch 8\n send to 1 input[0:8]\n rank scratch 8\n recv from 0
/// output[0:8]".
std::vector<Schedule> programs(const std::vector<Request>& requests, std::string_view bodies);

/// What verify says of them: "" if it accepts.
std::string verdict(const Request& request, std::string_view bodies, bool shared_memory = false);
std::string verdict(const std::vector<Request>& requests, std::string_view bodies,
                    bool shared_memory = false);

/// A well-formed schedule that makes no sense: all op kinds, strides, repeats, dependencies.
Schedule random_schedule(std::uint32_t seed);

Request request(Collective collective, Rank rank_count, std::uint64_t bytes, Rank root = 0);

} // namespace ucg::graph::test
