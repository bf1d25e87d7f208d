#include <chrono>
#include <thread>
#include <vector>

#include "shm/doorbell.hpp"
#include "shm/heap.hpp"
#include "test/support/catch.hpp"

namespace ucg::shm {
namespace {

using namespace std::chrono_literals;

/// Longer than any test may take: a nap that ends by it was not woken.
constexpr std::chrono::nanoseconds kForEver = 30s;

TEST_CASE("shm/doorbell: nobody awaits anything of zeros, and ringing leaves them", "[shm]") {
    Doorbell bell = {};
    bell.ring(Awaits::both);
    CHECK(bell.word.load() == 0);
}

TEST_CASE("shm/doorbell: a ring after the announcement ends the nap that follows", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    const Awaits awaited = GENERATE(Awaits::message, Awaits::both);
    const Announcement announced = sleeper.announce(awaited, {}, kForEver);
    bell.ring(Awaits::message);
    sleeper.nap(announced, kForEver);
    CHECK(sleeper.counts().rung == 1);
    CHECK(sleeper.counts().timed_out == 0);
}

TEST_CASE("shm/doorbell: room does not wake who awaits messages", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    const Announcement announced = sleeper.announce(Awaits::message, {}, 1ns);
    bell.ring(Awaits::room);
    CHECK(bell.word.load() == announced.word);
    sleeper.nap(announced, 1ns);
    CHECK(sleeper.counts().timed_out == 1);
}

TEST_CASE("shm/doorbell: an announcement stands until it is answered", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    const Announcement first = sleeper.announce(Awaits::message, {}, kForEver);
    sleeper.nap(first, 1ns);
    CHECK(sleeper.announce(Awaits::message, first, kForEver).word == first.word);
    const Announcement more = sleeper.announce(Awaits::both, first, kForEver);
    CHECK(more.word != first.word);
    CHECK(sleeper.announce(Awaits::message, more, kForEver).word == more.word);
    bell.ring(Awaits::room);
    const Announcement second = sleeper.announce(Awaits::message, more, kForEver);
    CHECK(second.word != first.word);
    CHECK(second.word != more.word);
}

TEST_CASE("shm/doorbell: only long naps are fenced, and once while they stand", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    if (!fences_peers()) {
        WARN("needs membarrier(2)");
        return;
    }
    Announcement announced;
    for (int nap = 0; nap < 5; ++nap) {
        announced = sleeper.announce(Awaits::message, announced, Sleeper::kUnfencedNap);
        sleeper.nap(announced, 1ns);
    }
    CHECK(sleeper.counts().fences == 0);
    for (int nap = 0; nap < 5; ++nap) {
        announced = sleeper.announce(Awaits::message, announced, kForEver);
        sleeper.nap(announced, 1ns);
    }
    CHECK(sleeper.counts().fences == 1);
    bell.ring(Awaits::message);
    announced = sleeper.announce(Awaits::message, announced, kForEver);
    CHECK(sleeper.counts().fences == 2);
}

TEST_CASE("shm/doorbell: a nap without a fence is short", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    const Announcement announced = sleeper.announce(Awaits::message, {}, 1ns);
    sleeper.nap(announced, kForEver); // Nobody rings.
    CHECK(sleeper.counts().timed_out == 1);
}

TEST_CASE("shm/doorbell: of several rings the first takes the announcement down", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    static_cast<void>(sleeper.announce(Awaits::message, {}, kForEver));
    bell.ring(Awaits::message);
    const std::uint32_t answered = bell.word.load();
    bell.ring(Awaits::message);
    CHECK(bell.word.load() == answered);
}

TEST_CASE("shm/doorbell: one ring wakes all threads that sleep", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    std::atomic<int> told = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&, awaited = i == 0 ? Awaits::both : Awaits::message] {
            Announcement announced;
            while (told.load(std::memory_order_acquire) == 0) {
                announced = sleeper.announce(awaited, announced, kForEver);
                if (told.load(std::memory_order_acquire) == 0) {
                    sleeper.nap(announced, kForEver);
                }
            }
        });
    }
    std::this_thread::sleep_for(2ms); // So that most are asleep; it is right either way.
    told.store(1, std::memory_order_release);
    bell.ring(Awaits::message);
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(sleeper.counts().timed_out == 0);
}

TEST_CASE("shm/doorbell: a heap has one, and takes it back", "[shm]") {
    auto heap = Heap::create({1 << 20});
    REQUIRE(heap.ok());
    auto first = (*heap)->sleeper();
    auto second = (*heap)->sleeper();
    REQUIRE(first.ok());
    REQUIRE(second.ok());
    CHECK(*first == *second);
    const auto* line = reinterpret_cast<const std::byte*>(&(*first)->bell());
    CHECK((*heap)->locate(line, sizeof(Doorbell)).has_value());
}

} // namespace
} // namespace ucg::shm
