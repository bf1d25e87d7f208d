// By which options the latest groups of each size share memory.
#include "test/support/catch.hpp"
#include "ucg_coll/capi/latest_options.hpp"

namespace ucg::capi {
namespace {

transport::ShmOptions with_ring(std::uint64_t bytes) {
    transport::ShmOptions options;
    options.ring_bytes = bytes;
    return options;
}

TEST_CASE("capi: the latest options of a size count, until they are forgotten", "[capi]") {
    LatestOptions latest;
    CHECK_FALSE(latest.of(2));
    latest.set(2, with_ring(1));
    latest.set(3, with_ring(2));
    latest.set(2, with_ring(3));
    REQUIRE(latest.of(2));
    CHECK(latest.of(2)->ring_bytes == 3);
    latest.forget(2);
    CHECK_FALSE(latest.of(2));
    CHECK(latest.of(3)->ring_bytes == 2);
}

TEST_CASE("capi: options are kept for the eight sizes that were set last", "[capi]") {
    LatestOptions latest;
    for (std::size_t ranks = 1; ranks <= 8; ++ranks) {
        latest.set(ranks, with_ring(ranks));
    }
    latest.set(1, with_ring(9)); // It is the latest now.
    latest.set(9, with_ring(9));
    CHECK(latest.of(1));
    CHECK_FALSE(latest.of(2));
    CHECK(latest.of(3));
}

} // namespace
} // namespace ucg::capi
