// How long a short message takes from one process of a group to another, by the group's own
// transport: some round trips, before the group has collectives.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::capi {

class LatencyProbe {
  public:
    /// One end asks, and one answers. The transport must outlive it.
    LatencyProbe(transport::Transport& transport, Rank peer, bool asks);
    LatencyProbe(const LatencyProbe&) = delete; // Messages are in flight.
    LatencyProbe& operator=(const LatencyProbe&) = delete;

    enum class State : std::uint8_t {
        waits, ///< For the peer: to be called again.
        over,  ///< Nothing is in flight.
    };
    /// Drives the transport.
    State look();

    /// Half of the shortest round trip; 0 where this end has answered, or the transport failed.
    double seen_ns() const { return seen_ns_; }

  private:
    using Clock = std::chrono::steady_clock;

    /// The first one connects, and any of the others may be disturbed.
    static constexpr int kRoundTrips = 5;
    /// Of no collective: a group's first one has number 0.
    static constexpr std::uint32_t kSequence = UINT32_MAX;

    void begin_round_trip();
    void end_round_trip();
    void post(transport::Message& message, transport::Direction direction, std::byte* data);

    transport::Transport& transport_;
    const bool asks_;
    Rank peer_;
    int round_trip_ = 0;
    bool answered_ = false;
    Clock::time_point begin_;
    double seen_ns_ = 0;
    std::byte sent_ = {};
    std::byte received_ = {};
    transport::Message send_;
    transport::Message recv_;
};

} // namespace ucg::capi
