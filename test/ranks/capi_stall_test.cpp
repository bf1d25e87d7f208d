// A rank stays away from a collective: who waits for it says so.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <regex>
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
constexpr ucg::Rank kLate = 1;

struct Wait {
    std::uint64_t count; ///< How many numbers are added up: few go by flag slots, many by messages.
    const char* sleep;   ///< UCG_SLEEP_AFTER
    bool blocks;         ///< Whether the call blocks, or the rank asks for its end,
    std::chrono::milliseconds pause = {}; ///< and how long it does something else before it asks.
    bool host_busy = false; ///< The host always finds something to do, which takes a while.
};

constexpr Wait kWaits[] = {{1, "never", true},
                           {1, "never", false},
                           {1, "0", true},
                           {200'000, "0", true},
                           {200'000, "never", false},
                           {1, "never", false, std::chrono::milliseconds(20)},
                           {1, "never", false, std::chrono::milliseconds(700)},
                           {1, "never", true, {}, true}};

ucg_status_t add_up(const ForkedGroup& library, const Wait& wait) {
    return ucg::test::add_up(library.group, wait.count, wait.blocks, wait.pause);
}

ucg_context_params_t context_params(const Wait& wait) {
    ucg_context_params_t params = {};
    if (wait.host_busy) {
        params.field_mask = UCG_CONTEXT_PARAM_FIELD_PROGRESS;
        params.progress = [](void* /*argument*/, unsigned /*flags*/) -> unsigned {
            ::usleep(2000);
            return 1;
        };
    }
    return params;
}

/// The file in which all ranks write what they have to say.
class Said {
  public:
    Said() : file_(std::tmpfile()) {}
    ~Said() { std::fclose(file_); }
    Said(const Said&) = delete;
    Said& operator=(const Said&) = delete;

    /// Has this process write there instead of to standard error.
    void listen() const { ::dup2(::fileno(file_), STDERR_FILENO); }
    std::string text() const {
        std::string text;
        std::array<char, 4096> part;
        for (ssize_t n = 1; n > 0; text.append(part.data(), static_cast<std::size_t>(n))) {
            n = ::pread(::fileno(file_), part.data(), part.size(), static_cast<off_t>(text.size()));
            n = n < 0 ? 0 : n;
        }
        return text;
    }

  private:
    std::FILE* file_;
};

std::size_t count_of(const std::string& part, const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++count;
    }
    return count;
}

/// Does the text name the late rank, which is this process, as the one that is awaited and absent?
/// A rank that gets no processor for so long is both, too. Of messages, the rank that says so may
/// wait for one that waits for the late one.
bool names_late_rank(const std::string& text, const Wait& wait) {
    const std::string calls = "; 1 so far, the last one allreduce\\)";
    const std::string late = "1 \\(process " + std::to_string(::getpid()) + calls;
    const std::string other = "[02] \\(process [0-9]+" + calls;
    const std::string absent = " Of this host, it was not called by rank";
    const bool messages = wait.count > 1;
    const std::string one = (messages ? "s? [0-2 and]+" : " 1") + ("\\." + absent) + " " + late;
    const std::string more = (messages ? "s? [0-2 and]+" : "s (0 and 1|1 and 2)") +
                             ("\\." + absent) + "s (" + late + " and " + other + "|" + other +
                             " and " + late + ")";
    return std::regex_search(text, std::regex("waits for rank(" + one + "|" + more + ")\\."));
}

} // namespace

TEST_CASE("capi: who waits for a rank that stays away says so once", "[capi][shm]") {
    const Wait wait = GENERATE(from_range(std::begin(kWaits), std::end(kWaits)));
    CAPTURE(wait.count, wait.sleep, wait.blocks, wait.pause.count(), wait.host_busy);
    const Said said;
    const std::vector<RankResult> results =
        fork_ranks(3, kLimit, [&](const ForkedRank& rank) -> std::string {
            const ucg_context_params_t params = context_params(wait);
            ForkedGroup library(rank,
                                {{"STALL_AFTER", "1"},
                                 {"SLEEP_AFTER", wait.sleep},
                                 {"LOG_LEVEL", "warn"},
                                 {"PROFILE", "builtin"}},
                                &params);
            if (library.group == nullptr || add_up(library, wait) != UCG_OK) {
                return "nothing works before";
            }
            rank.barrier();
            said.listen();
            while (rank.rank() == kLate && said.text().find('\n') == std::string::npos) {
                ::usleep(10'000);
            }
            const ucg_status_t status = add_up(library, wait);
            rank.barrier(); // All have said what they say.
            const std::string expected =
                ": allreduce of " + std::to_string(8 * wait.count) + " bytes (";
            const std::string text = said.text();
            const bool right = count_of("has not gone on for 1 s: it waits for rank", text) == 1 &&
                               count_of(expected, text) == 1 &&
                               (rank.rank() != kLate || names_late_rank(text, wait));
            return status == UCG_OK && right ? "" : text;
        });
    for (const RankResult& result : results) {
        INFO(result.output);
        CHECK(result.ok());
    }
}
