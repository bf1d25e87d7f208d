// How often ranks agree on what none of them knows alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ucg::capi {

/// Of one group, on one rank. All ranks begin the same blocking calls in the same order, so all
/// agree before the same ones: the first, after 2, 4, ... and 32 more, and from then on each 32nd.
class AgreementInterval {
  public:
    /// A blocking call begins. True if all ranks are to agree first.
    bool begins() { return ++calls_ >= interval_; }
    /// Since the last time.
    std::uint64_t calls() const { return calls_; }
    void agreed() {
        interval_ = std::min(2 * interval_, kMax);
        calls_ = 0;
    }

  private:
    /// To agree costs all ranks a few collectives. In so many calls that is next to nothing, and a
    /// program whose lengths change waits no longer for another choice.
    static constexpr std::uint64_t kMax = 32;

    std::uint64_t interval_ = 1;
    std::uint64_t calls_ = 0;
};

} // namespace ucg::capi
