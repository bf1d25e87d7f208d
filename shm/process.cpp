#include "shm/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/descriptor.hpp"

namespace ucg::shm {
namespace {

/// What /proc tells of a process.
struct Told {
    std::int64_t number = 0; ///< In the PID namespace of that /proc.
    std::uint64_t started = 0;
};

/// The number's decimal digits at the start of the text; 0 if there are none.
template <typename Number>
Number number_at(std::string_view text) {
    Number number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// Returns what the file, /proc/.../stat, tells; zeros where it tells nothing.
Told told_at(const char* path) {
    std::array<char, 1024> line{}; // Longer than the part that is read.
    const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
    const ssize_t length =
        file.valid() ? ::read(file.number(), line.data(), line.size()) : ssize_t{0};
    const std::string_view text(line.data(),
                                static_cast<std::size_t>(std::max(length, ssize_t{0})));
    const std::size_t name_end = text.rfind(')'); // The name, in parentheses, may contain anything.
    if (name_end == std::string_view::npos) {
        return {};
    }
    constexpr int kFieldOfStart = 22;
    std::string_view rest = text.substr(name_end);
    for (int field = 2; field < kFieldOfStart; ++field) {
        rest.remove_prefix(std::min(rest.find(' '), rest.size() - 1) + 1);
    }
    return {number_at<std::int64_t>(text), number_at<std::uint64_t>(rest)};
}

Told told_of(pid_t process) {
    std::array<char, 32> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(process));
    return told_at(path.data());
}

/// Returns whether this process is in the host's time namespace. In another one /proc tells other
/// times.
bool has_clock_of_host() {
    constexpr ino_t kTimeOfHost = 0xeffffffa; // PROC_TIME_INIT_INO
    struct stat info = {};
    return ::stat("/proc/self/ns/time", &info) == 0 ? info.st_ino == kTimeOfHost : errno == ENOENT;
}

ProcessNumber number_of(pid_t process) {
    struct stat info = {};
    const bool known = ::stat("/proc/self/ns/pid", &info) == 0;
    const Told told = told_at("/proc/self/stat");
    const bool tells = told.number == process && has_clock_of_host(); // Else another /proc.
    return {process, known ? static_cast<std::uint64_t>(info.st_ino) : 0, tells ? told.started : 0};
}

/// Returns whether another process has got the number. A process that does not learn its own start
/// from /proc does not learn those of others.
bool started_otherwise(pid_t process, std::uint64_t started) {
    if (started == 0 || own_process_number().started == 0) {
        return false;
    }
    const Told told = told_of(process);
    return told.started != 0 && told.started != started;
}

} // namespace

ProcessNumber own_process_number() {
    static std::mutex mutex;
    static ProcessNumber own;
    const std::lock_guard lock(mutex);
    if (const pid_t process = ::getpid(); own.process != process) { // A forked child is another.
        own = number_of(process);
    }
    return own;
}

bool is_known_here(const ProcessNumber& peer) {
    const std::uint64_t numbers = own_process_number().numbers;
    return numbers != 0 && peer.numbers == numbers;
}

bool has_ended(const ProcessNumber& peer) {
    return is_known_here(peer) && has_ended(static_cast<pid_t>(peer.process), peer.started);
}

/// A process has ended even if its parent has not waited for it yet; one whose first thread has
/// ended while others run has not.
bool has_ended(pid_t process, std::uint64_t started) {
    constexpr long kPidfdOpen = 434; // SYS_pidfd_open, newer than some headers.
    if (process <= 0) {
        return false; // No process has such a number.
    }
    const Descriptor file(static_cast<int>(::syscall(kPidfdOpen, process, 0U)));
    if (!file.valid()) {
        // There is no such process, or the number is that of another process's thread by now
        // (EINVAL, and ENOENT from Linux 6.15 on). Else the kernel is older than Linux 5.3, or
        // refuses this.
        return errno == ESRCH || errno == EINVAL || errno == ENOENT ||
               (::kill(process, 0) != 0 && errno == ESRCH) || started_otherwise(process, started);
    }
    pollfd watched = {file.number(), POLLIN, 0};
    return (::poll(&watched, 1, 0) > 0 && (watched.revents & POLLIN) != 0) ||
           started_otherwise(process, started);
}

} // namespace ucg::shm
