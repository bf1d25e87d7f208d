// A rank is killed: the other ranks of its host do not wait for it for ever, in whatever call they
// wait.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

#include "test/ranks/capi_add_up.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/support/forked_group.hpp"
#include "ucg/ucg.h"

namespace {

using ucg::test::fork_ranks;
using ucg::test::ForkedGroup;
using ucg::test::ForkedRank;
using ucg::test::RankResult;

constexpr std::chrono::seconds kLimit(60);

struct Wait {
    std::uint64_t count; ///< How many numbers are added up: few go by flag slots, many by messages.
    /// UCG_CMA decides whether a process is identified by a word in its memory or by its number.
    const char* cma;
    const char* sleep; ///< UCG_SLEEP_AFTER
    bool blocks;       ///< Whether the call blocks, or the rank asks for its end.
};

constexpr Wait kWaits[] = {{1, "y", "never", true},   {1, "n", "never", false},
                           {1, "n", "0", true},       {200'000, "y", "never", false},
                           {200'000, "y", "0", true}, {200'000, "n", "never", true}};

ucg_status_t add_up(const ForkedGroup& library, const Wait& wait) {
    return ucg::test::add_up(library.group, wait.count, wait.blocks);
}

} // namespace

TEST_CASE("capi: who waits for a rank that was killed gets an error", "[capi][shm][fault]") {
    const Wait wait = GENERATE(from_range(std::begin(kWaits), std::end(kWaits)));
    CAPTURE(wait.count, wait.cma, wait.sleep, wait.blocks);
    const std::vector<RankResult> results =
        fork_ranks(3, kLimit, [&wait](const ForkedRank& rank) -> std::string {
            ForkedGroup library(
                rank, {{"CMA", wait.cma}, {"SLEEP_AFTER", wait.sleep}, {"PROFILE", "builtin"}});
            if (library.group == nullptr || add_up(library, wait) != UCG_OK) {
                return "nothing works before";
            }
            rank.barrier();
            if (rank.rank() == 1) {
                ::raise(SIGKILL);
            }
            // A group that lacks a rank is not destroyed.
            std::_Exit(add_up(library, wait) == UCG_ERR_IO_ERROR ? 0 : 1);
        });
    CHECK(results[1].signal == SIGKILL);
    for (const std::size_t rank : {0U, 2U}) {
        INFO(results[rank].output);
        CHECK(results[rank].ok());
    }
}

TEST_CASE("capi: who has shared or sent what it owed may end before others have looked",
          "[capi][shm]") {
    const std::uint64_t count = GENERATE(1, 3000);
    const std::vector<RankResult> results =
        fork_ranks(2, kLimit, [count](const ForkedRank& rank) -> std::string {
            ForkedGroup library(rank, {{"PROFILE", "builtin"}});
            if (library.group == nullptr) {
                return "no group";
            }
            std::vector<std::byte> data(
                count, std::byte{rank.rank() == 0 ? std::uint8_t{7} : std::uint8_t{0}});
            ucg_coll_params_t params = {};
            params.type = UCG_COLL_BCAST;
            params.count = count;
            params.element_bytes = 1;
            params.send_buffer = data.data();
            params.recv_buffer = data.data();
            if (rank.rank() == 1) {
                rank.barrier();
                ::usleep(100000); // By then the root has ended; the test passes either way.
            }
            const ucg_status_t status = ucg_coll_run(library.group, &params);
            if (rank.rank() == 0) {
                rank.barrier();
                std::_Exit(status == UCG_OK ? 0 : 1);
            }
            const bool right = status == UCG_OK && data.back() == std::byte{7};
            std::_Exit(right ? 0 : 1);
        });
    for (const RankResult& result : results) {
        INFO(result.output);
        CHECK(result.ok());
    }
}
