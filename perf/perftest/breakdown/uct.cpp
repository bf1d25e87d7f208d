#include "perf/perftest/breakdown/uct.hpp"

#include <algorithm>
#include <atomic>

#include "perf/perftest/launch/agree.hpp"
#include "perf/perftest/recorder.hpp"
#include "ucg_coll/transport/ucx/context.hpp"

namespace ucg::perftest::breakdown {

namespace {

constexpr std::uint8_t kMessageId = 1;
/// The number of round trips that are timed together, so that the cost of readings does not matter.
constexpr unsigned kRoundTrips = 64;
/// The most posts until one must be refused for want of room.
constexpr unsigned kPostsUntilBusy = 4096;
/// The factor by which a benchmark has more samples than a component.
constexpr std::size_t kStreamFactor = 4;

/// A run of a single process.
class Alone final : public Runtime {
  public:
    Rank rank() const override { return 0; }
    Rank size() const override { return 1; }
    Result<std::vector<std::string>> exchange(std::string_view mine,
                                              const std::function<void()>& /*progress*/) override {
        return std::vector<std::string>{std::string(mine)};
    }
};

ucs_status_t count_arrival(void* counter, void* /*data*/, std::size_t /*length*/,
                           unsigned /*flags*/) {
    ++*static_cast<std::uint64_t*>(counter);
    return UCS_OK;
}

Result<std::unique_ptr<UctLink>> open_link(Runtime& runtime, const std::string& transport,
                                           const std::string& device, std::uint64_t& counter) {
    Result<std::unique_ptr<UctResource>> resource = UctResource::open(transport, device);
    std::unique_ptr<TestMemory> memory;
    Status status = resource.status();
    if (status.ok()) {
        Result<std::unique_ptr<TestMemory>> allocated =
            TestMemory::allocate(**resource, kCacheLine, 0);
        status = allocated.status();
        if (status.ok()) {
            memory = std::move(*allocated);
        }
    }
    if (status.ok() && ((*resource)->attributes().cap.flags & UCT_IFACE_FLAG_AM_SHORT) == 0) {
        status = failure(Code::unsupported, "breakdown: {} has no short active messages (am_short)",
                         (*resource)->name());
    }
    if (status.ok()) {
        const ucs_status_t set = uct_iface_set_am_handler((*resource)->interface(), kMessageId,
                                                          count_arrival, &counter, 0);
        status = set == UCS_OK ? Status()
                               : transport::ucx::ucx_failure(set, "setting a message's handler");
    }
    status = agree(runtime, status);
    if (!status.ok()) {
        return status;
    }
    return UctLink::connect(runtime, std::move(*resource), std::move(memory));
}

std::atomic_ref<std::uint64_t> number_in(const TestMemory& memory) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory.data()));
}

} // namespace

Result<std::unique_ptr<LowLevel>> LowLevel::open(Runtime& runtime, Lines& lines,
                                                 const std::string& transport,
                                                 const std::string& device) {
    std::unique_ptr<LowLevel> level(new LowLevel(runtime, lines));
    Result<std::unique_ptr<UctLink>> link = open_link(runtime, transport, device, level->arrived_);
    if (!link) {
        return link.status();
    }
    level->link_ = std::move(*link);
    level->first_ = runtime.rank() == 0;
    const UctResource& resource = level->link_->resource();
    level->puts_ = (resource.attributes().cap.flags & UCT_IFACE_FLAG_PUT_SHORT) != 0;
    level->shares_memory_ =
        level->puts_ && (resource.domain_attributes().cap.flags & UCT_MD_FLAG_RKEY_PTR) != 0;
    number_in(level->link_->target()).store(0);
    Status status;
    if (level->shares_memory_) {
        status = level->open_own_link(transport, device);
    }
    status = agree(runtime, status);
    if (!status.ok()) {
        return status;
    }
    return level;
}

Status LowLevel::open_own_link(const std::string& transport, const std::string& device) {
    alone_ = std::make_unique<Alone>();
    Result<std::unique_ptr<UctLink>> link = open_link(*alone_, transport, device, arrived_);
    if (link) {
        own_link_ = std::move(*link);
    }
    return link.status();
}

ucs_status_t LowLevel::put() {
    return uct_ep_put_short(link_->endpoint(), &sent_, sizeof(sent_), link_->remote_address(),
                            link_->remote_key());
}

ucs_status_t LowLevel::message() {
    return uct_ep_am_short(link_->endpoint(), kMessageId, header_, nullptr, 0);
}

/// Returns false if the operation must be repeated. A failure ends the loop, too.
bool LowLevel::accepted(ucs_status_t status) {
    if (status == UCS_ERR_NO_RESOURCE) {
        progress();
        return !alive();
    }
    if (status != UCS_OK) [[unlikely]] {
        failure_ = transport::ucx::ucx_failure(status, "sending 8 bytes over " + name());
    }
    return true;
}

void LowLevel::send() {
    while (!accepted(message())) {
    }
}

