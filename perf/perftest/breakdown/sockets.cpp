#include "perf/perftest/breakdown/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <numeric>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf/perftest/launch/agree.hpp"

namespace ucg::perftest::breakdown {

namespace {

/// The length of an active message of 8 bytes as UCT's TCP sends it, with a byte for the handler's
/// number and four for the length before it.
constexpr std::size_t kMessageBytes = 13;
/// The most bytes of one read: UCT's TCP reads all that there is, up to this limit.
constexpr std::size_t kReadBytes = 8 << 10;
/// The time after which a peer counts as lost, in nanoseconds.
constexpr double kPatienceNs = 10e9;

Status system_failure(const char* what) {
    return failure(Code::io_error, "breakdown: plain sockets: {}: {}", what, std::strerror(errno));
}

struct FreeList {
    void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

/// Returns the device's first address, as the kernel stores it.
Result<std::string> address_of(const std::string& device) {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) {
        return system_failure("asking for the addresses of devices");
    }
    const std::unique_ptr<ifaddrs, FreeList> list(first);
    for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
        if (device != at->ifa_name || at->ifa_addr == nullptr) {
            continue;
        }
        const int family = at->ifa_addr->sa_family;
        if (family == AF_INET || family == AF_INET6) {
            return std::string(reinterpret_cast<const char*>(at->ifa_addr),
                               family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        }
    }
    return failure(Code::invalid_argument, "breakdown: the device '{}' has no IP address", device);
}

const sockaddr* as_address(const std::string& bytes) {
    return reinterpret_cast<const sockaddr*>(bytes.data());
}

/// Returns the mean without the longest two per cent, which are interruptions. The limit is no
/// multiple of the median, since the clocks of two processors may differ by more than what is
/// measured.
double common_mean(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t kept = std::max<std::size_t>(values.size() * 98 / 100, 1);
    return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(kept),
                           0.0) /
           static_cast<double>(kept);
}

} // namespace

PlainSockets::~PlainSockets() {
    for (const int descriptor : {listener_, socket_, epoll_}) {
        if (descriptor >= 0) {
            ::close(descriptor);
        }
    }
}

Result<std::unique_ptr<PlainSockets>> PlainSockets::connect(Runtime& runtime,
                                                            const std::string& device) {
    std::unique_ptr<PlainSockets> sockets(new PlainSockets(runtime));
    std::string mine;
    Status status;
    if (runtime.rank() == 0) {
        status = sockets->listen_on(device, mine);
    }
    status = agree(runtime, status);
    if (!status.ok()) {
        return status;
    }
    const Result<std::vector<std::string>> all = runtime.exchange(mine);
    if (!all) {
        return all.status();
    }
    if (runtime.rank() != 0) {
        status = sockets->connect_to(all->front());
    }
    status = agree(runtime, status);
    if (status.ok() && runtime.rank() == 0) {
        status = sockets->accept_peer();
    }
    if (status.ok()) {
        status = sockets->prepare();
    }
    status = agree(runtime, status);
    if (!status.ok()) {
        return status;
    }
    return sockets;
}

Status PlainSockets::listen_on(const std::string& device, std::string& address) {
    Result<std::string> found = address_of(device);
    if (!found) {
        return found.status();
    }
    address = std::move(*found);
    auto length = static_cast<socklen_t>(address.size());
    listener_ = ::socket(as_address(address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener_ < 0 || ::bind(listener_, as_address(address), length) != 0 ||
        ::listen(listener_, 1) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(address.data()), &length) != 0) {
        return system_failure("listening");
    }
    return {};
}

Status PlainSockets::connect_to(const std::string& address) {
    socket_ = ::socket(as_address(address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 ||
        ::connect(socket_, as_address(address), static_cast<socklen_t>(address.size())) != 0) {
        return system_failure("connecting");
    }
    return {};
}

/// Accepts the peer's connection, which already waits in the queue.
Status PlainSockets::accept_peer() {
    socket_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    return socket_ >= 0 ? Status() : system_failure("accepting");
}

Status PlainSockets::prepare() {
    const int one = 1;
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = socket_;
    if (epoll_ < 0 || ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0 ||
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_, &event) != 0) {
        return system_failure("preparing");
    }
    return {};
}

/// Sends a message that contains the time of its sending.
Status PlainSockets::send_one(std::vector<Ticks>& durations) {
    std::array<std::byte, kMessageBytes> bytes{};
    const Ticks before = read_ordered();
    std::memcpy(bytes.data(), &before, sizeof(before));
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    durations.push_back(read_ordered() - before);
    return sent == static_cast<ssize_t>(bytes.size()) ? Status() : system_failure("sending");
}

Status PlainSockets::receive_one(std::vector<double>& delays_ns) {
    epoll_event event{};
    const Ticks start = read_ordered();
    Ticks looked = 0;
    int ready = 0;
    while (ready == 0) {
        looked = read_unordered();
        ready = ::epoll_wait(epoll_, &event, 1, 0);
        if (nanoseconds(looked - start) > kPatienceNs) {
            return Status(Code::timed_out, "breakdown: plain sockets: the peer does not answer");
        }
    }
    std::array<std::byte, kReadBytes> bytes;
    const ssize_t got = ready > 0 ? ::recv(socket_, bytes.data(), bytes.size(), 0) : -1;
    if (got != static_cast<ssize_t>(kMessageBytes)) {
        return got < 0 ? system_failure("receiving")
                       : Status(Code::io_error, "breakdown: plain sockets: a part of a message");
    }
    Ticks sent = 0;
    std::memcpy(&sent, bytes.data(), sizeof(sent));
    const auto ticks = static_cast<std::int64_t>(looked - sent); // Of two clocks: can be negative.
    delays_ns.push_back(static_cast<double>(ticks) * 1e9 / ticks_per_second());
    return {};
}

Status PlainSockets::measure(std::size_t samples, const Stopwatch& stopwatch, Rounds& rounds) {
    std::vector<Ticks> durations;
    std::vector<double> delays_ns;
    Status status;
    for (std::size_t i = 0; i < samples && status.ok(); ++i) {
        status = runtime_.rank() == 0 ? send_one(durations) : receive_one(delays_ns);
        if (status.ok()) {
            status = runtime_.rank() == 0 ? receive_one(delays_ns) : send_one(durations);
        }
    }
    status = agree(runtime_, status);
    if (!status.ok()) {
        return status;
    }
    const Result<std::vector<std::string>> all =
        runtime_.exchange(fmt::format("{}", common_mean(std::move(delays_ns))));
    if (!all) {
        return all.status();
    }
    if (runtime_.rank() == 0) {
        rounds.add(kPath, (std::stod((*all)[0]) + std::stod((*all)[1])) / 2, samples);
        rounds.add(kSend, undisturbed_mean_ns(std::move(durations)) - stopwatch.overhead_ns(),
                   samples);
    }
    return {};
}

} // namespace ucg::perftest::breakdown
