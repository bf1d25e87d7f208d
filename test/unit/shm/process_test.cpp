// How a process finds out which other processes have ended.
#include <csignal>
#include <pthread.h>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "shm/peer_copy.hpp"
#include "shm/process.hpp"
#include "test/support/catch.hpp"

using namespace ucg::shm;

namespace {

/// Forks a child that does nothing until it is killed.
pid_t idle_child() {
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    return child;
}

/// Waits until the child has ended, and leaves it as a zombie.
bool await_end(pid_t child) {
    siginfo_t info = {};
    return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0;
}

} // namespace

TEST_CASE("shm/process: who has ended is known before its parent waits for it, and after",
          "[shm]") {
    CHECK_FALSE(has_ended(own_process_number()));
    const pid_t child = idle_child();
    REQUIRE(child > 0);
    const ProcessNumber number = {child, own_process_number().numbers};
    CHECK_FALSE(has_ended(number));
    ::kill(child, SIGKILL);
    REQUIRE(await_end(child));
    CHECK(has_ended(number));
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    CHECK(has_ended(number));
}

TEST_CASE("shm/process: a number of another PID namespace, or of none that is known, tells nothing",
          "[shm]") {
    constexpr std::int64_t kNobody = 0x7ffffffe; // No process has such a number.
    const std::uint64_t numbers = own_process_number().numbers;
    REQUIRE(numbers != 0);
    CHECK(has_ended(ProcessNumber{kNobody, numbers}));
    CHECK_FALSE(has_ended(ProcessNumber{kNobody, numbers + 1}));
    CHECK_FALSE(has_ended(ProcessNumber{kNobody, 0}));
}

TEST_CASE("shm/process: who has got the number of one that has ended is another", "[shm]") {
    ProcessNumber own = own_process_number();
    CHECK_FALSE(has_ended(own));
    CHECK(own.started == own_process_number().started);
    if (own.started == 0) {
        WARN("/proc does not tell when a process has started");
    } else {
        ++own.started;
        CHECK(has_ended(own));
    }
    own.started = 0; // Without a start time, the process of that number is taken for it.
    CHECK_FALSE(has_ended(own));
}

TEST_CASE("shm/process: the number of a process is no number of another's thread", "[shm]") {
    constexpr long kPidfdOpen = 434; // SYS_pidfd_open, newer than some headers.
    const int own = static_cast<int>(::syscall(kPidfdOpen, ::getpid(), 0U));
    if (own < 0) {
        WARN("this kernel opens no processes");
        return;
    }
    ::close(own);
    bool ended = false;
    std::thread([&ended] {
        ended = has_ended(static_cast<pid_t>(::syscall(SYS_gettid)), 0);
    }).join();
    CHECK(ended);
    CHECK_FALSE(has_ended(::getpid(), 0));
}

TEST_CASE("shm/process: a process whose first thread has ended is alive, and not to be read",
          "[shm]") {
    int ends[2] = {};
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const AccessTicket own = own_access_ticket();
        if (::write(ends[1], &own, sizeof own) != sizeof own) {
            ::_exit(1);
        }
        pthread_t other = {};
        ::pthread_create(
            &other, nullptr,
            [](void*) -> void* {
                for (;;) {
                    ::pause();
                }
            },
            nullptr);
        ::syscall(SYS_exit, 0); // Only this thread ends.
    }
    ::close(ends[1]); // If the child ends without a word, no process can write, and read() returns.
    AccessTicket ticket;
    REQUIRE(::read(ends[0], &ticket, sizeof ticket) == sizeof ticket);
    PeerAccess access(true, true);
    const PeerReach reach = {nullptr, ticket, &access};
    std::uint64_t word = 0;
    const auto read = [&] {
        return pull(reach, {ticket.address, 0}, reinterpret_cast<std::byte*>(&word), sizeof word);
    };
    for (int i = 0; i < 5000 && read().ok(); ++i) {
        ::usleep(1000);
    }
    CHECK_FALSE(has_ended(ticket));
    access.permit(true, true);
    const ucg::Status refused = read();
    CHECK(refused.code() == ucg::Code::unreachable);
    CHECK(is_refusal(refused));
    CHECK_FALSE(access.reads());
    ::kill(child, SIGKILL);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    CHECK(has_ended(ticket));
    ::close(ends[0]);
}
