#include "shm/core_distance.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace ucg::shm;

constexpr std::uint32_t kNear = 100;

void read(CoreDistance& distance, unsigned times, std::int64_t ns) {
    for (unsigned i = 0; i < times; ++i) {
        distance.read_in(ns);
    }
}

} // namespace

TEST_CASE("shm/core_distance: several reads in a row decide", "[shm]") {
    CoreDistance distance(kNear);
    CHECK_FALSE(distance.far());
    read(distance, 2, 140);
    CHECK_FALSE(distance.far());
    read(distance, 1, 140);
    CHECK(distance.far());
    read(distance, 2, 60);
    CHECK(distance.far());
    read(distance, 1, 60);
    CHECK_FALSE(distance.far());
}

TEST_CASE("shm/core_distance: single reads that say otherwise change nothing", "[shm]") {
    CoreDistance distance(kNear);
    for (int i = 0; i < 100; ++i) {
        read(distance, 2, 140);
        read(distance, 1, 60);
    }
    CHECK_FALSE(distance.far());
    read(distance, 3, kNear);
    REQUIRE(distance.far());
    for (int i = 0; i < 100; ++i) {
        read(distance, 2, 60);
        read(distance, 1, 140);
    }
    CHECK(distance.far());
}

TEST_CASE("shm/core_distance: a read that was interrupted says nothing", "[shm]") {
    CoreDistance distance(kNear);
    read(distance, 100, 8 * kNear);
    CHECK_FALSE(distance.far());
    read(distance, 3, 8 * kNear - 1);
    REQUIRE(distance.far());
    read(distance, 2, 60);
    read(distance, 100, 8 * kNear);
    read(distance, 1, 60);
    CHECK_FALSE(distance.far());
}

TEST_CASE("shm/core_distance: without a limit cores are never far", "[shm]") {
    CoreDistance distance;
    read(distance, 100, 140);
    CHECK_FALSE(distance.far());
}
