// The lower level of a breakdown: what UCT's calls cost on one transport, and what its benchmarks
// observe, measured from outside UCX between two processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "perf/perftest/breakdown/lines.hpp"
#include "perf/perftest/breakdown/sample.hpp"
#include "perf/perftest/primitives/uct_link.hpp"
#include "perf/perftest/runtime.hpp"

namespace ucg::perftest::breakdown {

/// Names of what is measured, as keys of Rounds.
namespace part {
inline constexpr const char* kPutPost = "LLP_post, uct_ep_put_short";
inline constexpr const char* kPutAlone = "LLP_post, uct_ep_put_short alone";
inline constexpr const char* kAmPost = "LLP_post, uct_ep_am_short to itself";
inline constexpr const char* kAmPostToPeer = "LLP_post, uct_ep_am_short in a ping-pong";
inline constexpr const char* kAmPostStream = "LLP_post, uct_ep_am_short in a stream";
inline constexpr const char* kAmPostWindow = "LLP_post, uct_ep_am_short in a window";
inline constexpr const char* kProgress = "LLP_prog, message from itself";
inline constexpr const char* kProgressOfPeer = "LLP_prog, message of the peer";
inline constexpr const char* kEmptyProgress = "Empty progress";
inline constexpr const char* kBusyPost = "Busy post";
inline constexpr const char* kBusyPerMessage = "Busy posts per message";
inline constexpr const char* kUpdate = "Measurement update";
inline constexpr const char* kPutAndUpdate = "uct_ep_put_short, then an update";
inline constexpr const char* kCall = "Function call";
inline constexpr const char* kCopy = "Copy of 8 bytes";
inline constexpr const char* kOverhead = "Measurement overhead";
inline constexpr const char* kPutBandwidth = "put_bw";
inline constexpr const char* kAmBandwidth = "am_bw";
inline constexpr const char* kAmUntimed = "am_bw of another stream, posts not timed";
inline constexpr const char* kAmLatency = "am_lat";
inline constexpr const char* kPutLatency = "put_lat";
} // namespace part

class LowLevel {
  public:
    /// Opens the transport. Collective of two, on one host.
    static Result<std::unique_ptr<LowLevel>>
    open(Runtime& runtime, Lines& lines, const std::string& transport, const std::string& device);
    LowLevel(const LowLevel&) = delete;
    LowLevel& operator=(const LowLevel&) = delete;

    /// Measures everything once, each `samples` times. Collective; rank 0 gets the times.
    Status round(std::size_t samples, Stopwatch& stopwatch, Rounds& rounds);

    const std::string& name() const { return link_->resource().name(); }
    bool puts() const { return puts_; }
    /// Returns whether processes see one another's stores. If so, the wire is the transfer of a
    /// cache line.
    bool shares_memory() const { return shares_memory_; }

    /// Progresses the transport while nothing is expected.
    void progress() { static_cast<void>(link_->resource().progress()); }
    /// Does what a process that waits for a put does between two polls. Returns false once waiting
    /// is useless.
    bool idle();

    /// Posts one active message until a post succeeds; for profiles of single calls.
    Status post_message();
    /// Waits until the peer's message has arrived.
    Status await_message();
    Status barrier() { return link_->barrier(); }

  private:
    LowLevel(Runtime& runtime, Lines& lines) : runtime_(runtime), lines_(lines) {}
    Status open_own_link(const std::string& transport, const std::string& device);

    ucs_status_t put();
    ucs_status_t message();
    void send();
    void await(std::uint64_t count);
    bool alive() const { return failure_.ok() && !link_->resource().failed(); }
    bool accepted(ucs_status_t status);

    // Each of these measures one thing; all are collective.
    void time_own_messages(std::size_t samples);
    void time_puts(std::size_t samples);
    void time_software(std::size_t samples);
    void time_busy_posts(std::size_t samples);
    void time_stream(std::size_t samples, bool each_post);
    void time_windows(std::size_t samples);
    void time_post_in_ping_pong(std::size_t samples);
    void time_progress_of_peer(std::size_t samples);
    void observe_put_bandwidth(std::size_t samples);
    template <typename Answer, typename Wait>
    void observe_latency(const char* name, std::size_t samples, Answer answer, Wait wait);
    void observe_am_latency(std::size_t samples);
    void observe_put_latency(std::size_t samples);
    void drain(std::uint64_t count);
    void add(const char* name, double ns, std::size_t samples);

    Runtime& runtime_;
    Lines& lines_;
    Stopwatch* stopwatch_ = nullptr;
    Rounds* rounds_ = nullptr;
    std::unique_ptr<UctLink> link_;
    std::unique_ptr<Runtime> alone_;    ///< The runtime of own_link_.
    std::unique_ptr<UctLink> own_link_; ///< To this process: its lines stay on one processor.
    std::uint64_t arrived_ = 0;
    std::uint64_t sent_ = 0; ///< The latest number that a put has written.
    std::uint64_t seen_ = 0; ///< The latest number that a put of the peer has written.
    std::uint64_t header_ = 7;
    bool first_ = false; ///< Whether this is rank 0, which measures.
    bool puts_ = false;
    bool shares_memory_ = false;
    Status failure_;
};

} // namespace ucg::perftest::breakdown
