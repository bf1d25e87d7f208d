#include <new>
#include <random>
#include <vector>

#include "shm/ranges.hpp"
#include "test/support/catch.hpp"
#include "test/support/scarce_memory.hpp"

using ucg::shm::Ranges;

TEST_CASE("shm/ranges: the first range that fits is taken", "[shm]") {
    Ranges ranges(100);
    CHECK(ranges.take(10) == 0);
    CHECK(ranges.take(20) == 10);
    CHECK(ranges.take(30) == 30);
    ranges.give_back(10, 20);
    CHECK(ranges.take(25) == 60);
    CHECK(ranges.take(20) == 10);
    CHECK(ranges.free_bytes() == 15);
}

TEST_CASE("shm/ranges: the end of the last range that fits is taken", "[shm]") {
    Ranges ranges(100);
    CHECK(ranges.take_last(10) == 90);
    CHECK(ranges.take(10) == 0);
    CHECK(ranges.take_last(20) == 70);
    ranges.give_back(90, 10);
    CHECK(ranges.take_last(20) == 50);
    CHECK(ranges.take_last(10) == 90);
    CHECK(ranges.free_bytes() == 40);
    CHECK(ranges.largest_free() == 40);
    CHECK_FALSE(ranges.take_last(41));
    CHECK(ranges.take_last(40) == 10);
    CHECK_FALSE(ranges.take_last(1));
    ranges.give_back(0, 10);
    CHECK(ranges.take(10) == 0);
}

TEST_CASE("shm/ranges: a range for which there is no memory can be given back later", "[shm]") {
    Ranges ranges(100);
    CHECK(ranges.take(100) == 0);
    ucg::test::allocations_left = 0;
    bool failed = false;
    try {
        ranges.give_back(40, 20);
    } catch (const std::bad_alloc&) {
        failed = true;
    }
    CHECK(failed);
    CHECK(ranges.free_bytes() == 0);
    CHECK_FALSE(ranges.take(1));
    ranges.give_back(40, 20);
    ucg::test::allocations_left = 0; // Neighbours need none.
    ranges.give_back(60, 40);
    ranges.give_back(0, 40);
    ucg::test::allocations_left = ucg::test::kNever;
    CHECK(ranges.free_bytes() == 100);
    CHECK(ranges.take(100) == 0);
}

TEST_CASE("shm/ranges: neighbours merge on both sides", "[shm]") {
    Ranges ranges(30);
    for (const std::uint64_t offset : {0U, 10U, 20U}) {
        CHECK(ranges.take(10) == offset);
    }
    ranges.give_back(0, 10);
    ranges.give_back(20, 10);
    CHECK(ranges.largest_free() == 10);
    ranges.give_back(10, 10);
    CHECK(ranges.largest_free() == 30);
    CHECK(ranges.take(30) == 0);
}

TEST_CASE("shm/ranges: what does not fit is refused and changes nothing", "[shm]") {
    Ranges ranges(16);
    CHECK_FALSE(ranges.take(17));
    CHECK(ranges.take(16) == 0);
    CHECK_FALSE(ranges.take(1));
    CHECK_FALSE(Ranges(0).take(1));
}

TEST_CASE("shm/ranges: taken ranges never overlap and all come back", "[shm]") {
    constexpr std::uint64_t kSize = 1000;
    Ranges ranges(kSize);
    std::mt19937 random(7);
    std::vector<bool> used(kSize, false);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (int i = 0; i < 5000; ++i) {
        const std::uint64_t size = 1 + random() % 40;
        const auto which = random() % 4;
        const auto offset = which == 0   ? ranges.take(size)
                            : which == 1 ? ranges.take_last(size)
                                         : std::nullopt;
        if (offset) {
            for (std::uint64_t b = *offset; b < *offset + size; ++b) {
                REQUIRE_FALSE(used[b]);
                used[b] = true;
            }
            taken.emplace_back(*offset, size);
        } else if (!taken.empty()) {
            std::swap(taken[random() % taken.size()], taken.back());
            const auto [from, length] = taken.back();
            taken.pop_back();
            std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(from), length, false);
            ranges.give_back(from, length);
        }
    }
    for (const auto& [offset, size] : taken) {
        ranges.give_back(offset, size);
    }
    CHECK(ranges.largest_free() == kSize);
}
