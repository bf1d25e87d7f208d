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
    const std::uint32_t announced = sleeper.announce(awaited, 0);
    bell.ring(Awaits::message);
    sleeper.nap(announced, kForEver);
    CHECK(sleeper.counts().rung == 1);
    CHECK(sleeper.counts().timed_out == 0);
}

TEST_CASE("shm/doorbell: room does not wake who awaits messages", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    const std::uint32_t announced = sleeper.announce(Awaits::message, 0);
    bell.ring(Awaits::room);
    CHECK(bell.word.load() == announced);
    sleeper.nap(announced, 1ns);
    CHECK(sleeper.counts().timed_out == 1);
}

TEST_CASE("shm/doorbell: an announcement stands until it is answered", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    const std::uint32_t first = sleeper.announce(Awaits::message, 0);
    sleeper.nap(first, 1ns);
    CHECK(sleeper.announce(Awaits::message, first) == first);
    const std::uint32_t more = sleeper.announce(Awaits::both, first);
    CHECK(more != first);
    CHECK(sleeper.announce(Awaits::message, more) == more);
    bell.ring(Awaits::room);
    const std::uint32_t second = sleeper.announce(Awaits::message, more);
    CHECK(second != first);
    CHECK(second != more);
}

TEST_CASE("shm/doorbell: of several rings the first takes the announcement down", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    static_cast<void>(sleeper.announce(Awaits::message, 0));
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
            std::uint32_t announced = 0;
            while (told.load(std::memory_order_acquire) == 0) {
                announced = sleeper.announce(awaited, announced);
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
