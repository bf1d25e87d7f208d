// Runs a test body in N forked processes, as ranks of one job. They have nothing but the transport
// under test and a line to their parent: exchange() is an allgather over that line, barrier() is an
// empty exchange. The parent never waits longer than its time limit: it kills the processes that
// are left.
//
// Catch's assertions belong to the parent. A rank reports through the result of its body: an empty
// string when all is well, otherwise what went wrong.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::test {

namespace detail {

inline bool write_all(int fd, const void* data, std::size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n <= 0) {
            if (n < 0 && errno == EINTR) {
                continue;
            }
            return false;
        }
        at += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

inline bool read_all(int fd, void* data, std::size_t bytes) {
    char* at = static_cast<char*>(data);
    while (bytes > 0) {
        const ssize_t n = read(fd, at, bytes);
        if (n <= 0) {
            if (n < 0 && errno == EINTR) {
                continue;
            }
            return false;
        }
        at += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

inline bool write_frame(int fd, std::string_view text) {
    const std::uint32_t bytes = static_cast<std::uint32_t>(text.size());
    return write_all(fd, &bytes, sizeof(bytes)) && write_all(fd, text.data(), text.size());
}

inline bool read_frame(int fd, std::string& text) {
    std::uint32_t bytes = 0;
    if (!read_all(fd, &bytes, sizeof(bytes))) {
        return false;
    }
    text.resize(bytes);
    return read_all(fd, text.data(), bytes);
}

} // namespace detail

/// What the body of a rank is called with.
class ForkedRank {
  public:
    ForkedRank(Rank rank, int size, int fd) : rank_(rank), size_(size), fd_(fd) {}

    Rank rank() const { return rank_; }
    int size() const { return size_; }

    /// The texts of all ranks, by rank; that of a rank that has ended is empty. All living ranks
    /// must call it.
    std::vector<std::string> exchange(std::string_view mine) const {
        std::vector<std::string> all(static_cast<std::size_t>(size_));
        bool alive = detail::write_frame(fd_, mine);
        for (std::string& text : all) {
            alive = alive && detail::read_frame(fd_, text);
        }
        if (!alive) {
            std::_Exit(3); // The parent has given up.
        }
        return all;
    }

    void barrier() const { static_cast<void>(exchange({})); }

    /// A barrier in which the rank keeps calling `poll`, as the fence of a host does. It returns
    /// when all living ranks have come.
    template <typename Poll>
    void barrier_polling(Poll poll_host) const {
        bool alive = detail::write_frame(fd_, {});
        pollfd entry{fd_, POLLIN, 0};
        while (alive && poll(&entry, 1, 0) == 0) {
            poll_host();
        }
        std::string text;
        for (int i = 0; i < size_ && alive; ++i) {
            alive = detail::read_frame(fd_, text);
        }
        if (!alive) {
            std::_Exit(3);
        }
    }

  private:
    Rank rank_;
    int size_;
    int fd_;
};

/// How one rank ended.
struct RankResult {
    int exit_code = -1; ///< -1 unless it exited.
    int signal = 0;     ///< The signal that killed it; SIGKILL when it ran out of time.
    bool timed_out = false;
    std::string output; ///< All that it wrote to standard output and standard error.

    bool ok() const { return exit_code == 0; }
};

namespace detail {

struct Child {
    pid_t pid = -1;
    int fd = -1;
    int log = -1;
    bool open = true;
    bool waiting = false; ///< It has sent its part of the current exchange.
    std::string part;
};

/// Runs the body. An exception must not leave the rank, or the framework would go on with the next
/// test in it.
template <typename Body>
std::string complaint_of(Body& body, const ForkedRank& rank) {
    try {
        return body(rank);
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "an assertion failed, which belongs to the parent";
    }
}

template <typename Body>
[[noreturn]] void run_child(Rank rank, int size, int fd, int log, Body& body) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    const std::string complaint = complaint_of(body, ForkedRank(rank, size, fd));
    if (!complaint.empty()) {
        std::fprintf(stderr, "rank %d: %s\n", static_cast<int>(rank), complaint.c_str());
    }
    // This calls exit() and not _exit(), since the libraries' exit handlers are part of what is
    // tested.
    std::exit(complaint.empty() ? 0 : 1);
}

/// Sends all parts to every child once every open child has sent its own.
inline void complete_exchange(std::vector<Child>& children) {
    for (const Child& child : children) {
        if (child.open && !child.waiting) {
            return;
        }
    }
    for (Child& child : children) {
        if (!child.open) {
            continue;
        }
        for (const Child& from : children) {
            static_cast<void>(write_frame(child.fd, from.part));
        }
    }
    for (Child& child : children) {
        child.waiting = false;
        child.part.clear();
    }
}

/// Serves exchanges until all children have closed their line; false when the time ran out.
inline bool serve(std::vector<Child>& children, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
        std::vector<pollfd> entries;
        std::vector<Child*> owners;
        for (Child& child : children) {
            if (child.open) {
                entries.push_back({child.fd, static_cast<short>(child.waiting ? 0 : POLLIN), 0});
                owners.push_back(&child);
            }
        }
        if (entries.empty()) {
            return true;
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0 ||
            poll(entries.data(), entries.size(), static_cast<int>(left.count())) < 0) {
            return false;
        }
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if ((entries[i].revents & POLLIN) != 0 && read_frame(owners[i]->fd, owners[i]->part)) {
                owners[i]->waiting = true;
            } else if (entries[i].revents != 0) {
                owners[i]->open = false;
            }
        }
        complete_exchange(children);
    }
}

