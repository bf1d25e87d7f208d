#include "ucg_coll/capi/mean_block.hpp"

namespace ucg::capi {

std::uint64_t MeanBlock::added_up(std::uint64_t total, Rank rank_count) {
    UCG_ASSERT(interval_.calls() > 0 && rank_count > 1);
    const auto ranks = static_cast<std::uint64_t>(rank_count);
    const std::uint64_t mean = divide_up(total, interval_.calls() * ranks * (ranks - 1));
    interval_.agreed();
    received_ = 0;
    return mean;
}

} // namespace ucg::capi