bool LowLevel::idle() {
    progress();
    return alive();
}

void LowLevel::await(std::uint64_t count) {
    while (arrived_ < count && alive()) {
        progress();
    }
}

Status LowLevel::post_message() {
    send();
    return failure_;
}

Status LowLevel::await_message() {
    await(arrived_ + 1);
    return failure_;
}

void LowLevel::add(const char* name, double ns, std::size_t samples) {
    if (first_) {
        rounds_->add(name, ns, samples);
    }
}

void LowLevel::time_own_messages(std::size_t samples) {
    const auto post = [&] {
        return uct_ep_am_short(own_link_->endpoint(), kMessageId, header_, nullptr, 0);
    };
    const auto take = [&] { return own_link_->resource().progress(); };
    for (const bool posts : {true, false}) {
        stopwatch_->clear();
        for (std::size_t i = 0; i < samples; ++i) {
            if (posts) {
                stopwatch_->time(post);
                take();
            } else {
                post();
                stopwatch_->time(take);
            }
            stopwatch_->keep();
        }
        add(posts ? part::kAmPost : part::kProgress, stopwatch_->mean_ns(), samples);
    }
}

/// Times posts into the peer's memory, which wait for nothing.
void LowLevel::time_puts(std::size_t samples) {
    const auto post = [&] { static_cast<void>(put()); };
    add(part::kPutPost, stopwatch_->window_ns(samples, post), samples);
    stopwatch_->clear();
    for (std::size_t i = 0; i < samples; ++i) {
        stopwatch_->time([&] { return put(); });
        stopwatch_->keep();
    }
    add(part::kPutAlone, stopwatch_->mean_ns(), samples);
    std::uint64_t source = 0;
    volatile std::uint64_t target = 0;
    add(part::kCopy, stopwatch_->window_ns(samples, [&] { target = ++source; }), samples);
    Recorder recorder(samples * kWindow);
    recorder.start();
    add(part::kPutAndUpdate,
        stopwatch_->window_ns(samples,
                              [&] {
                                  post();
                                  recorder.update(1, sizeof(sent_));
                              }),
        samples);
}

void LowLevel::time_software(std::size_t samples) {
    add(part::kEmptyProgress, stopwatch_->window_ns(samples, [&] { progress(); }), samples);
    Recorder recorder(samples * kWindow);
    recorder.start();
    add(part::kUpdate, stopwatch_->window_ns(samples, [&] { recorder.update(1, sizeof(sent_)); }),
        samples);
}

/// Times posts that are refused while the peer receives nothing. If none is refused within the
/// limit, none is timed.
void LowLevel::time_busy_posts(std::size_t samples) {
    std::uint64_t posted = 0;
    lines_.meet(runtime_.rank());
    if (first_) {
        while (posted < kPostsUntilBusy && message() == UCS_OK) {
            ++posted;
        }
        if (posted < kPostsUntilBusy) {
            const auto refused = [&] { static_cast<void>(message()); };
            add(part::kBusyPost, stopwatch_->window_ns(samples, refused), samples);
        }
        lines_.number(0).store(posted);
    }
    lines_.meet(runtime_.rank());
    drain(lines_.number(0).load());
}

/// Ends a stream: the peer receives `count` messages, after which nothing is under way.
void LowLevel::drain(std::uint64_t count) {
    if (!first_) {
        await(arrived_ + count);
    }
    const Status met = link_->barrier();
    failure_ = failure_.ok() ? met : failure_;
}

/// Times a stream as in am_bw, one message after another. If its posts are timed the benchmark's
/// figure comes from the same messages, less the cost of timing: the time of TCP's posts differs
/// several times between a receiver that works off a backlog and one that keeps up, and which of
/// the two happens differs from stream to stream.
void LowLevel::time_stream(std::size_t samples, bool each_post) {
    lines_.meet(runtime_.rank());
    if (first_) {
        std::uint64_t busy = 0;
        Recorder recorder(samples);
        stopwatch_->clear();
        recorder.start();
        for (std::size_t i = 0; i < samples && alive(); ++i) {
            bool sent = false;
            while (!sent) {
                const ucs_status_t status =
                    each_post ? stopwatch_->time([&] { return message(); }) : message();
                busy += status == UCS_ERR_NO_RESOURCE ? 1 : 0;
                sent = accepted(status);
            }
            if (each_post) {
                stopwatch_->keep();
            }
            recorder.update(1, sizeof(header_));
        }
        const double ns = undisturbed_mean_ns(recorder.times());
        if (each_post) {
            add(part::kAmPostStream, stopwatch_->mean_ns(), samples);
            add(part::kAmBandwidth, ns - stopwatch_->overhead_ns(), samples);
            add(part::kBusyPerMessage, static_cast<double>(busy) / static_cast<double>(samples),
                samples);
        } else {
            add(part::kAmUntimed, ns, samples);
        }
    }
    drain(samples);
}

