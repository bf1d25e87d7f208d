// Whether the kernel's copies out of a peer's memory take much longer than they may. What the peer
// has had for some time comes fast: this core's cache may hold it since the last copy. What the
// peer has just written lies in the cache of its core alone (Sapphire Rapids, 32 KiB: 3.9 us
// instead of 1.5), and before the peer writes there again its core must take each line back from
// this one. A ring spares both. A benchmark that sends the same bytes again sees the one, a program
// that computes what it sends the other. So a receiver measures it, with copies that it makes
// anyway, and tells the sender, which then sends by the ring what fits there.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ucg::shm {

/// The time from which on a copy of so many bytes is slow.
struct SlowPull {
    double fixed_ns = 0;
    double per_byte_ns = 0;

    bool operator==(const SlowPull&) const = default;
};

/// Decides by the times of copies. It reads no clock, so that it can be tested. A copy may have
/// been interrupted, and the first ones touch new pages; so several in a row must say the same.
class PullSpeed {
  public:
    PullSpeed() = default;
    explicit PullSpeed(const SlowPull& from) : from_(from) {}

    /// Returns whether the next copy is to be timed. To be called once for each.
    bool timed() { return slow_ || ++untimed_ % kTimedPeriod == 0; }

    /// Notes how long a copy took.
    void took(std::uint64_t bytes, double ns) {
        const bool slow = ns >= from_.fixed_ns + from_.per_byte_ns * static_cast<double>(bytes);
        against_ = slow == slow_ ? 0 : against_ + 1;
        if (against_ == (slow_ ? kFastInRow : kSlowInRow)) {
            slow_ = slow;
            against_ = 0;
        }
    }

    /// Returns whether copies are slow, as far as is known; false at first.
    bool slow() const { return slow_; }

  private:
    static constexpr unsigned kTimedPeriod = 4; ///< Of so many copies one is timed.
    /// Copies in a row that must contradict what is known.
    static constexpr unsigned kSlowInRow = 3;
    static constexpr unsigned kFastInRow = 2;

    SlowPull from_;
    unsigned untimed_ = 0;
    unsigned against_ = 0; ///< Copies in a row that have contradicted slow_.
    bool slow_ = false;
};

/// Decides which messages a sender lets the receiver copy although such copies are slow, so that
/// the receiver notices when they are fast again: a few in a row, since only the second copy of the
/// same bytes may find them in the receiver's cache.
class SlowPullTrials {
  public:
    /// Returns whether the next message is such a trial. To be called for each message that would
    /// go another way because copies are slow.
    bool due() {
        if (++since_ <= period_) {
            return false;
        }
        if (since_ == period_ + kInRow) {
            since_ = 0;
            period_ = std::min(2 * period_, kPeriodMax);
        }
        return true;
    }
    /// To be called when copies are fast.
    void end() { *this = SlowPullTrials(); }

  private:
    static constexpr unsigned kInRow = 3;
    /// Messages from one trial to the next: few at first, since copies may have been slow because
    /// their targets were new.
    static constexpr unsigned kPeriodMin = 16;
    static constexpr unsigned kPeriodMax = 1024;

    unsigned since_ = 0;
    unsigned period_ = kPeriodMin;
};

} // namespace ucg::shm
