#include "tools/vcluster_links/forwarder.hpp"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace ucg::tools {

namespace {

/// Bytes that may be under way in one direction. A direction moves some 2 Gbit/s where nothing else
/// wants the processor, so a link of 50 ms is full before this memory is. Only what is used is
/// touched.
constexpr std::size_t kLineBytes = std::size_t{16} << 20;
/// Frames read at a time, so that frames that are due do not wait for a flood to end. Reading one
/// takes about a microsecond.
constexpr int kBatch = 32;
constexpr std::uint64_t kNever = UINT64_MAX;

std::uint64_t now_ns() {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

Status system_failure(const char* what) {
    return failure(Code::io_error, "{}: {}", what, std::strerror(errno));
}

/// Gives this thread realtime priority, since ranks that poll would keep the processor for their
/// time slice. The thread sleeps whenever it has nothing to do, so priority harms nobody. Without
/// the right to it, links are later, which the counters show.
bool go_first() {
    sched_param priority = {};
    priority.sched_priority = ::sched_get_priority_min(SCHED_FIFO);
    return ::sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

nlohmann::ordered_json to_json(const Counters& counters) {
    const double frames = static_cast<double>(std::max<std::uint64_t>(counters.frames, 1));
    return {{"frames", counters.frames},
            {"bytes", counters.bytes},
            {"lost", counters.lost},
            {"overflow", counters.overflow},
            {"refused", counters.refused},
            {"late_mean_ns", static_cast<double>(counters.late_sum_ns) / frames},
            {"late_max_ns", counters.late_max_ns}};
}

} // namespace

OneWayLink::OneWayLink(const LinkOptions& link, std::uint64_t seed)
    : latency_ns_(link.latency_ns), loss_(link.loss), random_(seed), line_(kLineBytes) {}

bool OneWayLink::is_lost() {
    // The distributions of <random> differ between C++ libraries; the generator does not.
    constexpr double kRange = 18446744073709551616.0; // 2^64
    return loss_ > 0 && static_cast<double>(random_()) < loss_ * kRange;
}

bool OneWayLink::take(int from) {
    std::array<std::byte, DelayLine::kFrameMax> nowhere;
    for (int i = 0; i < kBatch; ++i) {
        const std::span<std::byte> room = line_.room();
        const std::span<std::byte> target = room.empty() ? std::span<std::byte>(nowhere) : room;
        const ssize_t bytes = ::read(from, target.data(), target.size());
        if (bytes < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        if (room.empty()) {
            ++counters_.overflow;
        } else if (is_lost()) {
            ++counters_.lost;
        } else {
            line_.push(static_cast<std::size_t>(bytes), now_ns() + latency_ns_);
        }
    }
    return true;
}

void OneWayLink::write(int to, const DelayLine::Frame& frame, std::uint64_t now_ns) {
    if (::write(to, frame.bytes.data(), frame.bytes.size()) < 0) {
        ++counters_.refused;
        return;
    }
    const std::uint64_t late_ns = now_ns - frame.due_ns;
    ++counters_.frames;
    counters_.bytes += frame.bytes.size();
    counters_.late_sum_ns += late_ns;
    counters_.late_max_ns = std::max(counters_.late_max_ns, late_ns);
}

void OneWayLink::deliver(int to, std::uint64_t now_ns) {
    while (!line_.empty() && line_.front().due_ns <= now_ns) {
        write(to, line_.front(), now_ns);
        line_.pop();
    }
}

std::uint64_t OneWayLink::next_due_ns() const {
    return line_.empty() ? kNever : line_.front().due_ns;
}

Result<std::unique_ptr<Forwarder>> Forwarder::create(const ForwarderOptions& options) {
    std::unique_ptr<Forwarder> forwarder(new Forwarder);
    forwarder->epoll_ = OwnedDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    forwarder->timer_ =
        OwnedDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!forwarder->epoll_.valid() || !forwarder->timer_.valid()) {
        return system_failure("no epoll or no timer");
    }
    if (Status status = forwarder->watch(forwarder->timer_.get(), Source::timer, 0); !status.ok()) {
        return status;
    }
    for (const LinkOptions& link : options.links) {
        Result<OwnedDescriptor> near = make_tap(link.near);
        if (!near.ok()) {
            return near.status();
        }
        Result<OwnedDescriptor> far = make_tap(link.far);
        if (!far.ok()) {
            return far.status();
        }
        const auto index = static_cast<std::uint32_t>(forwarder->links_.size());
        const std::uint64_t seed = options.seed + 2 * std::uint64_t{index};
        forwarder->links_.push_back(std::unique_ptr<Link>(
            new Link{link, std::move(*near), std::move(*far), {link, seed}, {link, seed + 1}}));
        const Link& made = *forwarder->links_.back();
        for (const auto& [fd, source] :
             {std::pair(made.near.get(), Source::near), std::pair(made.far.get(), Source::far)}) {
            if (Status status = forwarder->watch(fd, source, index); !status.ok()) {
                return status;
            }
        }
    }
    if (Status status = options.socket.empty() ? Status() : forwarder->listen(options.socket);
        !status.ok()) {
        return status;
    }
    forwarder->realtime_ = go_first();
    return forwarder;
}

Status Forwarder::watch(int fd, Source source, std::uint32_t link) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = static_cast<std::uint64_t>(source) << 32 | link;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0
               ? Status()
               : system_failure("cannot wait for a descriptor");
}

Status Forwarder::listen(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        return failure(Code::invalid_argument, "--socket: expected at most {} characters, found {}",
                       sizeof(address.sun_path) - 1, path.size());
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    socket_ = OwnedDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.valid() ||
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(socket_.get(), SOMAXCONN) != 0) {
        return failure(Code::io_error, "--socket {}: {}", path, std::strerror(errno));
    }
    return watch(socket_.get(), Source::socket, 0);
}

