// Ranks of a host that help one another: a rank that began a nonblocking collective and then makes
// no further call does not keep the others from their results, and finds its own result there.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sched.h>
#include <string>
#include <sys/wait.h>
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
using ucg::test::PartGroup;
using ucg::test::RankResult;

/// The number of elements of each block.
constexpr std::uint64_t kLength = 40'000;

constexpr std::chrono::seconds kLimit(60);

constexpr ucg_coll_type_t kTypes[] = {UCG_COLL_BCAST, UCG_COLL_REDUCE, UCG_COLL_ALLREDUCE,
                                      UCG_COLL_ALLGATHER, UCG_COLL_ALLTOALL};

/// One collective of one rank: number i of rank r is r + 3 i, also in blocks for other ranks.
struct Call {
    ucg_coll_type_t type;
    std::uint64_t rank;
    std::uint64_t size;
    bool in_place;
    std::vector<std::uint64_t> send = {};
    std::vector<std::uint64_t> recv = {};
    ucg_coll_h coll = nullptr;

    bool reduces() const { return type == UCG_COLL_REDUCE || type == UCG_COLL_ALLREDUCE; }
    std::uint64_t root() const { return size - 1; }

    std::uint64_t blocks() const {
        return type == UCG_COLL_ALLGATHER || type == UCG_COLL_ALLTOALL ? size : 1;
    }

