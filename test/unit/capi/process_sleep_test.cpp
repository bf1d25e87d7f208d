// How threads of a process sleep and are woken, where no peer rings.
#include <chrono>
#include <cstdint>
#include <memory>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/process_sleep.hpp"

namespace ucg::capi {
namespace {

/// Announces a nap, and returns whether it ended because somebody rang, by `ring`.
template <typename Ring>
bool is_rung(const std::shared_ptr<shm::Sleeper>& sleeper, Ring&& ring) {
    shm::Announcement announced = sleeper->announce(shm::Awaits::message, {});
    const std::uint64_t before = sleeper->counts().rung;
    ring();
    sleeper->nap(announced, std::chrono::milliseconds(1));
    return sleeper->counts().rung > before;
}

TEST_CASE("capi: threads that sleep are told of events, and only then", "[capi][wait]") {
    ProcessSleep sleep(true);
    const auto sleeper = sleep.sleeper();
    CHECK_FALSE(is_rung(sleeper, [&] { sleep.tell_threads(1); })); // Nobody is said to sleep.
    CHECK(sleep.add(1) == 1);
    CHECK(is_rung(sleeper, [&] { CHECK(sleep.tell_threads(2) == 2); }));
    CHECK_FALSE(is_rung(sleeper, [&] { CHECK(sleep.tell_threads(0) == 0); }));
    CHECK(sleep.add(-1) == 0);
    CHECK_FALSE(is_rung(sleeper, [&] { sleep.tell_threads(1); }));
}

TEST_CASE("capi: a process with one thread wakes nobody by what it moves", "[capi][wait]") {
    ProcessSleep sleep(false);
    sleep.add(1);
    CHECK_FALSE(is_rung(sleep.sleeper(), [&] { sleep.tell_threads(1); }));
    CHECK(is_rung(sleep.sleeper(), [&] { sleep.ring(); }));
}

TEST_CASE("capi: who sleeps by a sleeper that is replaced is woken", "[capi][wait]") {
    struct Shared {
        shm::Doorbell bell = {};
        shm::Sleeper sleeper{bell};
    };
    ProcessSleep sleep(true);
    const auto first = sleep.sleeper();
    auto shared = std::make_shared<Shared>();
    const std::weak_ptr<Shared> kept = shared;
    CHECK(is_rung(first, [&] { sleep.sleep_by({shared, &shared->sleeper}); }));
    shared.reset();
    CHECK_FALSE(kept.expired());
    auto second = sleep.sleeper();
    CHECK(second != first);
    CHECK(is_rung(second, [&] { sleep.ring(); }));
    CHECK(is_rung(second, [&] { sleep.sleep_alone(); }));
    CHECK(sleep.sleeper() == first);
    CHECK_FALSE(kept.expired()); // A thread may sleep by it still.
    second.reset();
    CHECK(kept.expired());
}

} // namespace
} // namespace ucg::capi
