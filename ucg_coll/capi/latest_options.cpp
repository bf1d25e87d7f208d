#include "ucg_coll/capi/latest_options.hpp"

#include <algorithm>

namespace ucg::capi {

std::optional<transport::ShmOptions> LatestOptions::of(std::size_t ranks) const {
    const auto found = std::find_if(options_.begin(), options_.end(),
                                    [&](const auto& entry) { return entry.first == ranks; });
    return found == options_.end() ? std::nullopt : std::optional(found->second);
}

void LatestOptions::forget(std::size_t ranks) {
    std::erase_if(options_, [&](const auto& entry) { return entry.first == ranks; });
}

void LatestOptions::set(std::size_t ranks, const transport::ShmOptions& options) {
    forget(ranks);
    if (options_.size() == kMost) {
        options_.erase(options_.begin());
    }
    options_.emplace_back(ranks, options);
}

} // namespace ucg::capi
