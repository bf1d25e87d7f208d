#include "perf/perftest/breakdown/ucp.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "perf/perftest/breakdown/uct.hpp"
#include "perf/perftest/launch/agree.hpp"
#include "ucg_coll/transport/ucx/context.hpp"

namespace ucg::perftest::breakdown {

namespace {

constexpr ucp_tag_t kTag = 0x756367;
constexpr unsigned kRoundTrips = 64;
constexpr std::size_t kSends = 64;       ///< In a window.
constexpr std::size_t kWindowsFirst = 2; ///< Before these the receiver may not be ready.

} // namespace

Result<std::unique_ptr<HighLevel>> HighLevel::open(Runtime& runtime, Lines& lines,
                                                   const std::string& transport,
                                                   const std::string& device) {
    std::unique_ptr<HighLevel> level(new HighLevel(runtime, lines));
    ::setenv("UCX_TLS", transport.c_str(), 1); // This process has one thread.
    if (device != "memory") {
        ::setenv("UCX_NET_DEVICES", device.c_str(), 1);
    }
    Result<std::unique_ptr<UcpLink>> link =
        UcpLink::open(runtime, {.features = UCP_FEATURE_TAG, .buffer_bytes = kCacheLine});
    if (!link) {
        return link.status();
    }
    level->link_ = std::move(*link);
    return level;
}

void HighLevel::on_receive(void* request, ucs_status_t status, const ucp_tag_recv_info_t* /*info*/,
                           void* self) {
    auto& level = *static_cast<HighLevel*>(self);
    const auto take = [&] {
        level.received_ = status == UCS_OK;
        ucp_request_free(request);
        return 0;
    };
    if (level.times_callback_) {
        level.stopwatch_->time(take);
        level.stopwatch_->keep();
    } else {
        take();
    }
}

void HighLevel::post_receive() {
    received_ = false;
    ucp_request_param_t parameters{};
    parameters.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    parameters.cb.recv = on_receive;
    parameters.user_data = this;
    const ucs_status_ptr_t request = ucp_tag_recv_nbx(link_->worker(), &output_, sizeof(output_),
                                                      kTag, ~ucp_tag_t{0}, &parameters);
    if (UCS_PTR_IS_ERR(request)) {
        failure_ = transport::ucx::ucx_failure(UCS_PTR_STATUS(request), "ucp_tag_recv_nbx");
    }
}

ucs_status_ptr_t HighLevel::post_send() {
    ucp_request_param_t parameters{};
    return ucp_tag_send_nbx(link_->endpoint(), &input_, sizeof(input_), kTag, &parameters);
}

void HighLevel::complete(ucs_status_ptr_t request) {
    if (UCS_PTR_IS_ERR(request)) {
        failure_ = transport::ucx::ucx_failure(UCS_PTR_STATUS(request), "ucp_tag_send_nbx");
    } else if (request != nullptr) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            link_->progress();
        }
        ucp_request_free(request);
    }
}

void HighLevel::await_receive() {
    while (!received_ && failure_.ok()) {
        link_->progress();
    }
}

/// Does one round trip; the second rank answers. If the progress is timed the message has already
/// arrived.
void HighLevel::round_trip(Timed timed) {
    const bool first = runtime_.rank() == 0;
    post_receive();
    if (!first) {
        await_receive();
        complete(post_send());
    } else if (timed == Timed::post) {
        const ucs_status_ptr_t request = stopwatch_->time([&] { return post_send(); });
        if (request == nullptr) {
            stopwatch_->keep();
        }
        complete(request);
    } else {
        complete(post_send());
    }
    if (timed == Timed::progress) {
        lines_.meet(runtime_.rank());
        if (first && !received_) {
            stopwatch_->time([&] { return link_->progress(); });
            if (received_) {
                stopwatch_->keep();
            }
        }
    }
    if (first) {
        await_receive();
    }
}

Status HighLevel::round(std::size_t samples, Stopwatch& stopwatch, Rounds& rounds) {
    stopwatch_ = &stopwatch;
    const bool first = runtime_.rank() == 0;
    for (const auto& [timed, name] :
         {std::pair{Timed::post, part::kUcpPost}, std::pair{Timed::progress, part::kUcpProgress},
          std::pair{Timed::none, part::kUcpCallback}}) {
        lines_.meet(runtime_.rank());
        stopwatch.clear();
        times_callback_ = timed == Timed::none;
        for (std::size_t i = 0; i < samples; ++i) {
            round_trip(timed);
        }
        if (first && stopwatch.size() > 0) {
            rounds.add(name, stopwatch.mean_ns(), stopwatch.size());
        }
    }
    times_callback_ = false;
    observe_latency(samples, rounds);
    time_windows(samples, rounds);
    return agree(runtime_, failure_);
}