inline std::string contents(int fd) {
    std::string text;
    char block[4096];
    lseek(fd, 0, SEEK_SET);
    for (ssize_t n = read(fd, block, sizeof(block)); n > 0; n = read(fd, block, sizeof(block))) {
        text.append(block, static_cast<std::size_t>(n));
    }
    return text;
}

} // namespace detail

/// May this process have so many children at once? A limit of its user, of its control group or of
/// the system may be lower.
inline bool can_fork(int count) {
    std::vector<pid_t> children;
    pid_t pid = 1;
    while (children.size() < static_cast<std::size_t>(count) && (pid = fork()) > 0) {
        children.push_back(pid);
    }
    if (pid == 0) {
        pause();
        std::_Exit(0);
    }
    for (const pid_t child : children) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    return pid > 0;
}

/// Forks `size` processes that each run `body(ForkedRank)` -> std::string, and waits for them for
/// at most `limit`. The caller should have no threads.
template <typename Body>
std::vector<RankResult> fork_ranks(int size, std::chrono::milliseconds limit, Body body) {
    std::fflush(nullptr);
    std::vector<detail::Child> children(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
        int pair[2] = {-1, -1};
        UCG_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        detail::Child& child = children[static_cast<std::size_t>(rank)];
        child.fd = pair[0];
        child.log = memfd_create("rank-output", MFD_CLOEXEC);
        child.pid = fork();
        UCG_ASSERT(child.pid >= 0);
        if (child.pid == 0) {
            for (detail::Child& other : children) {
                if (other.fd >= 0) {
                    close(other.fd);
                }
            }
            detail::run_child(rank, size, pair[1], child.log, body);
        }
        close(pair[1]);
    }
    const bool in_time = detail::serve(children, std::chrono::steady_clock::now() + limit);
    std::vector<RankResult> results;
    for (detail::Child& child : children) {
        if (!in_time) {
            kill(child.pid, SIGKILL);
        }
        int status = 0;
        waitpid(child.pid, &status, 0);
        RankResult result;
        result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        result.timed_out = !in_time && result.signal == SIGKILL;
        result.output = detail::contents(child.log);
        close(child.fd);
        close(child.log);
        results.push_back(std::move(result));
    }
    return results;
}

} // namespace ucg::test
