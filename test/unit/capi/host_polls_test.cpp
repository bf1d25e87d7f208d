#include "test/support/catch.hpp"
#include "ucg_coll/capi/host_polls.hpp"

namespace ucg::capi {
namespace {

using namespace std::chrono_literals;

constexpr bool kYields = true;
constexpr bool kComputing = true;

TEST_CASE("capi: a wait calls the host's progress at each fourth idle poll", "[capi][wait]") {
    const bool over_network = GENERATE(false, true);
    const bool yields = GENERATE(false, true);
    const HostPolls polls(over_network);
    for (unsigned poll = 1; poll <= 12; ++poll) {
        CHECK(polls.due(poll, yields, !kComputing) == (poll % 4 == 0));
    }
}

TEST_CASE("capi: a wait calls the host's progress before each yield that may be long",
          "[capi][wait]") {
    HostPolls polls(false);
    CHECK(polls.due(1, kYields, kComputing));
    CHECK_FALSE(polls.due(1, !kYields, kComputing));
    polls.gave_way(20us); // A dozen ranks that wait.
    CHECK_FALSE(polls.due(1, kYields, !kComputing));
    polls.gave_way(3ms);
    CHECK(polls.due(1, kYields, !kComputing));
    CHECK_FALSE(polls.due(1, !kYields, !kComputing));
}

TEST_CASE("capi: a wait goes on calling the host's progress that had something to do",
          "[capi][wait]") {
    HostPolls polls(false);
    polls.called(0);
    CHECK_FALSE(polls.due(1, kYields, !kComputing));
    polls.called(1);
    polls.called(0);
    CHECK(polls.due(1, kYields, !kComputing));
}

TEST_CASE("capi: a wait over a network does not look at sockets before each yield",
          "[capi][wait]") {
    HostPolls polls(true);
    polls.called(1);
    polls.gave_way(3ms);
    CHECK_FALSE(polls.due(1, kYields, kComputing));
    CHECK(polls.due(4, kYields, kComputing));
}

} // namespace
} // namespace ucg::capi