    void fill() {
        send.resize(kLength * (type == UCG_COLL_ALLTOALL ? size : 1));
        for (std::uint64_t i = 0; i < send.size(); ++i) {
            send[i] = rank + 3 * i;
        }
        recv.assign(kLength * blocks(), 0);
        if (in_place) {
            const std::uint64_t at = type == UCG_COLL_ALLGATHER ? rank * kLength : 0;
            std::copy(send.begin(), send.end(), recv.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }

    ucg_coll_params_t params() {
        ucg_coll_params_t params = {};
        params.type = type;
        params.count = kLength;
        params.element_bytes = sizeof(std::uint64_t);
        params.root = static_cast<std::uint32_t>(root());
        params.flags = UCG_COLL_FLAG_NONBLOCKING;
        if (in_place) {
            params.flags |= UCG_COLL_FLAG_IN_PLACE;
        }
        if (reduces()) {
            params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
            params.datatype = UCG_DT_UINT64;
            params.op = UCG_OP_SUM;
        }
        params.send_buffer = send.data();
        params.recv_buffer = type == UCG_COLL_BCAST && rank == root() ? send.data() : recv.data();
        return params;
    }

    std::uint64_t expected(std::uint64_t i) const {
        switch (type) {
        case UCG_COLL_BCAST: return root() + 3 * i;
        case UCG_COLL_ALLGATHER: return i / kLength + 3 * (i % kLength);
        case UCG_COLL_ALLTOALL: return i / kLength + 3 * (rank * kLength + i % kLength);
        default: return size * (size - 1) / 2 + size * 3 * i;
        }
    }

    bool is_right() const {
        if ((type == UCG_COLL_BCAST && rank == root()) ||
            (type == UCG_COLL_REDUCE && rank != root())) {
            return true;
        }
        for (std::uint64_t i = 0; i < recv.size(); ++i) {
            if (recv[i] != expected(i)) {
                return false;
            }
        }
        return true;
    }
};

bool may_be_in_place(ucg_coll_type_t type) {
    return type == UCG_COLL_ALLREDUCE || type == UCG_COLL_ALLGATHER;
}

/// Each rank in turn makes no call from when all have begun until all others have ended.
std::string be_absent_in_turn(const ForkedRank& rank, ForkedGroup& library, ucg_coll_type_t type,
                              bool in_place) {
    Call call{type, static_cast<std::uint64_t>(rank.rank()),
              static_cast<std::uint64_t>(rank.size()), in_place};
    call.fill();
    const ucg_coll_params_t params = call.params();
    if (ucg_coll_init(library.group, &params, &call.coll) != UCG_OK) {
        return "no collective";
    }
    std::string complaint;
    for (int absent = 0; absent < rank.size() && complaint.empty(); ++absent) {
        call.fill();
        if (ucg_coll_start(call.coll) < 0) {
            return "no start";
        }
        rank.barrier(); // All ranks have begun.
        if (rank.rank() != absent && ucg_coll_wait(call.coll) != UCG_OK) {
            return "no end";
        }
        rank.barrier();         // All other ranks have their results.
        if (!call.is_right()) { // The absent rank's result is there, too.
            complaint = fmt::format("{}: a wrong result while rank {} is elsewhere",
                                    ucg_coll_type_string(type), absent);
        }
        if (rank.rank() == absent && ucg_coll_test(call.coll) != UCG_OK) {
            complaint = "the first look of a rank that was elsewhere does not find the end";
        }
        rank.barrier();
    }
    ucg_coll_free(call.coll);
    return complaint;
}

/// Starts more collectives than may be outstanding at once; they end in any order.
std::string have_many(const ForkedRank& rank, ForkedGroup& library) {
    std::vector<Call> calls;
    for (int i = 0; i < 100; ++i) {
        calls.push_back({kTypes[i % std::size(kTypes)], static_cast<std::uint64_t>(rank.rank()),
                         static_cast<std::uint64_t>(rank.size()), false});
        calls.back().fill();
    }
    for (Call& call : calls) {
        const ucg_coll_params_t params = call.params();
        if (ucg_coll_init(library.group, &params, &call.coll) != UCG_OK ||
            ucg_coll_start(call.coll) < 0) {
            return "no start";
        }
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
        Call& call = calls[i % 2 == 0 ? i / 2 : calls.size() - 1 - i / 2];
        if (ucg_coll_wait(call.coll) != UCG_OK || !call.is_right()) {
            return "no end, or a wrong result";
        }
        ucg_coll_free(call.coll);
    }
    return "";
}

bool told_of_other_choice = false;

/// Plans an allreduce of so many ranks by an algorithm that the user has chosen. Does the library
/// of any rank log that it cannot serve?
bool is_planned_otherwise(const ForkedRank& rank, ucg_group_h group, int size) {
    const auto listen = [](const char* line, void* /*unused*/) {
        told_of_other_choice =
            told_of_other_choice || std::strstr(line, "the planner chooses") != nullptr;
    };
    ucg_log_set_handler(listen, nullptr, nullptr);
    Call call{UCG_COLL_ALLREDUCE, static_cast<std::uint64_t>(rank.rank()),
              static_cast<std::uint64_t>(size), false};
    call.fill();
    const ucg_coll_params_t params = call.params();
    if (ucg_coll_init(group, &params, &call.coll) == UCG_OK) {
        ucg_coll_free(call.coll);
    }
    const std::vector<std::string> all = rank.exchange(told_of_other_choice ? "told" : "");
    return std::count(all.begin(), all.end(), "told") > 0;
}

/// Runs `body` in a child that is the first process of a PID namespace. Returns 77 where the system
/// allows none.
template <typename Body>
int in_pid_namespace(Body body) {
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
        return 77;
    }
    const pid_t child = ::fork();
    if (child == 0) {
        const std::string complaint = body();
        static_cast<void>(!::write(STDERR_FILENO, complaint.data(), complaint.size()));
        std::_Exit(complaint.empty() ? 0 : 1);
    }
    int status = 0;
    return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : 1;
}

void check(const std::vector<RankResult>& results) {
    for (const RankResult& result : results) {
        INFO(result.output);
        CHECK(result.ok());
    }
}

} // namespace

TEST_CASE("capi: a rank that computes finds its part done", "[capi][help]") {
    const int ranks = GENERATE(2, 3, 5);
    check(fork_ranks(ranks, kLimit, [](const ForkedRank& rank) -> std::string {
        ForkedGroup library(rank, {{"HELP_PEERS", "always"}});
        if (library.group == nullptr) {
            return "no group";
        }
        std::string complaint;
        for (const ucg_coll_type_t type : kTypes) {
            for (const bool in_place : {false, true}) {
                if (complaint.empty() && (!in_place || may_be_in_place(type))) {
                    complaint = be_absent_in_turn(rank, library, type, in_place);
                }
            }
        }
        return complaint;
    }));
}

TEST_CASE("capi: many outstanding collectives of ranks that help one another", "[capi][help]") {
    const int ranks = GENERATE(2, 4);
    check(fork_ranks(ranks, kLimit, [](const ForkedRank& rank) -> std::string {
        ForkedGroup library(rank, {{"HELP_PEERS", "always"}});
        return library.group == nullptr ? "no group" : have_many(rank, library);
    }));
}

