// Which processes have ended.
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/process.hpp"
#include "test/support/catch.hpp"

using namespace ucg::shm;

namespace {

/// A child that does nothing until it is killed.
pid_t idle_child() {
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    return child;
}

/// Waits until its end can be waited for, and leaves it so.
bool await_end(pid_t child) {
    siginfo_t info = {};
    return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0;
}

} // namespace

TEST_CASE("shm/process: who has ended is known before its parent waits for it, "
          "and after",
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

TEST_CASE("shm/process: a number of another PID namespace, or of none that is "
          "known, tells nothing",
          "[shm]") {
    constexpr std::int64_t kNobody = 0x7ffffffe; // Beyond any number.
    const std::uint64_t numbers = own_process_number().numbers;
    REQUIRE(numbers != 0);
    CHECK(has_ended(ProcessNumber{kNobody, numbers}));
    CHECK_FALSE(has_ended(ProcessNumber{kNobody, numbers + 1}));
    CHECK_FALSE(has_ended(ProcessNumber{kNobody, 0}));
}
