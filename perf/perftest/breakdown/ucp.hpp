// The higher level of a breakdown: what UCP's tagged messages cost above UCT, measured from outside
// UCX.
#pragma once

#include <memory>
#include <string>

#include "perf/perftest/breakdown/findings.hpp"
#include "perf/perftest/breakdown/lines.hpp"
#include "perf/perftest/breakdown/lower.hpp"
#include "perf/perftest/breakdown/sample.hpp"
#include "perf/perftest/primitives/ucp_link.hpp"
#include "perf/perftest/runtime.hpp"

namespace ucg::perftest::breakdown {

namespace part {
inline constexpr const char* kUcpPost = "ucp_tag_send_nbx";
inline constexpr const char* kUcpProgress = "ucp_worker_progress, message of the peer";
inline constexpr const char* kUcpCallback = "Callback of a receive";
inline constexpr const char* kUcpLatency = "tag_lat";
inline constexpr const char* kUcpPostStream = "ucp_tag_send_nbx in a window";
inline constexpr const char* kUcpCompletion = "Post_prog, UCP";
inline constexpr const char* kUcpRate = "tag_bw";
} // namespace part

class HighLevel {
  public:
    /// Opens UCP over the same transport and device as the lower level, by setting UCX_TLS and
    /// UCX_NET_DEVICES. Collective of two.
    static Result<std::unique_ptr<HighLevel>>
    open(Runtime& runtime, Lines& lines, const std::string& transport, const std::string& device);

    /// Measures everything once, each `samples` times. Collective; rank 0 gets the times.
    Status round(std::size_t samples, Stopwatch& stopwatch, Rounds& rounds);

  private:
    enum class Timed { none, post, progress };

    HighLevel(Runtime& runtime, Lines& lines) : runtime_(runtime), lines_(lines) {}
    static void on_receive(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                           void* self);
    void post_receive();
    ucs_status_ptr_t post_send();
    void complete(ucs_status_ptr_t request);
    void await_receive();
    void round_trip(Timed timed);
    void observe_latency(std::size_t samples, Rounds& rounds);
    void time_windows(std::size_t samples, Rounds& rounds);

    Runtime& runtime_;
    Lines& lines_;
    Stopwatch* stopwatch_ = nullptr;
    std::unique_ptr<UcpLink> link_;
    std::uint64_t input_ = 1;
    std::uint64_t output_ = 0;
    bool received_ = false;
    bool times_callback_ = false;
    Status failure_;
};

/// Returns the section of UCP. `lower` is the kind of the transport below.
Section upper_section(const LowerKind& kind, const Rounds& rounds);
/// Returns the cost of sending one message after another with UCP, which is a part of that section.
Comparison upper_injection(const Rounds& rounds);

} // namespace ucg::perftest::breakdown
