// The kernel's path of a short message over TCP between two processes of one host, measured by
// plain sockets: what lies between UCT's system calls at either end.
#pragma once

#include <memory>
#include <string>

#include "perf/perftest/breakdown/sample.hpp"
#include "perf/perftest/runtime.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::perftest::breakdown {

class PlainSockets {
  public:
    /// The time of the system call that sends.
    static constexpr const char* kSend = "send() of a plain socket";
    /// The time from calling send() until the peer begins the epoll_wait() that finds the bytes. It
    /// is the mean of both directions, so that the two processors' clocks need not agree.
    static constexpr const char* kPath = "Kernel and loopback, send() to readability";

    /// Connects the two ranks by the address of `device`, with TCP_NODELAY. Collective.
    static Result<std::unique_ptr<PlainSockets>> connect(Runtime& runtime,
                                                         const std::string& device);
    ~PlainSockets();
    PlainSockets(const PlainSockets&) = delete;
    PlainSockets& operator=(const PlainSockets&) = delete;

    /// Measures a ping-pong of `samples` round trips. Collective; rank 0 gets the times.
    Status measure(std::size_t samples, const Stopwatch& stopwatch, Rounds& rounds);

  private:
    explicit PlainSockets(Runtime& runtime) : runtime_(runtime) {}
    Status listen_on(const std::string& device, std::string& address);
    Status accept_peer();
    Status connect_to(const std::string& address);
    Status prepare();
    Status send_one(std::vector<Ticks>& durations);
    Status receive_one(std::vector<double>& delays_ns);

    Runtime& runtime_;
    int listener_ = -1;
    int socket_ = -1;
    int epoll_ = -1;
};

} // namespace ucg::perftest::breakdown
