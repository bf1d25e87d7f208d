// Random changes of schedules. Some make a schedule wrong, others do not.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::test {

/// Changes the schedules of all ranks of a collective in one way: at one rank, at both ends of a
/// message, or alike at all ranks. Returns what was changed; empty if the kind of change that was
/// drawn does not apply.
std::string mutate(std::vector<graph::Schedule>& schedules, std::mt19937_64& random);

} // namespace ucg::test
