// Prints the costs that a group of several programs has for the algorithms of nonblocking calls
// (ucg_group_explain). prices.py compares them with the output of ucg_plan for the same ranks.
//
// usage: prices RANKS COLLECTIVE BYTES
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "test/support/fork_ranks.hpp"
#include "test/support/forked_group.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::ForkedGroup;
using ucg::test::ForkedRank;
using ucg::test::detail::Child;

int number(const char* text) {
    return static_cast<int>(std::strtol(text, nullptr, 10));
}

ucg_coll_type_t type_of(const std::string& name) {
    return name == "bcast"       ? UCG_COLL_BCAST
           : name == "allreduce" ? UCG_COLL_ALLREDUCE
           : name == "allgather" ? UCG_COLL_ALLGATHER
                                 : UCG_COLL_ALLTOALL;
}

std::string explain(const ForkedRank& rank, const std::string& collective, std::uint64_t bytes) {
    ForkedGroup forked(rank);
    if (forked.group == nullptr) {
        return "no group";
    }
    ucg_coll_params_t params = {};
    params.type = type_of(collective);
    params.flags = UCG_COLL_FLAG_NONBLOCKING;
    params.element_bytes = 8;
    params.count = bytes / 8;
    if (params.type == UCG_COLL_ALLREDUCE) {
        params.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
        params.datatype = UCG_DT_INT64;
        params.op = UCG_OP_SUM;
    }
    const bool told =
        rank.rank() != 0 || ucg_group_explain(forked.group, &params, stdout) == UCG_OK;
    std::fflush(stdout);
    return told ? "" : "ucg_group_explain() failed";
}

/// Starts this program again, since a forked child has no malloc that peers reach.
void start(Child& child, int rank, char** argv) {
    int pair[2] = {-1, -1};
    UCG_ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    child.fd = pair[0];
    child.pid = fork();
    UCG_ASSERT(child.pid >= 0);
    if (child.pid == 0) {
        close(pair[0]);
        execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], std::to_string(rank).c_str(),
              std::to_string(pair[1]).c_str(), nullptr);
        std::_Exit(4);
    }
    close(pair[1]);
    fcntl(child.fd, F_SETFD, FD_CLOEXEC);
}

int start_all(char** argv) {
    std::vector<Child> children(std::strtoul(argv[1], nullptr, 10));
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
        start(children[rank], static_cast<int>(rank), argv);
    }
    bool ok = ucg::test::detail::serve(children,
                                       std::chrono::steady_clock::now() + std::chrono::seconds(60));
    for (const Child& child : children) {
        int status = 0;
        if (!ok) {
            kill(child.pid, SIGKILL);
        }
        waitpid(child.pid, &status, 0);
        ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return ok ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 4) {
        return start_all(argv);
    }
    if (argc != 6) {
        return 2;
    }
    const ForkedRank rank(number(argv[4]), number(argv[1]), number(argv[5]));
    const std::string wrong = explain(rank, argv[2], std::strtoull(argv[3], nullptr, 10));
    if (!wrong.empty()) {
        std::fprintf(stderr, "rank %s: %s\n", argv[4], wrong.c_str());
    }
    return wrong.empty() ? 0 : 1;
}