void HighLevel::observe_latency(std::size_t samples, Rounds& rounds) {
    lines_.meet(runtime_.rank());
    std::vector<Ticks> times;
    for (std::size_t i = 0; i < std::max<std::size_t>(samples / kRoundTrips, 4); ++i) {
        const Ticks before = read_ordered();
        for (unsigned k = 0; k < kRoundTrips; ++k) {
            round_trip(Timed::none);
        }
        times.push_back(read_ordered() - before);
    }
    if (runtime_.rank() == 0) {
        const std::size_t count = times.size() * kRoundTrips;
        rounds.add(part::kUcpLatency, undisturbed_mean_ns(std::move(times)) / (2 * kRoundTrips),
                   count);
    }
}

/// Times windows of sends one after another, as a message rate is measured. In every second window
/// the posts and their completion are timed, in the others the whole.
void HighLevel::time_windows(std::size_t samples, Rounds& rounds) {
    const std::size_t windows = kWindowsFirst + 2 * std::max<std::size_t>(samples / 16, 8);
    lines_.meet(runtime_.rank());
    std::array<std::vector<Ticks>, 3> times; // Posts, completions, both.
    for (std::size_t i = 0; i < windows && runtime_.rank() == 0; ++i) {
        std::array<ucs_status_ptr_t, kSends> requests{};
        const Ticks start = read_ordered();
        for (ucs_status_ptr_t& request : requests) {
            request = post_send();
        }
        const Ticks posted = i % 2 == 0 ? read_ordered() : start;
        for (const ucs_status_ptr_t request : requests) {
            complete(request);
        }
        const Ticks end = read_ordered();
        if (i >= kWindowsFirst && i % 2 == 0) {
            times[0].push_back(posted - start);
            times[1].push_back(end - posted);
        } else if (i >= kWindowsFirst) {
            times[2].push_back(end - start);
        }
    }
    for (std::size_t i = 0; i < windows * kSends && runtime_.rank() == 1 && failure_.ok(); ++i) {
        post_receive();
        await_receive();
    }
    const std::array names = {part::kUcpPostStream, part::kUcpCompletion, part::kUcpRate};
    for (std::size_t i = 0; i < times.size() && runtime_.rank() == 0; ++i) {
        const std::size_t count = times[i].size() * kSends;
        const double ns = undisturbed_mean_ns(std::move(times[i])) - stopwatch_->overhead_ns();
        rounds.add(names[i], ns / kSends, count);
    }
    lines_.meet(runtime_.rank());
}

/// Returns equation 2. A stream of UCT's messages may find its receiver in another state than
/// UCP's, so that the lower level's part of a post is limited to the whole post.
Comparison upper_injection(const Rounds& rounds) {
    Component hlp = rounds.component(part::kUcpPostStream, Category::hlp);
    Component llp = rounds.component(part::kAmPostWindow, Category::llp);
    llp.ns = std::min(llp.ns, hlp.ns);
    hlp.name = "HLP_post, UCP, in a window";
    hlp.ns -= llp.ns;
    InjectionParts parts;
    parts.post = {llp, hlp};
    parts.progress = {rounds.component(part::kUcpCompletion, Category::hlp)};
    return {injection_model("Injection, UCP tagged", parts),
            rounds.component(part::kUcpRate, Category::hlp)};
}

Section upper_section(const LowerKind& kind, const Rounds& rounds) {
    Section section{.title = "UCP over " + kind.transport, .components = {}};
    const Component post =
        rounds.difference(part::kUcpPost, part::kAmPostToPeer, "HLP_post, UCP", Category::hlp,
                          "ucp_tag_send_nbx less LLP_post, in a ping-pong");
    const Component progress =
        rounds.difference(part::kUcpProgress, part::kProgressOfPeer, "HLP_rx_prog, UCP",
                          Category::hlp, "with the callbacks of UCP and of its user");
    section.components = {
        rounds.component(part::kUcpPost, Category::hlp, "in a ping-pong"),
        rounds.component(part::kUcpProgress, Category::hlp, "which lies there already"),
        post,
        progress,
        rounds.component(part::kUcpPostStream, Category::hlp, "64 of them"),
        rounds.component(part::kUcpCompletion, Category::hlp,
                         "until all of the window are complete, for each")};
    LatencyParts parts = message_parts(kind, rounds);
    parts.post.insert(parts.post.begin(), post);
    parts.progress.push_back(progress);
    section.comparisons = {{latency_model("Latency, UCP tagged", parts),
                            rounds.component(part::kUcpLatency, Category::hlp)},
                           upper_injection(rounds)};
    section.notes = {
        "posting the receive overlaps with the message's way only in part: who answers "
        "posts its next receive first"};
    return section;
}

} // namespace ucg::perftest::breakdown
