#include <chrono>

#include "shm/wait.hpp"
#include "test/support/catch.hpp"

using namespace std::chrono_literals;
using ucg::shm::Neighbours;
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

TEST_CASE("shm/wait: who waits for a network yields earlier", "[shm]") {
    Waiter waiter({2, 2, std::nullopt, true, nullptr});
    for (std::uint32_t i = 0; i < Waiter::kPausePollsNetwork; ++i) {
        CHECK(waiter.rung() != Waiter::Rung::yield);
        waiter.idle();
    }
    CHECK(waiter.rung() == Waiter::Rung::yield);
}

TEST_CASE("shm/wait: sleeps once a while has passed since the first tick", "[shm]") {
    const unsigned ranks = GENERATE(2U, 5U);
    Waiter waiter({ranks, 2, Waiter::kSleepAfter, false, nullptr});
    const Waiter::Rung first = waiter.rung();
    waiter.tick(10h);
    CHECK(waiter.rung() == first);
    waiter.tick(10h + Waiter::kSleepAfter - 1ns);
    CHECK(waiter.rung() == first);
    waiter.tick(10h + Waiter::kSleepAfter);
    CHECK(waiter.rung() == Waiter::Rung::sleep);
    waiter.reset();
    CHECK(waiter.rung() == first);
    waiter.tick(11h);
    CHECK(waiter.rung() == first);
}

TEST_CASE("shm/wait: without ticks, or where it is told never to, it does not sleep", "[shm]") {
    Waiter untold(5, 2);
    for (std::uint32_t i = 0; i < 2 * Waiter::kPausePolls; ++i) {
        untold.idle();
    }
    CHECK(untold.rung() == Waiter::Rung::yield);

    Neighbours neighbours(true);
    for (int i = 0; i < 8; ++i) {
        neighbours.gave_way(1s);
    }
    Waiter never({2, 1, Waiter::kNever, false, &neighbours});
    never.tick(0ns);
    never.tick(24h);
    never.gave_way(1s);
    CHECK(never.rung() == Waiter::Rung::yield);

    CHECK(Waiter({1, 1, 0ns, false, nullptr}).rung() == Waiter::Rung::sleep);
}

TEST_CASE("shm/wait: ranks with a processor each sleep only where others want it", "[shm]") {
    Neighbours neighbours;
    Waiter waiter({2, 2, std::nullopt, false, &neighbours});
    for (std::uint32_t i = 0; i < Waiter::kPausePolls; ++i) {
        waiter.idle();
    }
    waiter.tick(1h);
    waiter.tick(2h);
    CHECK(waiter.rung() != Waiter::Rung::sleep);
    for (int i = 0; i < Neighbours::kBelieved / Neighbours::kWeight; ++i) {
        waiter.gave_way(Neighbours::kSwitched);
    }
    CHECK(waiter.rung() == Waiter::Rung::sleep);
    waiter.reset();
    CHECK(waiter.rung() ==
          Waiter::Rung::yield); // The neighbours wait as well, so the processor comes back soon.
}

TEST_CASE("shm/wait: who loses slices sleeps instead of yielding, after it has spun", "[shm]") {
    Neighbours neighbours;
    Waiter waiter({2, 2, std::nullopt, false, &neighbours});
    const auto climb = [&] {
        waiter.reset();
        CHECK(waiter.rung() == Waiter::Rung::spin);
        for (std::uint32_t i = 0; i < Waiter::kPausePolls; ++i) {
            waiter.idle();
        }
        return waiter.rung();
    };
    CHECK(climb() == Waiter::Rung::yield);
    waiter.gave_way(Neighbours::kSlice);
    CHECK(waiter.rung() == Waiter::Rung::yield);
    waiter.gave_way(Neighbours::kSlice);
    waiter.gave_way(Neighbours::kSlice);
    CHECK(waiter.rung() == Waiter::Rung::sleep);
    CHECK(climb() == Waiter::Rung::sleep);
    waiter.slept();
    waiter.reset();
    // It yields to see whether the neighbour still computes.
    CHECK(waiter.rung() == Waiter::Rung::yield);
}

TEST_CASE("shm/wait: who was told when to sleep keeps to it where slices are lost, too", "[shm]") {
    Neighbours neighbours;
    while (!neighbours.computing()) {
        neighbours.gave_way(Neighbours::kSlice);
    }
    const auto told = GENERATE(Waiter::Nanoseconds(5ms), Waiter::kNever);
    Waiter waiter({2, 2, told, false, &neighbours});
    for (std::uint32_t i = 0; i < Waiter::kPausePolls; ++i) {
        CHECK(waiter.rung() != Waiter::Rung::sleep);
        waiter.idle();
    }
    CHECK(waiter.rung() == Waiter::Rung::yield);
    waiter.tick(1h);
    waiter.tick(1h + 5ms - 1ns);
    CHECK(waiter.rung() == Waiter::Rung::yield);
    waiter.tick(1h + 5ms);
    CHECK(waiter.rung() == (told == 5ms ? Waiter::Rung::sleep : Waiter::Rung::yield));
}

TEST_CASE("shm/wait: ranks that outnumber processors yield to one that computes", "[shm]") {
    Neighbours neighbours;
    while (!neighbours.computing()) {
        neighbours.gave_way(Neighbours::kSlice);
    }
    Waiter waiter({4, 2, std::nullopt, false, &neighbours});
    CHECK(waiter.rung() == Waiter::Rung::yield);
    waiter.tick(1h);
    waiter.tick(1h + Waiter::kSleepAfter);
    CHECK(waiter.rung() == Waiter::Rung::sleep);
}

