#include "tools/ucg_tune/copy_choice.hpp"

#include <algorithm>
#include <cmath>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

namespace {

/// A way takes hardly longer than another up to this ratio: smaller differences would decide by
/// chance.
constexpr double kHardlyLonger = 1.05;

double log_mean(const TimesByLength& times) {
    double sum = 0;
    for (const auto& [bytes, ns] : times) {
        sum += std::log(ns);
    }
    return sum / static_cast<double>(times.size());
}

} // namespace

TimesByLength mean_of(std::span<const TimesByLength> uses) {
    UCG_ASSERT(!uses.empty());
    TimesByLength mean;
    for (const auto& [bytes, unused] : uses.front()) {
        double sum = 0;
        std::size_t found = 0;
        for (const TimesByLength& use : uses) {
            if (const auto ns = use.find(bytes); ns != use.end()) {
                sum += std::log(ns->second);
                ++found;
            }
        }
        if (found == uses.size()) {
            mean[bytes] = std::exp(sum / static_cast<double>(found));
        }
    }
    return mean;
}

std::uint64_t turning_point(const TimesByLength& first, const TimesByLength& second,
                            std::span<const std::uint64_t> lengths) {
    UCG_ASSERT(!lengths.empty());
    std::uint64_t slower_at = 0; // The longest length at which the second way is.
    for (const auto& [bytes, ns] : second) {
        const auto found = first.find(bytes);
        if (found != first.end() && ns > kHardlyLonger * found->second) {
            slower_at = bytes;
        }
    }
    const auto beyond = std::upper_bound(lengths.begin(), lengths.end(), slower_at);
    return beyond == lengths.end() ? lengths.back() : *beyond;
}

std::size_t good_enough(std::span<const TimesByLength> ways) {
    UCG_ASSERT(!ways.empty());
    std::vector<double> means;
    means.reserve(ways.size());
    for (const TimesByLength& times : ways) {
        means.push_back(log_mean(times));
    }
    const double limit = *std::min_element(means.begin(), means.end()) + std::log(kHardlyLonger);
    return static_cast<std::size_t>(
        std::find_if(means.begin(), means.end(), [&](double mean) { return mean <= limit; }) -
        means.begin());
}

} // namespace ucg::tools
