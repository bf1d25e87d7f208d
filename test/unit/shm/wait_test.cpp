#include "shm/wait.hpp"
#include "test/support/catch.hpp"

using ucg::shm::Waiter;

TEST_CASE("shm/wait: ranks that outnumber the CPUs yield at once", "[shm]") {
    Waiter waiter(3, 2);
    CHECK(waiter.rung() == Waiter::Rung::yield);
    waiter.idle();
    waiter.reset();
    CHECK(waiter.rung() == Waiter::Rung::yield);
}

TEST_CASE("shm/wait: the ladder goes up with idle polls and starts again", "[shm]") {
    Waiter waiter(2, 2);
    CHECK(waiter.rung() == Waiter::Rung::spin);
    for (std::uint32_t i = 0; i < Waiter::kSpinPolls; ++i) {
        waiter.idle();
    }
    CHECK(waiter.rung() == Waiter::Rung::pause);
    for (std::uint32_t i = Waiter::kSpinPolls; i < Waiter::kPausePolls; ++i) {
        waiter.idle();
    }
    CHECK(waiter.rung() == Waiter::Rung::yield);
    waiter.idle();
    CHECK(waiter.rung() == Waiter::Rung::yield);
    waiter.reset();
    CHECK(waiter.rung() == Waiter::Rung::spin);
}
