#include "perf/perftest/breakdown/ucp.hpp"

#include <algorithm>
#include <cstdlib>

#include "perf/perftest/breakdown/uct.hpp"
#include "perf/perftest/launch/agree.hpp"
#include "ucg_coll/transport/ucx/context.hpp"

namespace ucg::perftest::breakdown {

namespace {

constexpr ucp_tag_t kTag = 0x756367;
constexpr unsigned kRoundTrips = 64;

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

/// The second rank answers. Of a progress that is timed the message lies there already.
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
    lines_.meet(runtime_.rank());
    std::vector<Ticks> times;
    for (std::size_t i = 0; i < std::max<std::size_t>(samples / kRoundTrips, 4); ++i) {
        const Ticks before = read_ordered();
        for (unsigned k = 0; k < kRoundTrips; ++k) {
            round_trip(Timed::none);
        }
        times.push_back(read_ordered() - before);
    }
    if (first) {
        const std::size_t count = times.size() * kRoundTrips;
        rounds.add(part::kUcpLatency, undisturbed_mean_ns(std::move(times)) / (2 * kRoundTrips),
                   count);
    }
    return agree(runtime_, failure_);
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
        rounds.component(part::kUcpProgress, Category::hlp, "which lies there already"), post,
        progress};
    LatencyParts parts = message_parts(kind, rounds);
    parts.post.insert(parts.post.begin(), post);
    parts.progress.push_back(progress);
    section.comparisons = {{latency_model("Latency, UCP tagged", parts),
                            rounds.component(part::kUcpLatency, Category::hlp)}};
    section.notes = {
        "posting the receive overlaps with the message's way only in part: who answers "
        "posts its next receive first"};
    return section;
}

} // namespace ucg::perftest::breakdown
