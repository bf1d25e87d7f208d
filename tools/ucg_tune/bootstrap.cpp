#include "tools/ucg_tune/bootstrap.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucg::tools {

namespace {

using SteadyClock = std::chrono::steady_clock;

/// The time between two attempts to reach rank 0, which may not have started yet.
constexpr useconds_t kRetryUs = 50'000;
/// The longest text. Addresses of a process have some KiB; a longer text is not from one of the
/// ranks.
constexpr std::uint64_t kTextMax = 1 << 20;
/// The time that the slowest rank may take between two exchanges, between which it measures.
constexpr time_t kSilenceSeconds = 7200;

Status system_failure(std::string_view what) {
    return failure(Code::io_error, "{}: {}", what, std::strerror(errno));
}

bool write_all(int fd, const void* data, std::size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t done = ::send(fd, at, bytes, MSG_NOSIGNAL);
        if (done <= 0) {
            return false;
        }
        at += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return true;
}

bool read_all(int fd, void* data, std::size_t bytes) {
    return bytes == 0 || ::recv(fd, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

bool send_text(int fd, std::string_view text) {
    const std::uint64_t bytes = text.size();
    return write_all(fd, &bytes, sizeof(bytes)) && write_all(fd, text.data(), text.size());
}

bool receive_text(int fd, std::string& text) {
    std::uint64_t bytes = 0;
    if (!read_all(fd, &bytes, sizeof(bytes)) || bytes > kTextMax) {
        return false;
    }
    text.resize(bytes);
    return read_all(fd, text.data(), bytes);
}

/// Bounds the waits on a socket, so that waiting for a rank that hangs ends.
void bound_waits(int fd) {
    const timeval limit = {.tv_sec = kSilenceSeconds, .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

struct FreeAddresses {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const std::string& host, const std::string& port, int flags) {
    addrinfo hints = {};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int error =
        ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
    if (error != 0) {
        return failure(Code::invalid_argument, "--bootstrap {}:{}: {}", host, port,
                       ::gai_strerror(error));
    }
    return Addresses(found);
}

Result<Rank> number_in(const char* variable) {
    const char* text = std::getenv(variable);
    const std::string_view view = text != nullptr ? text : "";
    Rank value = 0;
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    if (error != std::errc() || end != view.data() + view.size() || value < 0) {
        return failure(Code::invalid_argument, "{}: expected a number, found '{}'", variable, view);
    }
    return value;
}

} // namespace

Result<RankInJob> launched_place() {
    constexpr std::array<std::pair<const char*, const char*>, 3> kLaunchers = {{
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"PMI_RANK", "PMI_SIZE"},
        {"SLURM_PROCID", "SLURM_NTASKS"},
    }};
    for (const auto& [rank_variable, count_variable] : kLaunchers) {
        if (std::getenv(rank_variable) == nullptr) {
            continue;
        }
        const Result<Rank> rank = number_in(rank_variable);
        const Result<Rank> count = number_in(count_variable);
        if (!rank.ok() || !count.ok()) {
            return rank.ok() ? count.status() : rank.status();
        }
        if (*rank >= *count) {
            return failure(Code::invalid_argument, "{}: {} ranks cannot have a rank {}",
                           rank_variable, *count, *rank);
        }
        return RankInJob{*rank, *count};
    }
    return RankInJob{};
}

TcpStar::~TcpStar() {
    if (listener_ >= 0) {
        ::close(listener_);
    }
    for (const int line : lines_) {
        if (line >= 0) {
            ::close(line);
        }
    }
}

Status TcpStar::join(const RankInJob& place, const std::string& point,
                     std::chrono::seconds timeout) {
    place_ = place;
    const std::size_t colon = point.rfind(':');
    if (colon == std::string::npos || colon == 0) {
        return failure(Code::invalid_argument, "--bootstrap: expected HOST:PORT, found {}", point);
    }
    const SteadyClock::time_point end = SteadyClock::now() + timeout;
    const std::string host = point.substr(0, colon);
    const std::string port = point.substr(colon + 1);
    if (place_.rank > 0) {
        return connect(host, port, end);
    }
    if (Status status = listen("", port); !status.ok()) {
        return status;
    }
    return accept_all(end);
}

Status TcpStar::fork(Rank count, std::chrono::seconds timeout) {
    UCG_ASSERT(count >= 2);
    place_ = {0, count};
    if (Status status = listen("127.0.0.1", "0"); !status.ok()) {
        return status;
    }
    sockaddr_in bound = {};
    socklen_t length = sizeof(bound);
    if (::getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
        return system_failure("cannot tell an own address");
    }
    const SteadyClock::time_point end = SteadyClock::now() + timeout;
    const pid_t parent = ::getpid();
    for (Rank rank = 1; rank < count; ++rank) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) {
                ::_exit(1); // The parent died before.
            }
            children_.clear();
            ::close(std::exchange(listener_, -1));
            place_.rank = rank;
            return connect("127.0.0.1", std::to_string(ntohs(bound.sin_port)), end);
        }
        if (child < 0) {
            return system_failure("cannot start a process");
        }
        children_.push_back(child);
    }
    return accept_all(end);
}

