// The short path makes no system call: ranks run collectives whose plans have run before, under a
// kernel that ends a process which makes one. They ask for the ends of nonblocking collectives, so
// no rank sleeps.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/support/forked_group.hpp"
#include "test/support/seccomp.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::fork_ranks;
using ucg::test::ForkedGroup;
using ucg::test::ForkedRank;
using ucg::test::RankResult;

constexpr std::chrono::seconds kLimit(60);
constexpr std::uint64_t kLengths[] = {1, 40, 1000, 8000}; // The numbers of elements of each block.
constexpr std::uint64_t kLongest = 8000;
constexpr ucg_coll_type_t kTypes[] = {UCG_COLL_BARRIER,   UCG_COLL_BCAST,     UCG_COLL_REDUCE,
                                      UCG_COLL_ALLREDUCE, UCG_COLL_ALLGATHER, UCG_COLL_ALLTOALL};

/// Reports which call it was. A signal handler may make all of these calls.
void tell(int /*signal*/, siginfo_t* info, void* /*context*/) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "system call %d\n", info->si_syscall);
    static_cast<void>(!write(STDERR_FILENO, text.data(), std::strlen(text.data())));
    _exit(4);
}

class Member {
  public:
    explicit Member(const ForkedRank& rank)
        : ranks_(static_cast<std::uint64_t>(rank.size())),
          // The kernel's copies would be system calls.
          group_(rank, {{"CMA", "n"}, {"PROFILE", "builtin"}}) {}
    ~Member() {
        for (ucg_coll_h call : calls_) {
            ucg_coll_free(call);
        }
    }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    /// Prepares all collectives of all lengths.
    bool prepare() {
        for (const ucg_coll_type_t type : kTypes) {
            for (const std::uint64_t length : kLengths) {
                ucg_coll_params_t params = {};
                params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
                params.type = type;
                params.count = length;
                params.element_bytes = sizeof(std::int64_t);
                params.datatype = UCG_DT_INT64;
                params.op = UCG_OP_SUM;
                params.send_buffer = send_.data();
                params.recv_buffer = receive_.data();
                ucg_coll_h call = nullptr;
                if (group_.group == nullptr ||
                    ucg_coll_init(group_.group, &params, &call) != UCG_OK) {
                    return false;
                }
                calls_.push_back(call);
            }
        }
        return true;
    }

    /// Runs each of them; false when one fails.
    bool run() {
        for (ucg_coll_h call : calls_) {
            ucg_status_t status = ucg_coll_start(call);
            while (status == UCG_INPROGRESS) {
                sched_yield(); // This call is the test's own.
                ucg_context_progress(group_.context);
                status = ucg_coll_test(call);
            }
            if (status != UCG_OK) {
                return false;
            }
        }
        return true;
    }

  private:
    std::uint64_t ranks_;
    ForkedGroup group_;
    std::vector<std::int64_t> send_ = std::vector<std::int64_t>(kLongest * ranks_, 1);
    std::vector<std::int64_t> receive_ = std::vector<std::int64_t>(kLongest * ranks_);
    std::vector<ucg_coll_h> calls_;
};

/// Ends the process without its exit handlers, which make system calls.
[[noreturn]] void end(const char* complaint) {
    static_cast<void>(!write(STDERR_FILENO, complaint, std::strlen(complaint)));
    _exit(*complaint == '\0' ? 0 : 1);
}

} // namespace

TEST_CASE("capi quiet: collectives whose plans have run make no system call", "[capi][shm]") {
    const int ranks = GENERATE(2, 3);
    CAPTURE(ranks);
    const auto results = fork_ranks(ranks, kLimit, [](const ForkedRank& rank) -> std::string {
        Member member(rank);
        bool good = member.prepare();
        // The messages go to new places of a ring until it has gone round once.
        for (int round = 0; round < 1000 && good; ++round) {
            good = member.run();
        }
        if (!good) {
            return "a collective fails before";
        }
        rank.barrier();
        struct sigaction action = {};
        action.sa_sigaction = tell;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSYS, &action, nullptr);
        if (!ucg::test::refuse_most_calls()) {
            return "no seccomp filter could be set";
        }
        for (int round = 0; round < 50; ++round) {
            if (!member.run()) {
                end("a collective fails");
            }
        }
        end("");
    });
    for (const RankResult& result : results) {
        INFO(result.output);
        CHECK(result.ok());
    }
}
