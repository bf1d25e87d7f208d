// Measures how long a short message takes from one process of a group to another, by the group's
// own transport: some round trips, before the group has collectives.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::capi {

/// One end of such a measurement.
class LatencyProbe {
  public:
    using Clock = std::chrono::steady_clock;

    /// One end asks, and the other answers, both for the same number of round trips. The transport
    /// must outlive it.
    LatencyProbe(transport::Transport& transport, Rank peer, bool asks, int round_trips)
        : transport_(transport), asks_(asks), peer_(peer), round_trips_(round_trips) {}
    LatencyProbe(const LatencyProbe&) = delete; // Messages are in flight.
    LatencyProbe& operator=(const LatencyProbe&) = delete;

    enum class State : std::uint8_t {
        waits,  ///< The peer is to send something: look() is to be called again.
        over,   ///< Nothing is in flight.
        failed, ///< Nothing is in flight, and the transport carries nothing any more.
    };
    /// Drives the transport, and returns how far the probe has come. Gives the transport up once it
    /// is later than `deadline`, since a peer whose end has failed says nothing, and where memory
    /// runs out.
    State look(Clock::time_point deadline);

    /// Returns half of the shortest round trip, in nanoseconds; 0 at the end that answers.
    /// REQUIRES: the probe is `over`.
    double seen_ns() const { return seen_ns_; }

  private:
    /// The number of no collective: a group's first one has number 0.
    static constexpr std::uint32_t kSequence = UINT32_MAX;

    bool waits();
    State go_on();
    void begin_round_trip();
    void end_round_trip();
    void post(transport::Message& message, transport::Direction direction, std::byte* data);
    State give_up();

    transport::Transport& transport_;
    const bool asks_;
    const Rank peer_;
    const int round_trips_;
    int round_trip_ = -1; ///< None has begun.
    bool answered_ = false;
    Clock::time_point begin_;
    double seen_ns_ = 0;
    std::byte sent_ = {};
    std::byte received_ = {};
    transport::Message send_;
    transport::Message recv_;
};

} // namespace ucg::capi
