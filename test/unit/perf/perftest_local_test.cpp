#include <cerrno>
#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf/perftest/launch/runtime_local.hpp"
#include "test/support/catch.hpp"

using namespace ucg;
using namespace ucg::perftest;

namespace {

bool no_child_left() {
    return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

std::string text_of(Rank rank, int turn) {
    return std::string(static_cast<std::size_t>(rank * 1000 * turn), static_cast<char>('a' + turn));
}

/// Waits in vain, as a rank that spins in a collective does.
[[noreturn]] void spin() {
    for (;;) {
        ::usleep(1000);
    }
}

} // namespace

TEST_CASE("Processes of the local launcher exchange texts of different lengths") {
    for (const Rank size : {1, 2, 3, 16}) {
        const Result<int> status = run_local(size, [size](Runtime& runtime) -> Status {
            for (int turn = 0; turn < 3; ++turn) {
                unsigned progressed = 0;
                const std::function<void()> progress = [&progressed] { ++progressed; };
                const Result<std::vector<std::string>> all =
                    runtime.exchange(text_of(runtime.rank(), turn), progress);
                if (!all.ok()) {
                    return all.status();
                }
                for (Rank rank = 0; rank < size; ++rank) {
                    if (all->size() != static_cast<std::size_t>(size) ||
                        (*all)[static_cast<std::size_t>(rank)] != text_of(rank, turn)) {
                        return failure(Code::disagreement, "rank {}'s text is wrong", rank);
                    }
                }
            }
            return runtime.barrier();
        });
        REQUIRE(status.ok());
        CHECK(*status == 0);
        CHECK(no_child_left());
    }
}

TEST_CASE("A process that fails ends the run") {
    const auto fail_one = [](Runtime& runtime) -> Status {
        if (runtime.rank() == 1) {
            return failure(Code::unsupported, "rank 1 of the test fails");
        }
        return runtime.barrier();
    };
    const Result<int> status = run_local(4, fail_one);
    REQUIRE(status.ok());
    CHECK(*status == 1);
    CHECK(no_child_left());
}

TEST_CASE("A process that is killed ends the run, though the others wait elsewhere") {
    for (const Rank victim : {0, 2}) {
        const Result<int> status = run_local(3, [victim](Runtime& runtime) -> Status {
            if (runtime.rank() == victim) {
                ::raise(SIGKILL);
            }
            spin();
        });
        REQUIRE(status.ok());
        CHECK(*status == 1);
        CHECK(no_child_left());
    }
}

TEST_CASE("A process that throws or ends by itself is told as a failure") {
    const Result<int> thrown = run_local(2, [](Runtime& runtime) -> Status {
        return runtime.rank() == 0 ? throw std::bad_alloc() : runtime.barrier();
    });
    REQUIRE(thrown.ok());
    CHECK(*thrown == 1);
    const Result<int> ended = run_local(2, [](Runtime& runtime) -> Status {
        if (runtime.rank() == 1) {
            ::_exit(5);
        }
        return runtime.barrier();
    });
    REQUIRE(ended.ok());
    CHECK(*ended == 1);
}

TEST_CASE("A lost process is named in each further exchange") {
    void* shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    auto* named = static_cast<volatile int*>(shared);
    const Result<int> status = run_local(4, [named](Runtime& runtime) -> Status {
        if (runtime.rank() == 2) {
            return {}; // It ends without a word, and without a failure of its own.
        }
        for (int turn = 0; turn < 2; ++turn) {
            const Status barrier = runtime.barrier();
            const bool names = barrier.code() == Code::unreachable &&
                               barrier.message().find("rank 2 ") != std::string_view::npos;
            named[2 * runtime.rank() + turn] = names ? 1 : 0;
        }
        return {};
    });
    REQUIRE(status.ok());
    for (const int rank : {0, 1, 3}) {
        CHECK(named[2 * rank] == 1);
        CHECK(named[2 * rank + 1] == 1);
    }
    ::munmap(shared, 4096);
}

TEST_CASE("A request to end reaches all processes") {
    const pid_t launcher = ::fork();
    REQUIRE(launcher >= 0);
    if (launcher == 0) {
        const pid_t parent = ::getpid();
        const Result<int> status = run_local(3, [parent](Runtime& runtime) -> Status {
            if (runtime.barrier().ok() && runtime.rank() == 0) {
                ::kill(parent, SIGINT);
            }
            spin();
        });
        ::_exit(status.ok() && no_child_left() ? *status : 99);
    }
    int outcome = 0;
    REQUIRE(::waitpid(launcher, &outcome, 0) == launcher);
    REQUIRE(WIFEXITED(outcome));
    CHECK(WEXITSTATUS(outcome) == 128 + SIGINT);
}
