#include "shm/pull_speed.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace ucg::shm;

constexpr SlowPull kSlow = {100, 0.5}; // 600 ns for 1000 bytes.

/// Notes copies of 1000 bytes.
void copy(PullSpeed& speed, unsigned times, double ns) {
    for (unsigned i = 0; i < times; ++i) {
        speed.took(1000, ns);
    }
}

unsigned timed(PullSpeed& speed, unsigned copies) {
    unsigned count = 0;
    for (unsigned i = 0; i < copies; ++i) {
        count += speed.timed() ? 1 : 0;
    }
    return count;
}

} // namespace

TEST_CASE("shm/pull_speed: several copies in a row decide, by their length", "[shm]") {
    PullSpeed speed(kSlow);
    CHECK_FALSE(speed.slow());
    copy(speed, 2, 600);
    CHECK_FALSE(speed.slow());
    copy(speed, 1, 599);
    copy(speed, 2, 600);
    CHECK_FALSE(speed.slow());
    speed.took(2000, 1099); // A longer copy may take longer.
    copy(speed, 3, 600);
    CHECK(speed.slow());
    copy(speed, 1, 599);
    copy(speed, 1, 600);
    copy(speed, 1, 599);
    CHECK(speed.slow());
    copy(speed, 1, 599);
    CHECK_FALSE(speed.slow());
}

TEST_CASE("shm/pull_speed: of fast copies few are timed, of slow ones all", "[shm]") {
    PullSpeed speed(kSlow);
    CHECK(timed(speed, 100) == 25);
    copy(speed, 3, 1000);
    REQUIRE(speed.slow());
    CHECK(timed(speed, 100) == 100);
}

TEST_CASE("shm/pull_speed: trials are a few in a row, and become rare", "[shm]") {
    SlowPullTrials trials;
    const auto before_next = [&trials] {
        unsigned count = 0;
        while (!trials.due()) {
            ++count;
        }
        CHECK(trials.due());
        CHECK(trials.due());
        return count;
    };
    CHECK(before_next() == 16);
    CHECK(before_next() == 32);
    for (int i = 0; i < 10; ++i) {
        before_next();
    }
    CHECK(before_next() == 1024);
    trials.end();
    CHECK(before_next() == 16);
}
