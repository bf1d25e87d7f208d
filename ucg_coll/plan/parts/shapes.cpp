#include "ucg_coll/plan/parts/shapes.hpp"

#include <cmath>
#include <numeric>

namespace ucg::plan {

unsigned tree_depth(Rank count, unsigned radix) {
    unsigned depth = 0;
    for (std::uint64_t reach = 1; reach < static_cast<std::uint64_t>(count); reach *= radix) {
        ++depth;
    }
    return depth;
}

unsigned root_children(Rank count, unsigned radix) {
    const auto others = static_cast<std::uint64_t>(count - 1);
    std::uint64_t children = 0;
    for (std::uint64_t span = 1; span <= others; span *= radix) {
        children += std::min<std::uint64_t>(radix - 1, others / span);
    }
    return static_cast<unsigned>(children);
}

std::uint64_t pipeline_segment(std::uint64_t total, Rank hops, double fixed_ns, double per_byte_ns,
                               std::uint64_t granularity) {
    const double turns = std::max(0, hops - 1); // Over a single link segments gain nothing.
    const double apart_ns = turns * per_byte_ns;
    const double best = apart_ns > 0 ? std::sqrt(static_cast<double>(total) * fixed_ns / apart_ns)
                                     : static_cast<double>(total);
    const std::uint64_t unit = std::lcm(granularity, std::uint64_t{kCacheLine});
    // The comparison in floating point keeps the conversion in range.
    if (best >= static_cast<double>(total) || unit >= total) {
        return std::max(round_up(total, granularity), granularity);
    }
    return std::min(round_up(std::max(static_cast<std::uint64_t>(best), unit), unit),
                    round_up(total, granularity));
}

} // namespace ucg::plan