void Forwarder::take(Link& link, bool from_near) {
    OneWayLink& direction = from_near ? link.outward : link.inward;
    if (direction.take((from_near ? link.near : link.far).get())) {
        return;
    }
    // A device ends with its network namespace: its host is gone, so the link ends, too.
    link.gone = true;
    link.near.close();
    link.far.close();
}

void Forwarder::deliver_due() {
    std::uint64_t next_ns = kNever;
    for (const std::unique_ptr<Link>& link : links_) {
        if (!link->gone) {
            link->outward.deliver(link->far.get(), now_ns());
            link->inward.deliver(link->near.get(), now_ns());
            next_ns = std::min({next_ns, link->outward.next_due_ns(), link->inward.next_due_ns()});
        }
    }
    if (next_ns != armed_ns_) {
        armed_ns_ = next_ns;
        itimerspec when = {}; // Zero: the timer never rings.
        if (next_ns != kNever) {
            when.it_value.tv_sec = static_cast<time_t>(next_ns / 1'000'000'000);
            when.it_value.tv_nsec = static_cast<long>(next_ns % 1'000'000'000);
        }
        const int failed = ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
        UCG_ASSERT(failed == 0);
    }
}

void Forwarder::answer() {
    const OwnedDescriptor client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.valid()) {
        // An answer fits a socket's buffer, so a client that does not read delays nobody.
        const std::string text = report();
        static_cast<void>(
            ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    }
}

Status Forwarder::run(int lifeline) {
    if (Status status = watch(lifeline, Source::lifeline, 0); !status.ok()) {
        return status;
    }
    std::array<epoll_event, 64> events;
    for (;;) {
        const int count =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
        if (count < 0 && errno != EINTR) {
            return system_failure("cannot wait for frames");
        }
        for (int i = 0; i < count; ++i) {
            const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
            const auto source = static_cast<Source>(data >> 32);
            std::uint64_t rings = 0;
            switch (source) {
            case Source::lifeline: return {};
            case Source::timer:
                static_cast<void>(::read(timer_.get(), &rings, sizeof(rings)) > 0);
                armed_ns_ = kNever;
                break;
            case Source::socket: answer(); break;
            case Source::near:
            case Source::far:
                if (Link& link = *links_[data & UINT32_MAX]; !link.gone) {
                    take(link, source == Source::near);
                }
                break;
            }
        }
        deliver_due();
    }
}

std::string Forwarder::report() const {
    nlohmann::ordered_json json;
    json["realtime"] = realtime_;
    json["links"] = nlohmann::ordered_json::object();
    for (const std::unique_ptr<Link>& link : links_) {
        // Directions have names as a host sees them: it sends up, towards the switch.
        json["links"][link->options.name] = {{"latency_ns", link->options.latency_ns},
                                             {"loss", link->options.loss},
                                             {"gone", link->gone},
                                             {"down", to_json(link->outward.counters())},
                                             {"up", to_json(link->inward.counters())}};
    }
    return json.dump() + "\n";
}

} // namespace ucg::tools
