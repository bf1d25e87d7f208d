#include "perf/perftest/launch/runtime_socket.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

#include "perf/perftest/launch/runtime_star.hpp"
#include "shm/descriptor.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/base/printable.hpp"

namespace ucg::perftest {

namespace {

using Clock = std::chrono::steady_clock;

/// The time for which a client tries to connect to a server that may just be starting.
constexpr std::chrono::milliseconds kPatience{1000};
constexpr useconds_t kRetryUs = 50'000;
constexpr time_t kGreetingSeconds = 10;
/// The time in which an exchange may report a lost peer, of which it knows more than the watcher.
constexpr int kGraceMs = 1000;
constexpr std::string_view kProtocol = "ucg_perftest";

Status system_failure(std::string_view what) {
    return failure(Code::io_error, "{}: {}", what, std::strerror(errno));
}

struct FreeAddresses {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const SocketPlace& place) {
    addrinfo hints = {};
    hints.ai_family = place.ipv6 ? AF_INET6 : AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = place.host.empty() ? AI_PASSIVE : 0;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(place.host.empty() ? nullptr : place.host.c_str(),
                                    std::to_string(place.port).c_str(), &hints, &found);
    if (error != 0) {
        return failure(Code::invalid_argument, "cannot find the server's host '{}'{}: {}",
                       place.host, place.ipv6 ? " by IPv6" : "", ::gai_strerror(error));
    }
    return Addresses(found);
}

/// What both sides say first: a text of fixed length, so that a stranger can be recognised without
/// waiting for more bytes. Its words are separated by blanks.
using Greeting = std::array<char, 128>;

Greeting greeting(std::string_view text) {
    Greeting bytes = {};
    std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size() - 1));
    return bytes;
}

