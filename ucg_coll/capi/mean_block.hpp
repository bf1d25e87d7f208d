// What a block of an alltoallv has in the mean. Two ranks alone know a length, and all must choose
// one algorithm; so now and then they add up what they receive, before a call that begins. Between
// two rows whose times are lines over the length, the mean of the calls since the last time says
// which one takes less for all of them together.
#pragma once

#include <cstdint>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/agreement_interval.hpp"

namespace ucg::capi {

/// Of one group, on one rank.
class MeanBlock {
  public:
    /// A blocking call begins that brings this rank so many bytes of others. True if all ranks are
    /// to add up received() first.
    bool begins(std::uint64_t bytes) {
        received_ += bytes;
        return interval_.begins();
    }

    /// By this rank, from others, in all calls since the last time.
    std::uint64_t received() const { return received_; }

    /// `total`: received() of all ranks. Returns the mean length of the blocks that they sent one
    /// another since the last time. REQUIRES: begins() has been true; rank_count > 1.
    std::uint64_t added_up(std::uint64_t total, Rank rank_count);

  private:
    AgreementInterval interval_;
    std::uint64_t received_ = 0;
};

} // namespace ucg::capi