TEST_CASE("capi: a rank that is killed does not keep others waiting for what it has taken",
          "[capi][help]") {
    const std::vector<RankResult> results =
        fork_ranks(2, kLimit, [](const ForkedRank& rank) -> std::string {
            ForkedGroup library(rank, {{"HELP_PEERS", "always"}});
            Call call{UCG_COLL_ALLREDUCE, static_cast<std::uint64_t>(rank.rank()), 2, false};
            call.fill();
            const ucg_coll_params_t params = call.params();
            if (ucg_coll_init(library.group, &params, &call.coll) != UCG_OK ||
                ucg_coll_start(call.coll) < 0) {
                return "no start";
            }
            rank.barrier();
            if (rank.rank() == 0) {
                ::kill(::getpid(), SIGKILL);
            }
            rank.barrier(); // Rank 0 is dead by now.
            const ucg_status_t end = ucg_coll_wait(call.coll);
            std::_Exit(end == UCG_ERR_IO_ERROR ? 0
                                               : 1); // A group without a rank is not taken down.
        });
    CHECK(results[0].signal == SIGKILL);
    INFO(results[1].output);
    CHECK(results[1].ok());
}

TEST_CASE("capi: where one rank may not read the others nobody helps, in the first group either",
          "[capi][help]") {
    check(fork_ranks(3, kLimit, [](const ForkedRank& rank) -> std::string {
        if (rank.rank() == 1 && !ucg::test::refuse_process_vm_readv()) {
            return "no seccomp filter could be set";
        }
        ForkedGroup library(rank, {{"ALLREDUCE", "helped"}, {"LOG_LEVEL", "warn"}});
        if (library.group == nullptr) {
            return "no group";
        }
        return is_planned_otherwise(rank, library.group, 3) ? "" : "they would help";
    }));
}

TEST_CASE("capi: ranks of a small group help one another, however many ranks are on the host",
          "[capi][help]") {
    constexpr int kRanks = 66;
    if (!ucg::test::can_fork(kRanks)) {
        WARN("this system allows no " << kRanks << " processes");
        return;
    }
    check(fork_ranks(kRanks, kLimit, [](const ForkedRank& rank) -> std::string {
        const ForkedGroup library(rank, {{"ALLREDUCE", "helped"}, {"LOG_LEVEL", "warn"}});
        if (library.group == nullptr) {
            return "no group";
        }
        const PartGroup pair(rank, library.context, rank.rank() / 2 * 2, 2);
        return pair.group == nullptr                       ? "no small group"
               : is_planned_otherwise(rank, pair.group, 2) ? "they would not help"
                                                           : "";
    }));
}

TEST_CASE("capi: ranks help one another though one of them may not read some other rank",
          "[capi][help]") {
    check(fork_ranks(4, kLimit, [](const ForkedRank& rank) -> std::string {
        const std::string other = rank.exchange(std::to_string(::getpid()))[2];
        if (rank.rank() == 0 &&
            !ucg::test::refuse_process_vm_readv_of(static_cast<std::uint32_t>(std::stoul(other)))) {
            return "no seccomp filter could be set";
        }
        const ForkedGroup library(rank, {{"ALLREDUCE", "helped"}, {"LOG_LEVEL", "warn"}});
        if (library.group == nullptr) {
            return "no group";
        }
        const PartGroup pair(rank, library.context, rank.rank() / 2 * 2, 2);
        if (pair.group == nullptr) {
            return "no small group";
        }
        if (is_planned_otherwise(rank, pair.group, 2)) {
            return "they would not help in the small group";
        }
        return is_planned_otherwise(rank, library.group, 4) ? "" : "they would help in the large";
    }));
}

TEST_CASE("capi: ranks in PID namespaces of their own take nobody for dead", "[capi][help]") {
    const std::vector<RankResult> results =
        fork_ranks(2, kLimit, [](const ForkedRank& rank) -> std::string {
            const int end = in_pid_namespace([&rank]() -> std::string {
                ForkedGroup library(rank, {{"HELP_PEERS", "always"}});
                return library.group == nullptr ? "no group" : have_many(rank, library);
            });
            return end == 0 ? "" : end == 77 ? "no namespace" : "failed";
        });
    for (const RankResult& result : results) {
        INFO(result.output);
        CHECK((result.ok() || result.output.find("no namespace") != std::string::npos));
    }
}
