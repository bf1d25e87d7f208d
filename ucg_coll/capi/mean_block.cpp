#include "ucg_coll/capi/mean_block.hpp"

#include <algorithm>

namespace ucg::capi {
namespace {

/// A sum costs all ranks an allreduce of 8 bytes. In so many calls that is next to nothing, and a
/// program whose lengths change waits no longer for another choice.
constexpr std::uint64_t kIntervalMax = 32;

} // namespace

bool MeanBlock::begins(std::uint64_t bytes) {
    ++calls_;
    received_ += bytes;
    return calls_ >= interval_;
}

std::uint64_t MeanBlock::added_up(std::uint64_t total, Rank rank_count) {
    UCG_ASSERT(calls_ >= interval_ && rank_count > 1);
    const auto ranks = static_cast<std::uint64_t>(rank_count);
    const std::uint64_t mean = divide_up(total, calls_ * ranks * (ranks - 1));
    interval_ = std::min(2 * interval_, kIntervalMax);
    calls_ = 0;
    received_ = 0;
    return mean;
}

} // namespace ucg::capi