/// Times posts with nothing between them, as in a window: no fence of a clock keeps them from
/// overlapping.
void LowLevel::time_windows(std::size_t samples) {
    const std::size_t windows = samples / kWindow + 1;
    lines_.meet(runtime_.rank());
    if (first_) {
        const double ns = stopwatch_->window_ns(windows, [this] { send(); });
        add(part::kAmPostWindow, ns, windows * kWindow);
    }
    drain(windows * kWindow);
}

void LowLevel::time_post_in_ping_pong(std::size_t samples) {
    lines_.meet(runtime_.rank());
    stopwatch_->clear();
    for (std::size_t i = 0; i < samples && alive(); ++i) {
        const std::uint64_t next = arrived_ + 1;
        if (first_) {
            if (stopwatch_->time([&] { return message(); }) == UCS_OK) {
                stopwatch_->keep();
            } else {
                send();
            }
            await(next);
        } else {
            await(next);
            send();
        }
    }
    if (first_ && stopwatch_->size() > 0) {
        add(part::kAmPostToPeer, stopwatch_->mean_ns(), stopwatch_->size());
    }
}

/// Times progress when the message has arrived and its lines have come to rest with the peer.
void LowLevel::time_progress_of_peer(std::size_t samples) {
    lines_.meet(runtime_.rank());
    stopwatch_->clear();
    for (std::size_t i = 0; i < samples && alive(); ++i) {
        const std::uint64_t next = arrived_ + 1;
        if (!first_) {
            await(next);
            send();
        } else {
            send();
        }
        lines_.meet(runtime_.rank());
        if (first_) {
            stopwatch_->time([&] { return link_->resource().progress(); });
            if (arrived_ >= next) {
                stopwatch_->keep();
            }
            await(next);
        }
    }
    if (first_ && stopwatch_->size() > 0) {
        add(part::kProgressOfPeer, stopwatch_->mean_ns(), stopwatch_->size());
    }
}

void LowLevel::observe_put_bandwidth(std::size_t samples) {
    lines_.meet(runtime_.rank());
    if (first_) {
        Recorder recorder(samples);
        recorder.start();
        while (!recorder.done()) {
            while (!accepted(put())) {
            }
            recorder.update(1, sizeof(sent_));
        }
        add(part::kPutBandwidth, undisturbed_mean_ns(recorder.times()), samples);
    }
    lines_.meet(runtime_.rank());
}

/// Times half a round trip, many of them together: `answer` sends, `wait` returns when the peer's
/// message has arrived.
template <typename Answer, typename Wait>
void LowLevel::observe_latency(const char* name, std::size_t samples, Answer answer, Wait wait) {
    lines_.meet(runtime_.rank());
    std::vector<Ticks> times;
    for (std::size_t i = 0; i < std::max<std::size_t>(samples / kRoundTrips, 4); ++i) {
        const Ticks before = read_ordered();
        for (unsigned k = 0; k < kRoundTrips && alive(); ++k) {
            if (!first_) {
                wait();
            }
            answer();
            if (first_) {
                wait();
            }
        }
        times.push_back(read_ordered() - before);
    }
    const std::size_t count = times.size() * kRoundTrips;
    add(name, undisturbed_mean_ns(std::move(times)) / (2 * kRoundTrips), count);
}

/// Measures as am_lat of ucx_perftest does.
void LowLevel::observe_am_latency(std::size_t samples) {
    observe_latency(
        part::kAmLatency, samples, [this] { send(); }, [this] { await(arrived_ + 1); });
}

/// Measures as put_lat of ucx_perftest does: a process that waits alternately reads its memory and
/// makes progress.
void LowLevel::observe_put_latency(std::size_t samples) {
    const auto answer = [this] {
        while (!accepted(put())) {
        }
    };
    const auto wait = [this] {
        const std::uint64_t awaited = ++seen_;
        while (number_in(link_->target()).load(std::memory_order_acquire) != awaited && idle()) {
        }
    };
    const auto next = [&] {
        ++sent_;
        answer();
    };
    observe_latency(part::kPutLatency, samples, next, wait);
}

Status LowLevel::round(std::size_t samples, Stopwatch& stopwatch, Rounds& rounds) {
    stopwatch_ = &stopwatch;
    rounds_ = &rounds;
    const std::size_t stream = kStreamFactor * samples;
    if (first_) {
        add(part::kOverhead, stopwatch.overhead_ns(), samples);
        add(part::kCall, stopwatch.call_ns(), samples);
        time_software(samples);
        if (shares_memory_) {
            time_puts(samples);
            time_own_messages(samples);
        }
    }
    if (puts_) {
        observe_put_bandwidth(stream);
        observe_put_latency(stream);
    }
    if (alive()) {
        time_busy_posts(samples);
        time_stream(stream, false);
        time_stream(samples, true);
        time_windows(stream);
        observe_am_latency(stream);
        time_post_in_ping_pong(samples);
        time_progress_of_peer(samples);
    }
    return agree(runtime_,
                 link_->resource().failed() ? link_->resource().failure_status() : failure_);
}

} // namespace ucg::perftest::breakdown
