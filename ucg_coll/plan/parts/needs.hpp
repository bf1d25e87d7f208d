// Needs that rows of several mechanisms have.
#pragma once

#include "ucg_coll/plan/algorithm.hpp"

namespace ucg::plan {

/// A rank may have so many bytes of scratch, however short its buffers are. A row whose scratch is
/// not bounded by the buffers of its host's ranks needs lengths that keep it below. See "Scratch is
/// bounded" in README.md.
inline constexpr std::uint64_t kScratchBytesMax = 64ULL << 20;

inline constexpr Need kOneHost = {"one host", [](const Facts& facts, const graph::Request&) {
                                      return facts.placement.host_count() == 1;
                                  }};
inline constexpr Need kSeveralRanks = {
    "several ranks",
    [](const Facts&, const graph::Request& request) { return request.rank_count > 1; }};
/// The need of algorithms in each of whose rounds the ranks of a host would share its link: where
/// hosts have several ranks, such algorithms are parts of two-level ones.
inline constexpr Need kHostEach = {
    "a host for each rank", [](const Facts& facts, const graph::Request& request) {
        return facts.placement.host_count() == static_cast<std::uint32_t>(request.rank_count);
    }};
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