Status TcpStar::listen(const std::string& host, const std::string& port) {
    const Result<Addresses> at = resolve(host, port, AI_PASSIVE);
    if (!at.ok()) {
        return at.status();
    }
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    if (listener_ < 0 ||
        ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        ::bind(listener_, (*at)->ai_addr, (*at)->ai_addrlen) != 0 ||
        ::listen(listener_, SOMAXCONN) != 0) {
        return system_failure(fmt::format("cannot listen at port {}", port));
    }
    return {};
}

Status TcpStar::accept_all(SteadyClock::time_point end) {
    lines_.assign(static_cast<std::size_t>(place_.count), -1);
    for (Rank joined = 1; joined < place_.count;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
        pollfd waiting = {.fd = listener_, .events = POLLIN, .revents = 0};
        if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
            return failure(Code::timed_out,
                           "only {} of {} ranks have connected; is the host of --bootstrap that of "
                           "rank 0, and is its port open?",
                           joined, place_.count);
        }
        const int line = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (line < 0) {
            continue;
        }
        bound_waits(line);
        Rank rank = 0;
        if (!read_all(line, &rank, sizeof(rank)) || rank <= 0 || rank >= place_.count ||
            lines_[static_cast<std::size_t>(rank)] >= 0) {
            ::close(line); // Not one of these ranks.
            continue;
        }
        lines_[static_cast<std::size_t>(rank)] = line;
        ++joined;
    }
    return {};
}

Status TcpStar::connect(const std::string& host, const std::string& port,
                        SteadyClock::time_point end) {
    const Result<Addresses> at = resolve(host, port, 0);
    if (!at.ok()) {
        return at.status();
    }
    for (;;) {
        const int line = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (line < 0) {
            return system_failure("cannot make a socket");
        }
        if (::connect(line, (*at)->ai_addr, (*at)->ai_addrlen) == 0) {
            lines_ = {line};
            bound_waits(line);
            return write_all(line, &place_.rank, sizeof(place_.rank))
                       ? Status()
                       : system_failure("rank 0 is gone");
        }
        const int error = errno;
        ::close(line);
        if (SteadyClock::now() > end) {
            return failure(Code::timed_out, "--bootstrap {}:{}: rank 0 is not there: {}", host,
                           port, std::strerror(error));
        }
        ::usleep(kRetryUs);
    }
}

Result<std::vector<std::string>> TcpStar::allgather(std::string_view mine) {
    std::vector<std::string> all(static_cast<std::size_t>(place_.count));
    const auto gone = [](Rank rank) {
        return failure(Code::unreachable,
                       "rank {} ended before the measurement did; its own "
                       "message says why",
                       rank);
    };
    if (place_.rank > 0) {
        bool good = send_text(lines_[0], mine);
        for (std::string& text : all) {
            good = good && receive_text(lines_[0], text);
        }
        return good ? Result<std::vector<std::string>>(std::move(all)) : gone(0);
    }
    all[0] = mine;
    for (Rank rank = 1; rank < place_.count; ++rank) {
        const auto index = static_cast<std::size_t>(rank);
        if (!receive_text(lines_[index], all[index])) {
            return gone(rank);
        }
    }
    for (Rank rank = 1; rank < place_.count; ++rank) {
        for (const std::string& text : all) {
            if (!send_text(lines_[static_cast<std::size_t>(rank)], text)) {
                return gone(rank);
            }
        }
    }
    return all;
}

Status TcpStar::reap() {
    Status status;
    for (const int child : children_) {
        int outcome = 0;
        if (::waitpid(child, &outcome, 0) == child && outcome != 0) {
            status = failure(Code::io_error, "a measuring process failed");
        }
    }
    children_.clear();
    return status;
}

} // namespace ucg::tools
