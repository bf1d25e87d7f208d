#include "perf/perftest/launch/runtime_local.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf/perftest/launch/runtime_star.hpp"
#include "perf/perftest/timer.hpp"
#include "ucg_coll/base/printable.hpp"

namespace ucg::perftest {

namespace {

using Clock = std::chrono::steady_clock;

/// After one process has failed, the others have this time to find it out, too.
constexpr std::chrono::milliseconds kGrace{1000};
constexpr int kInterrupted = 128; ///< Plus a signal's number, as shells report it.

Status system_failure(std::string_view what) {
    return failure(Code::io_error, "{}: {}", what, std::strerror(errno));
}

/// The reason why a process failed, for its supervisor.
struct Note {
    Code code = Code::ok;
    std::array<char, 1020> text = {};

    void write(Code why, std::string_view message) {
        const std::size_t length = std::min(message.size(), text.size() - 1);
        std::memcpy(text.data(), message.data(), length);
        text[length] = '\0';
        code = why;
    }
};

/// A note for each rank, in memory that parent and children share.
class Notes {
  public:
    static Result<Notes> create(Rank size) {
        const std::size_t bytes = sizeof(Note) * static_cast<std::size_t>(size);
        void* memory =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return system_failure("cannot get shared memory for the processes' messages");
        }
        return Notes(static_cast<Note*>(memory), bytes);
    }
    ~Notes() {
        if (notes_ != nullptr) {
            ::munmap(notes_, bytes_);
        }
    }
    Notes(Notes&& other) noexcept
        : notes_(std::exchange(other.notes_, nullptr)), bytes_(other.bytes_) {}
    Notes(const Notes&) = delete;
    Notes& operator=(const Notes&) = delete;
    Notes& operator=(Notes&&) = delete;

    Note& operator[](Rank rank) { return notes_[rank]; }

  private:
    Notes(Note* notes, std::size_t bytes) : notes_(notes), bytes_(bytes) {}

    Note* notes_;
    std::size_t bytes_;
};

/// Blocks the signals that the supervisor waits for, until the end of this object.
class HeldSignals {
  public:
    HeldSignals() {
        sigemptyset(&waited_);
        for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
            sigaddset(&waited_, signal);
        }
        ::sigprocmask(SIG_BLOCK, &waited_, &before_);
    }
    ~HeldSignals() { release(); }
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

    void release() const { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

    /// Returns the next signal, or 0 when none came in time.
    int next(std::chrono::milliseconds timeout) const {
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
        const timespec limit = {
            .tv_sec = static_cast<time_t>(seconds.count()),
            .tv_nsec = std::chrono::nanoseconds(timeout - seconds).count(),
        };
        return std::max(0, ::sigtimedwait(&waited_, nullptr, &limit));
    }

  private:
    sigset_t waited_{};
    sigset_t before_{};
};

/// A supervised run. Rank 0 is forked last and inherits the inner ends of all connections.
class Crew {
  public:
    Crew(Rank size, Notes& notes)
        : notes_(notes), pids_(static_cast<std::size_t>(size), 0),
          lines_(static_cast<std::size_t>(size), -1) {}
    ~Crew() {
        close_lines();
        end_all();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    Status start(const std::function<Status(Runtime&)>& body) {
        parent_ = ::getpid();
        for (Rank rank = size() - 1; rank >= 0; --rank) {
            if (Status status = start(rank, body); !status.ok()) {
                return status;
            }
        }
        close_lines();
        return {};
    }

    int supervise();

  private:
    Rank size() const { return static_cast<Rank>(pids_.size()); }
    Status start(Rank rank, const std::function<Status(Runtime&)>& body);
    [[noreturn]] void be(Rank rank, std::vector<int> lines,
                         const std::function<Status(Runtime&)>& body);
    void close_lines();
    void end_all();
    bool reap();
    void note_end(Rank rank, int outcome);
    void report() const;

    Notes& notes_;
    HeldSignals signals_;
    pid_t parent_ = 0;
    std::vector<pid_t> pids_; ///< By rank; 0: not started, or ended.
    std::vector<int> lines_;  ///< Those of rank 0, by rank.
    Rank first_failed_ = kNoRank;
    bool killed_ = false; ///< Whether a signal ended that rank.
};

Status Crew::start(Rank rank, const std::function<Status(Runtime&)>& body) {
    std::array<int, 2> pair = {-1, -1};
    if (rank > 0 && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
        return system_failure(fmt::format("cannot connect process {} of {}", rank, size()));
    }
    const pid_t child = ::fork();
    if (child == 0) {
        if (rank == 0) {
            be(rank, std::exchange(lines_, {}), body);
        }
        ::close(pair[0]);
        close_lines();
        be(rank, {pair[1]}, body);
    }
    const int error = errno;
    if (rank > 0) {
        ::close(pair[1]);
        lines_[static_cast<std::size_t>(rank)] = pair[0];
    }
    if (child < 0) {
        errno = error;
        return system_failure(fmt::format("cannot start process {} of {}", rank, size()));
    }
    pids_[static_cast<std::size_t>(rank)] = child;
    return {};
}

void Crew::be(Rank rank, std::vector<int> lines, const std::function<Status(Runtime&)>& body) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent_) {
        ::_exit(1); // The parent died before.
    }
    signals_.release();
    Status status;
    try {
        StarRuntime runtime(rank, size(), std::move(lines));
        status = body(runtime);
    } catch (const std::exception& error) { // Out of memory.
        status = Status(Code::out_of_memory, error.what());
    }
    if (!status.ok()) {
        notes_[rank].write(status.code(), status.message());
    }
    std::fflush(nullptr);
    ::_exit(status.ok() ? 0 : 1);
}

