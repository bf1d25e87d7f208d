#include "shm/page_lookups.hpp"
#include "test/support/catch.hpp"

namespace {

using ucg::shm::PageLookupCost;
using ucg::shm::PageLookups;

constexpr PageLookupCost kCost = {0.01, 1000};

} // namespace

TEST_CASE("shm/page_lookups: a reserved time begins when the last one ends", "[shm]") {
    std::atomic<std::int64_t> until = 0;
    const PageLookups lookups(until, kCost);
    CHECK(lookups.duration(100'000) == 1000);
    CHECK(lookups.reserve(5000, 1000) == 5000);
    CHECK(lookups.reserve(5200, 1000) == 6000);
    CHECK(lookups.reserve(5300, 500) == 7000);
    CHECK(lookups.reserve(9000, 500) == 9000);
}

TEST_CASE("shm/page_lookups: the kernel finds 4 MiB before it copies", "[shm]") {
    std::atomic<std::int64_t> until = 0;
    const PageLookups lookups(until, kCost);
    CHECK(lookups.duration(std::uint64_t{1} << 40) == lookups.duration(4 << 20));
}

TEST_CASE("shm/page_lookups: nobody waits for a time that is far away", "[shm]") {
    // Of a process with another clock, or of a great many calls.
    constexpr std::int64_t kDay = 86'400'000'000'000;
    std::atomic<std::int64_t> until = kDay;
    const PageLookups lookups(until, kCost);
    CHECK(lookups.reserve(5000, 1000) == 5000);
    CHECK(lookups.reserve(5000, 1000) == 6000);
}

TEST_CASE("shm/page_lookups: short calls, and those without a word, do not wait", "[shm]") {
    std::atomic<std::int64_t> until = 0;
    PageLookups(until, kCost).wait(999);
    CHECK(until == 0);
    PageLookups(until, kCost).wait(1000);
    CHECK(until != 0);
    PageLookups().wait(1 << 30);
}
