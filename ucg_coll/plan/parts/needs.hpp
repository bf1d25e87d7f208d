// What several mechanisms ask for.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

namespace ucg::plan {

inline constexpr Need kOneHost = {"one host", [](const Facts& facts, const graph::Request&) {
                                      return facts.placement.host_count() == 1;
                                  }};
inline constexpr Need kSeveralRanks = {
    "several ranks",
    [](const Facts&, const graph::Request& request) { return request.rank_count > 1; }};
inline constexpr Need kMoreThanTwoRanks = {
    "more than two ranks",
    [](const Facts&, const graph::Request& request) { return request.rank_count > 2; }};
inline constexpr Need kCommutative = {
    "a commutative operator",
    [](const Facts&, const graph::Request& request) { return request.commutative; }};
inline constexpr Need kNotInPlace = {
    "buffers that are not in place",
    [](const Facts&, const graph::Request& request) { return !request.in_place; }};

} // namespace ucg::plan