bool send_greeting(int line, const Greeting& mine) {
    return ::send(line, mine.data(), mine.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(mine.size());
}

/// Returns the peer's greeting; empty when none arrives in time.
std::string receive_greeting(int line) {
    const timeval limit = {.tv_sec = kGreetingSeconds, .tv_usec = 0};
    ::setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    Greeting theirs = {};
    if (::recv(line, theirs.data(), theirs.size(), MSG_WAITALL) !=
        static_cast<ssize_t>(theirs.size())) {
        return "";
    }
    theirs.back() = '\0';
    return theirs.data();
}

/// Prepares a connection for use after the greeting: waits have no limit, and short data are sent
/// at once.
void make_ready(int line) {
    const timeval none = {};
    ::setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
    const int yes = 1;
    ::setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

std::string version_text() {
    return fmt::format("{} {}", kProtocol, ucg_get_version_string());
}

std::string address_text(const sockaddr_storage& address, socklen_t length) {
    std::array<char, NI_MAXHOST> host = {};
    std::array<char, NI_MAXSERV> port = {};
    ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                  port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
    return fmt::format("{}:{}", host.data(), port.data());
}

/// A thread that sleeps until a peer is gone. It takes no time from what is measured.
class Watcher {
  public:
    Watcher(Rank rank, const std::vector<int>& lines)
        : stop_(::eventfd(0, EFD_CLOEXEC)), thread_([this, rank, lines] { watch(rank, lines); }) {}
    ~Watcher() { stop(); }
    Watcher(const Watcher&) = delete;
    Watcher& operator=(const Watcher&) = delete;

    void stop() {
        if (thread_.joinable()) {
            ::eventfd_write(stop_.get(), 1);
            thread_.join();
        }
    }

  private:
    void watch(Rank rank, const std::vector<int>& lines) const {
        std::vector<pollfd> files = {{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
        for (const int line : lines) { // poll() ignores negative ones.
            files.push_back({.fd = line, .events = POLLRDHUP, .revents = 0});
        }
        while (::poll(files.data(), files.size(), -1) < 0 && errno == EINTR) {
        }
        if (files.front().revents != 0 || ::poll(files.data(), 1, kGraceMs) != 0) {
            return;
        }
        for (std::size_t line = 0; line < lines.size(); ++line) {
            if (files[line + 1].revents != 0) {
                std::fprintf(stderr, "ucg_perftest: rank %d is lost; this one, rank %d, ends too\n",
                             rank == 0 ? static_cast<int>(line) : 0, rank);
            }
        }
        ::_exit(1);
    }

    shm::Descriptor stop_;
    std::thread thread_;
};

class ConnectedRuntime : public SocketRuntime {
  public:
    ConnectedRuntime(Rank rank, Rank size, const std::vector<int>& lines)
        : star_(rank, size, lines), watcher_(rank, lines) {}

    Rank rank() const override { return star_.rank(); }
    Rank size() const override { return star_.size(); }
    Result<std::vector<std::string>> exchange(std::string_view mine,
                                              const std::function<void()>& progress) override {
        return star_.exchange(mine, progress);
    }
    Status farewell() override {
        Status status = barrier();
        watcher_.stop();
        return status;
    }

  private:
    StarRuntime star_;
    Watcher watcher_; ///< After what it watches.
};

/// Sockets that are closed by the destructor unless they are released.
class Lines {
  public:
    explicit Lines(std::size_t count) : lines_(count, -1) {}
    ~Lines() {
        for (const int line : lines_) {
            if (line >= 0) {
                ::close(line);
            }
        }
    }
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    int& operator[](std::size_t index) { return lines_[index]; }
    std::vector<int> release() { return std::exchange(lines_, {}); }

  private:
    std::vector<int> lines_;
};

Result<shm::Descriptor> listen_at(const SocketPlace& place) {
    const Result<Addresses> at = resolve(place);
    if (!at.ok()) {
        return at.status();
    }
    shm::Descriptor listener(::socket((*at)->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    if (!listener.valid() ||
        ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        ::bind(listener.get(), (*at)->ai_addr, (*at)->ai_addrlen) != 0 ||
        ::listen(listener.get(), SOMAXCONN) != 0) {
        return system_failure(
            fmt::format("cannot listen at port {} (-p chooses another)", place.port));
    }
    return listener;
}

/// Greets a client. Returns false if it is no client of this program, which it reports on standard
/// error.
bool greet_client(int line, const std::string& from, Rank rank, Rank size) {
    const std::string said = receive_greeting(line);
    if (said == version_text()) {
        if (send_greeting(line, greeting(fmt::format("{} {} {}", version_text(), rank, size)))) {
            std::printf("Accepted connection from %s\n", from.c_str());
            std::fflush(stdout);
            return true;
        }
    } else {
        send_greeting(line, greeting(version_text()));
        const bool ours = said.starts_with(kProtocol);
        const std::string what =
            ours ? fmt::format("of version '{}'", printable(said, LineBreaks::escape))
                 : std::string("not ucg_perftest");
        std::fprintf(stderr, "ucg_perftest: refused a client from %s: it is %s, this is %s\n",
                     from.c_str(), what.c_str(), version_text().c_str());
    }
    return false;
}

/// Accepts connections until one is from a client of this program.
Result<int> accept_client(int listener, Rank rank, Rank size) {
    for (;;) {
        sockaddr_storage address = {};
        socklen_t length = sizeof(address);
        const int line =
            ::accept4(listener, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC);
        if (line < 0) {
            if (errno == EINTR || errno == ECONNABORTED) {
                continue;
            }
            return system_failure("cannot wait for a client");
        }
        if (greet_client(line, address_text(address, length), rank, size)) {
            make_ready(line);
            return line;
        }
        ::close(line);
    }
}

Result<int> connect_to(const SocketPlace& place) {
    const Result<Addresses> at = resolve(place);
    if (!at.ok()) {
        return at.status();
    }
    const Clock::time_point end = Clock::now() + kPatience;
    for (;;) {
        int error = 0;
        for (const addrinfo* next = at->get(); next != nullptr; next = next->ai_next) {
            const int line = ::socket(next->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (line >= 0 && ::connect(line, next->ai_addr, next->ai_addrlen) == 0) {
                return line;
            }
            error = errno;
            if (line >= 0) {
                ::close(line);
            }
        }
        if (error != ECONNREFUSED || Clock::now() > end) {
            return failure(Code::unreachable,
                           "cannot connect to {} port {}: {}; a server is ucg_perftest without "
                           "HOST, at the same port (-p)",
                           place.host, place.port, std::strerror(error));
        }
        ::usleep(kRetryUs);
    }
}

/// Parses the two numbers behind the version in the server's greeting.
bool parse_place(std::string_view text, Rank& rank, Rank& size) {
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, rank);
    if (first.ec != std::errc() || first.ptr == end) {
        return false;
    }
    const auto second = std::from_chars(first.ptr + 1, end, size);
    return second.ec == std::errc() && rank > 0 && rank < size;
}

} // namespace

Result<std::unique_ptr<SocketRuntime>> serve(const SocketPlace& place, Rank size) {
    const Result<shm::Descriptor> listener = listen_at(place);
    if (!listener.ok()) {
        return listener.status();
    }
    Lines lines(static_cast<std::size_t>(size));
    std::printf("Waiting for connection%s...\n", size > 2 ? "s" : "");
    std::fflush(stdout);
    for (Rank rank = 1; rank < size; ++rank) {
        const Result<int> line = accept_client(listener->get(), rank, size);
        if (!line.ok()) {
            return line.status();
        }
        lines[static_cast<std::size_t>(rank)] = *line;
    }
    return std::unique_ptr<SocketRuntime>(new ConnectedRuntime(0, size, lines.release()));
}

Result<std::unique_ptr<SocketRuntime>> connect(const SocketPlace& place) {
    const Result<int> connected = connect_to(place);
    if (!connected.ok()) {
        return connected.status();
    }
    Lines lines(1);
    lines[0] = *connected;
    const std::string where = fmt::format("{} port {}", place.host, place.port);
    const bool sent = send_greeting(*connected, greeting(version_text()));
    const std::string said = sent ? receive_greeting(*connected) : "";
    const std::string expected = version_text() + " ";
    Rank rank = 0;
    Rank size = 0;
    if (!said.starts_with(kProtocol)) {
        return failure(Code::disagreement, "what waits at {} is not ucg_perftest", where);
    }
    if (!said.starts_with(expected)) {
        return failure(Code::disagreement, "the server at {} is {}, this client {}", where,
                       printable(said, LineBreaks::escape), version_text());
    }
    if (!parse_place(std::string_view(said).substr(expected.size()), rank, size)) {
        return failure(Code::disagreement, "the server at {} gives no rank", where);
    }
    make_ready(*connected);
    return std::unique_ptr<SocketRuntime>(new ConnectedRuntime(rank, size, lines.release()));
}

} // namespace ucg::perftest
