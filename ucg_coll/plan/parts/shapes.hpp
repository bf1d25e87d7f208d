// The shapes of trees and chains: depths, radixes, segments. Only + - * / and sqrt are used, since
// all ranks must choose alike.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ucg_coll/base/base.hpp"

namespace ucg::plan {

/// Returns how many levels a tree of this radix has: the smallest d with radix^d >= count.
unsigned tree_depth(Rank count, unsigned radix);
/// Returns how many children the root of a k-nomial tree of this radix has.
unsigned root_children(Rank count, unsigned radix);

/// Returns the length of the segments in which `total` bytes pass best through a chain of `hops`
/// links, at `fixed_ns` + `per_byte_ns` a byte for each segment and link: a multiple of
/// `granularity`, at least one cache line long. It minimises
/// (hops + segments - 1) (fixed + segment per_byte).
/// REQUIRES: granularity > 0.
std::uint64_t pipeline_segment(std::uint64_t total, Rank hops, double fixed_ns, double per_byte_ns,
                               std::uint64_t granularity);

/// Radixes that trees may have.
inline constexpr unsigned kRadixMin = 2;
inline constexpr unsigned kRadixMax = 8;
inline constexpr unsigned kOversubscribedRadixMax = 64;

/// Returns the radix of a tree over `count` members with the least cost_ns(radix), the smallest of
/// equals. It tries none above `count`: from there on the root sends to all others, whatever the
/// radix.
template <typename CostOfRadix>
unsigned cheapest_radix(Rank count, CostOfRadix cost_ns, unsigned radix_max = kRadixMax) {
    const auto end = static_cast<unsigned>(std::min<std::int64_t>(radix_max, count));
    unsigned best = kRadixMin;
    double best_ns = cost_ns(best);
    for (unsigned radix = kRadixMin + 1; radix <= end; ++radix) {
        if (const double ns = cost_ns(radix); ns < best_ns) {
            best = radix;
            best_ns = ns;
        }
    }
    return best;
}

} // namespace ucg::plan
