// The mean length of an alltoallv's blocks. Only two ranks know the length of a block, and all
// ranks must choose one algorithm; so now and then they add up what they receive, before a call.
// Between two rows whose times are lines over the length, the mean of the calls since the last time
// says which row takes less for all of those calls together.
#pragma once

#include <cstdint>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/agreement_interval.hpp"

namespace ucg::capi {

/// What one rank of one group knows of the mean.
class MeanBlock {
  public:
    /// Counts a blocking call that begins, which brings this rank so many bytes from others.
    /// Returns true if all ranks are to add up received() first.
    bool begins(std::uint64_t bytes) {
        received_ += bytes;
        return interval_.begins();
    }

    /// Bytes that this rank received from others in all calls since the last time.
    std::uint64_t received() const { return received_; }

    /// Returns the mean length, in bytes, of the blocks that ranks sent one another since the last
    /// time, and starts anew. `total` is the sum of received() over all ranks. REQUIRES: begins()
    /// has returned true; rank_count > 1.
    std::uint64_t added_up(std::uint64_t total, Rank rank_count);

  private:
    AgreementInterval interval_;
    std::uint64_t received_ = 0;
};

} // namespace ucg::capi
