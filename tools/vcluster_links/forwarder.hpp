// Links with latency and loss between network devices of this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tools/vcluster_links/delay_line.hpp"
#include "tools/vcluster_links/tap.hpp"

namespace ucg::tools {

struct LinkOptions {
    std::string name; ///< The name in reports.
    std::string near; ///< The devices at the two ends.
    std::string far;
    std::uint64_t latency_ns = 0; ///< Latency of each direction.
    double loss = 0;              ///< Fraction of the frames lost in each direction.
};

struct ForwarderOptions {
    std::vector<LinkOptions> links;
    std::uint64_t seed = 1; ///< With link and direction it determines which frames are lost.
    std::string socket;     ///< Path at which clients read the counters; "": none.
};

/// The counts of what happened to the frames of one direction of a link.
struct Counters {
    std::uint64_t frames = 0; ///< Delivered.
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;     ///< Lost as the loss rate demands.
    std::uint64_t overflow = 0; ///< Dropped because too many bytes were under way.
    std::uint64_t refused = 0;  ///< The device at the end was down or gone.
    std::uint64_t late_sum_ns = 0;
    std::uint64_t late_max_ns = 0; ///< Longest time after a frame was due.
};

/// One direction of a link: what one device sends, until the other receives it.
class OneWayLink {
  public:
    OneWayLink(const LinkOptions& link, std::uint64_t seed);

    /// Reads the frames that are there, at most a batch. Returns false once the device is gone.
    bool take(int from);
    /// Delivers the frames that are due at `now_ns`, in the order in which they were taken.
    void deliver(int to, std::uint64_t now_ns);
    /// Returns when the next frame is due; the largest number if there is none.
    std::uint64_t next_due_ns() const;

    const Counters& counters() const { return counters_; }

  private:
    void write(int to, const DelayLine::Frame& frame, std::uint64_t now_ns);
    bool is_lost();

    std::uint64_t latency_ns_;
    double loss_;
    std::mt19937_64 random_;
    DelayLine line_;
    Counters counters_;
};

/// A thread that serves all links. It sleeps in epoll until a frame comes or the earliest one is
/// due; a timer of the kernel's high-resolution clock ends the sleep.
class Forwarder {
  public:
    /// Makes the devices in this process's network namespace; they may be moved to other
    /// namespaces.
    static Result<std::unique_ptr<Forwarder>> create(const ForwarderOptions& options);

    /// Serves the links until the writing end of the pipe whose reading end is `lifeline` is
    /// closed.
    Status run(int lifeline);

    /// Returns the counters as JSON.
    std::string report() const;

  private:
    struct Link {
        LinkOptions options;
        OwnedDescriptor near;
        OwnedDescriptor far;
        OneWayLink outward; ///< From near to far.
        OneWayLink inward;
        bool gone = false;
    };
    enum class Source : std::uint32_t { lifeline, timer, socket, near, far };

    Forwarder() = default;
    Status listen(const std::string& path);
    Status watch(int fd, Source source, std::uint32_t link);
    void take(Link& link, bool from_near);
    void deliver_due();
    void answer();

    std::vector<std::unique_ptr<Link>> links_;
    OwnedDescriptor epoll_;
    OwnedDescriptor timer_;
    OwnedDescriptor socket_;
    bool realtime_ = false;
    std::uint64_t armed_ns_ = UINT64_MAX; ///< The time for which the timer is set.
};

} // namespace ucg::tools