void Crew::close_lines() {
    for (int& line : lines_) {
        if (line >= 0) {
            ::close(std::exchange(line, -1));
        }
    }
}

void Crew::end_all() {
    for (const pid_t pid : pids_) {
        if (pid > 0) {
            ::kill(pid, SIGKILL);
        }
    }
    for (pid_t& pid : pids_) {
        if (pid > 0) {
            ::waitpid(std::exchange(pid, 0), nullptr, 0);
        }
    }
}

/// Records the end of a process.
void Crew::note_end(Rank rank, int outcome) {
    const bool killed = WIFSIGNALED(outcome);
    if (!killed && WEXITSTATUS(outcome) == 0) {
        return;
    }
    Note& note = notes_[rank];
    if (killed) {
        note.write(Code::io_error, fmt::format("killed by signal {} ({})", WTERMSIG(outcome),
                                               ::strsignal(WTERMSIG(outcome))));
    } else if (note.code == Code::ok) {
        note.write(Code::io_error, fmt::format("ended with status {}", WEXITSTATUS(outcome)));
    }
    // The loss of a peer is a consequence; the peer's own note says why it died.
    const bool consequence = note.code == Code::unreachable;
    if (first_failed_ == kNoRank ||
        (notes_[first_failed_].code == Code::unreachable && !consequence)) {
        first_failed_ = rank;
        killed_ = killed;
    }
}

/// Records the processes that have ended. Returns false when none is left.
bool Crew::reap() {
    bool any_left = false;
    for (Rank rank = 0; rank < size(); ++rank) {
        pid_t& pid = pids_[static_cast<std::size_t>(rank)];
        int outcome = 0;
        if (pid > 0 && ::waitpid(pid, &outcome, WNOHANG) == pid) {
            pid = 0;
            note_end(rank, outcome);
        }
        any_left = any_left || pid > 0;
    }
    return any_left;
}

int Crew::supervise() {
    Clock::time_point end = Clock::time_point::max();
    while (reap()) {
        if (first_failed_ != kNoRank && end == Clock::time_point::max()) {
            end = Clock::now() + kGrace;
        }
        if (killed_ || Clock::now() >= end) {
            break;
        }
        const int signal = signals_.next(std::chrono::milliseconds(100));
        if (signal != 0 && signal != SIGCHLD) {
            end_all();
            std::fprintf(stderr, "ucg_perftest: ended by signal %d (%s)\n", signal,
                         ::strsignal(signal));
            return kInterrupted + signal;
        }
    }
    end_all();
    if (first_failed_ == kNoRank) {
        return 0;
    }
    report();
    return 1;
}

/// Prints the first failure, and what other ranks say unless it is the same or a consequence.
void Crew::report() const {
    std::vector<std::string_view> said;
    const auto text_of = [this](Rank rank) { return std::string_view(notes_[rank].text.data()); };
    const auto say = [&](Rank rank) {
        const std::string_view text = text_of(rank);
        if (notes_[rank].code == Code::ok || std::ranges::find(said, text) != said.end()) {
            return;
        }
        said.push_back(text);
        bool by_all = true;
        for (Rank other = 0; other < size(); ++other) {
            by_all = by_all && text_of(other) == text;
        }
        const std::string line = printable(text, LineBreaks::escape);
        std::fprintf(stderr, "ucg_perftest: %s%s\n",
                     by_all ? "" : fmt::format("rank {}: ", rank).c_str(), line.c_str());
    };
    say(first_failed_);
    for (Rank rank = 0; rank < size() && !killed_; ++rank) {
        if (notes_[rank].code != Code::unreachable) {
            say(rank);
        }
    }
}

/// Raises the limit of open files: each process but rank 0 needs two in the launcher.
void allow_files(Rank size) {
    rlimit limit{};
    const rlim_t wanted = static_cast<rlim_t>(size) + 64;
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur = std::min(limit.rlim_max, wanted);
        ::setrlimit(RLIMIT_NOFILE, &limit); // If this is too few, socketpair() fails.
    }
}

} // namespace

Result<int> run_local(Rank size, const std::function<Status(Runtime&)>& body) {
    UCG_ASSERT(size >= 1 && size <= kLocalRanksMax);
    Result<Notes> notes = Notes::create(size);
    if (!notes.ok()) {
        return notes.status();
    }
    allow_files(size);
    ticks_per_second(); // Measured once for all ranks.
    std::fflush(nullptr);
    Crew crew(size, *notes);
    if (Status status = crew.start(body); !status.ok()) {
        return status;
    }
    return crew.supervise();
}

} // namespace ucg::perftest
