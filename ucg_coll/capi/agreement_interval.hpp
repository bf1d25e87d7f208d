// How often ranks agree on what none of them knows alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ucg::capi {

/// Says before which blocking calls of one group its ranks agree, on one rank. All ranks begin the
/// same blocking calls in the same order, so all agree before the same ones: the first, after 2, 4,
/// ... and 32 more, and from then on each 32nd.
class AgreementInterval {
  public:
    /// Counts a blocking call that begins. Returns true if all ranks are to agree before it.
    bool begins() { return ++calls_ >= interval_; }
    /// Returns the number of calls since ranks last agreed.
    std::uint64_t calls() const { return calls_; }
    /// To be called when ranks have agreed.
    void agreed() {
        interval_ = std::min(2 * interval_, kMax);
        calls_ = 0;
    }

  private:
    /// Calls between two agreements, at most. To agree costs all ranks a few collectives, which is
    /// next to nothing among so many calls, and a program whose lengths change waits no longer for
    /// another choice.
    static constexpr std::uint64_t kMax = 32;

    std::uint64_t interval_ = 1;
    std::uint64_t calls_ = 0;
};

} // namespace ucg::capi
