#include <chrono>
#include <thread>
#include <vector>

#include "shm/doorbell.hpp"
#include "shm/heap.hpp"
#include "test/support/catch.hpp"

namespace ucg::shm {
namespace {

using namespace std::chrono_literals;

/// Longer than any test may take: a nap that ends by this time-out was not woken.
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
    Announcement announced = sleeper.announce(awaited, {});
    bell.ring(Awaits::message);
    sleeper.nap(announced, kForEver);
    CHECK(sleeper.counts().rung == 1);
    CHECK(sleeper.counts().timed_out == 0);
}

TEST_CASE("shm/doorbell: room does not wake who awaits messages", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    Announcement announced = sleeper.announce(Awaits::message, {});
    bell.ring(Awaits::room);
    CHECK(bell.word.load() == announced.word);
    sleeper.nap(announced, 1ns);
    CHECK(sleeper.counts().first_timed_out == 1);
}

TEST_CASE("shm/doorbell: an announcement stands until it is answered", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    Announcement first = sleeper.announce(Awaits::message, {});
    sleeper.nap(first, 1ns);
    CHECK(sleeper.announce(Awaits::message, first).word == first.word);
    Announcement more = sleeper.announce(Awaits::both, first);
    CHECK(more.word != first.word);
    CHECK(sleeper.announce(Awaits::message, more).word == more.word);
    bell.ring(Awaits::room);
    Announcement second = sleeper.announce(Awaits::message, more);
    CHECK(second.word != first.word);
    CHECK(second.word != more.word);
}

TEST_CASE("shm/doorbell: the first nap is short, later ones while it stands are not", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    Announcement announced = sleeper.announce(Awaits::message, {});
    CHECK(!announced.stood);
    sleeper.nap(announced, kForEver); // No process rings.
    CHECK(sleeper.counts().first_timed_out == 1);
    announced = sleeper.announce(Awaits::message, announced);
    CHECK(announced.stood);
    sleeper.nap(announced, 1ns);
    CHECK(sleeper.counts().timed_out == 1);
    bell.ring(Awaits::message);
    announced = sleeper.announce(Awaits::message, announced);
    CHECK(!announced.stood);
}

TEST_CASE("shm/doorbell: a nap that no store buffer has time to empty in does not count", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    Announcement announced = sleeper.announce(Awaits::message, {});
    sleeper.nap(announced, 1ns);
    CHECK(!sleeper.announce(Awaits::message, announced).stood);
    CHECK(!sleeper.announce(Awaits::both, announced).stood);
}

TEST_CASE("shm/doorbell: what another thread announced has not stood for this one", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    Announcement other = sleeper.announce(Awaits::both, {});
    sleeper.nap(other, kForEver);
    CHECK(!sleeper.announce(Awaits::message, {}).stood);
}

TEST_CASE("shm/doorbell: of several rings the first takes the announcement down", "[shm]") {
    Doorbell bell = {};
    Sleeper sleeper(bell);
    static_cast<void>(sleeper.announce(Awaits::message, {}));
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
                announced = sleeper.announce(awaited, announced);
                if (told.load(std::memory_order_acquire) == 0) {
                    sleeper.nap(announced, kForEver);
                }
            }
        });
    }
    // By then most processes are asleep; the test passes either way.
    std::this_thread::sleep_for(2ms);
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
