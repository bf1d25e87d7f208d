#include "shm/process.hpp"

#include <cerrno>
#include <csignal>
#include <mutex>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/descriptor.hpp"

namespace ucg::shm {

ProcessNumber own_process_number() {
    static std::mutex mutex;
    static ProcessNumber own;
    const std::lock_guard lock(mutex);
    if (const pid_t process = ::getpid(); own.process != process) { // A forked child is another.
        struct stat info = {};
        const bool known = ::stat("/proc/self/ns/pid", &info) == 0;
        own = {process, known ? static_cast<std::uint64_t>(info.st_ino) : 0};
    }
    return own;
}

bool has_ended(const ProcessNumber& peer) {
    const std::uint64_t numbers = own_process_number().numbers;
    return numbers != 0 && peer.numbers == numbers && has_ended(static_cast<pid_t>(peer.process));
}

/// One that its parent has not waited for yet has ended; one whose first thread has is alive.
bool has_ended(pid_t process) {
    constexpr long kPidfdOpen = 434; // SYS_pidfd_open, newer than some headers.
    const Descriptor file(static_cast<int>(::syscall(kPidfdOpen, process, 0U)));
    if (!file.valid()) { // There is none, or the kernel is older than Linux 5.3, or refuses this.
        return errno == ESRCH || (::kill(process, 0) != 0 && errno == ESRCH);
    }
    pollfd watched = {file.number(), POLLIN, 0};
    return ::poll(&watched, 1, 0) > 0 && (watched.revents & POLLIN) != 0;
}

} // namespace ucg::shm