TEST_CASE("shm/wait: ranks that outnumber processors sleep at once beside strangers", "[shm]") {
    Neighbours neighbours;
    Waiter waiter({4, 2, std::nullopt, false, &neighbours});
    bool all_wait = false;
    const auto lose_slices = [&] {
        for (int i = 0; i < Neighbours::kBelieved / Neighbours::kWeight; ++i) {
            CHECK(waiter.rung() == Waiter::Rung::yield);
            waiter.gave_way(Neighbours::kSlice, [&] { return all_wait; });
        }
    };
    lose_slices();
    CHECK(!neighbours.strangers_computing());
    all_wait = true;
    lose_slices();
    CHECK(neighbours.strangers_computing());
    CHECK(waiter.rung() == Waiter::Rung::sleep);
    waiter.reset();
    CHECK(waiter.rung() == Waiter::Rung::sleep);
    CHECK(Waiter({4, 2, Waiter::kNever, false, &neighbours}).rung() == Waiter::Rung::yield);
}

TEST_CASE("shm/wait: a slice that passes between two polls is felt", "[shm]") {
    Neighbours neighbours;
    Waiter waiter({2, 2, std::nullopt, false, &neighbours});
    auto now = 1s + 0ns;
    waiter.tick(now);
    waiter.tick(now += 5us);
    for (int i = 0; i < Neighbours::kBelieved / Neighbours::kWeight; ++i) {
        CHECK(!neighbours.present());
        waiter.tick(now += Neighbours::kSlice);
    }
    CHECK(neighbours.present());
    CHECK(!neighbours.computing());
}

TEST_CASE("shm/neighbours: one that is gone is forgotten, a timer's interrupt is none", "[shm]") {
    Neighbours neighbours;
    neighbours.gave_way(Neighbours::kSwitched);
    CHECK(!neighbours.present());
    for (int i = 0; i < 8; ++i) {
        neighbours.gave_way(Neighbours::kSwitched);
    }
    CHECK(neighbours.present());
    for (int i = 0; i < Neighbours::kMost; ++i) {
        neighbours.gave_way(Neighbours::kSwitched - 1ns);
    }
    CHECK(!neighbours.present());
    CHECK(!neighbours.computing());

    CHECK(Neighbours(true).present());
}

TEST_CASE("shm/neighbours: a slice among many quick turns is not one that computes", "[shm]") {
    Neighbours neighbours;
    for (int i = 0; i < 100; ++i) {
        neighbours.gave_way(i % 10 == 0 ? Neighbours::kSlice : Neighbours::kSwitched);
        CHECK(!neighbours.computing());
    }
}

TEST_CASE("shm/neighbours: who is found again is believed in for twice as many sleeps", "[shm]") {
    Neighbours neighbours;
    const auto lose_slice = [&] { neighbours.gave_way(Neighbours::kSlice, [] { return true; }); };
    const auto sleeps_after_a_slice = [&](auto believed) {
        lose_slice();
        int sleeps = 0;
        for (; believed() && sleeps < 10'000; ++sleeps) {
            neighbours.slept();
        }
        return sleeps;
    };
    const auto computing = [&] { return neighbours.computing(); };
    const auto strangers = [&] { return neighbours.strangers_computing(); };
    lose_slice();
    lose_slice();
    const int first = sleeps_after_a_slice(computing);
    CHECK(sleeps_after_a_slice(computing) == 2 * first);
    for (int i = 0; i < 20; ++i) {
        sleeps_after_a_slice(computing);
    }
    CHECK(sleeps_after_a_slice(computing) == 32);
    for (int i = 0; i < 20; ++i) {
        sleeps_after_a_slice(strangers);
    }
    const int longest = sleeps_after_a_slice(strangers);
    CHECK(longest == 1024);
    // Processes that wait have come in the place of those that compute.
    for (int i = 0; i < longest; ++i) {
        neighbours.gave_way(Neighbours::kSwitched);
    }
    lose_slice();
    lose_slice();
    CHECK(sleeps_after_a_slice(strangers) == first);
}

TEST_CASE("shm/neighbours: peers see since when a process does nothing but wait", "[shm]") {
    using ucg::shm::WaitsOnly;
    WaitsOnly process{};
    CHECK(!process.since(1h));
    process.enter(1h);
    CHECK(process.since(1h));
    CHECK(!process.since(1h - 1ns));
    process.leave(1h + 5us);
    CHECK(!process.since(2h));
    const auto soon = 1h + 5us + WaitsOnly::kBetweenWaits;
    process.enter(soon);
    CHECK(process.since(1h));
    process.leave(soon);
    const auto later = soon + WaitsOnly::kBetweenWaits + 1ns;
    process.enter(later); // The process has computed in between.
    CHECK(!process.since(soon));
    CHECK(process.since(later));
}

TEST_CASE("shm/wait: naps grow with the time waited, up to the ranks' share of a CPU", "[shm]") {
    const auto nap_after = [](Waiter waiter, Waiter::Nanoseconds waited) {
        waiter.tick(1s);
        waiter.tick(1s + waited);
        return waiter.nap();
    };
    const Waiter alone(4, 4);
    CHECK(nap_after(alone, 0ns) == Waiter::kNapMin);
    CHECK(nap_after(alone, Waiter::kNapMin) == Waiter::kNapMin);
    CHECK(nap_after(alone, 8ms) == Waiter::Nanoseconds(8ms) / Waiter::kNapShare);
    CHECK(nap_after(alone, 1h) == Waiter::kNapMax);
    CHECK(nap_after(Waiter(1, 64), 1h) == Waiter::kNapMax);
    CHECK(nap_after(Waiter(12, 4), 1h) == 3 * Waiter::kNapMax);
    CHECK(nap_after(Waiter(1000, 2), 1h) == Waiter::kNapMaxShared);
}
