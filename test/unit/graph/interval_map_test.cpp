#include <random>

#include "test/support/catch.hpp"
#include "ucg_coll/graph/interval_map.hpp"

namespace ucg::graph {
namespace {

/// The value of a stretch: its byte i has the number first + i.
struct Run {
    std::uint64_t first = 0;
    Run skip(std::uint64_t bytes) const { return {first + bytes}; }
    bool continued_by(const Run& next, std::uint64_t bytes) const {
        return next.first == first + bytes;
    }
};
using Map = IntervalMap<Run>;

TEST_CASE("graph: an interval map behaves like an array", "[graph][interval_map]") {
    constexpr std::uint64_t kBytes = 64;
    std::mt19937 random(GENERATE(1U, 2U, 3U, 4U, 5U));
    Map map(kBytes);
    std::vector<std::uint64_t> array(kBytes);
    for (std::uint64_t i = 0; i < kBytes; ++i) {
        array[i] = i;
    }
    for (int round = 0; round < 300; ++round) {
        const std::uint64_t length = random() % 16;
        const std::uint64_t source = random() % (kBytes - length);
        const std::uint64_t target = random() % (kBytes - length);
        const std::vector<std::uint64_t> moved(array.begin() + static_cast<long>(source),
                                               array.begin() + static_cast<long>(source + length));
        map.write(target, map.read(source, source + length));
        std::copy(moved.begin(), moved.end(), array.begin() + static_cast<long>(target));
        std::uint64_t at = 0;
        std::uint64_t next = kBytes * 1000;
        map.visit(0, kBytes, [&](const Map::Stretch& s) {
            REQUIRE(s.begin == at);
            REQUIRE(s.value.first != next); // Otherwise both would have been one stretch.
            for (; at < s.end; ++at) {
                REQUIRE(array[at] == s.value.first + (at - s.begin));
            }
            next = s.value.first + (s.end - s.begin);
        });
        REQUIRE(at == kBytes);
    }
}

TEST_CASE("graph: an empty range has no parts", "[graph][interval_map]") {
    const Map map(10);
    CHECK(map.read(4, 4).empty());
    CHECK(map.read(7, 3).empty());
    CHECK(Map().read(0, 0).empty());
}

} // namespace
} // namespace ucg::graph
