#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/address.hpp"

using namespace ucg;
using namespace ucg::transport::ucx;

namespace {

ProcessAddress sample() {
    ProcessAddress address;
    address.process = 0x0123456789abcdefULL;
    address.place = {11, 22};
    address.ucp = std::string("\0opaque\xff", 8);
    address.lanes = {{"tcp", "eth0", std::string("\1\2\0\3", 4), "ab"},
                     {"posix", "memory", "", std::string(8, '\0')}};
    return address;
}

} // namespace

TEST_CASE("ucx address: packed and unpacked it is the same", "[ucx]") {
    const Result<ProcessAddress> back = unpack(pack(sample()));
    REQUIRE(back.ok());
    CHECK(*back == sample());
}

TEST_CASE("ucx address: damaged bytes are refused", "[ucx]") {
    const std::string good = pack(sample());
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
        CHECK_FALSE(unpack(std::string_view(good).substr(0, bytes)).ok());
    }
    CHECK_FALSE(unpack(good + "x").ok());
    std::string bad = good;
    bad[0] = static_cast<char>(bad[0] + 1);
    CHECK_FALSE(unpack(bad).ok());
    // A length that reaches beyond the end of memory must not wrap around.
    bad = good;
    for (std::size_t i = 32; i < 40; ++i) {
        bad[i] = '\xff';
    }
    CHECK_FALSE(unpack(bad).ok());
    ProcessAddress nobody = sample();
    nobody.process = 0;
    CHECK_FALSE(unpack(pack(nobody)).ok());
}

TEST_CASE("ucx address: a process is where it is", "[ucx]") {
    CHECK(this_place() == this_place());
    CHECK(this_place().network != 0);
}

TEST_CASE("ucx address: an offer of the short lane comes back, and damaged ones are refused",
          "[ucx]") {
    const LaneOffer offer{1, 2, std::string("\0qp\xff", 4)};
    const std::string good = pack(offer);
    const Result<LaneOffer> back = unpack_offer(good);
    REQUIRE(back.ok());
    CHECK(*back == offer);
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
        CHECK_FALSE(unpack_offer(std::string_view(good).substr(0, bytes)).ok());
    }
    CHECK_FALSE(unpack_offer(good + "x").ok());
    CHECK_FALSE(unpack_offer(pack(LaneOffer{64, 0, "a"})).ok());
    CHECK_FALSE(unpack_offer(pack(LaneOffer{0, ~0ULL, "a"})).ok());
    CHECK_FALSE(unpack_offer(pack(LaneOffer{0, 0, ""})).ok());
    CHECK_FALSE(unpack_offer(pack(LaneOffer{0, 0, std::string(256, 'a')})).ok());
}

TEST_CASE("ucx address: the key to a ring of lines comes back, and damaged ones are refused",
          "[ucx]") {
    const std::string good = pack(LineMemory{4096, std::string("\0key", 4)});
    const Result<LineMemory> back = unpack_lines(good);
    REQUIRE(back.ok());
    CHECK(back->address == 4096);
    CHECK(back->key == std::string("\0key", 4));
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
        CHECK_FALSE(unpack_lines(std::string_view(good).substr(0, bytes)).ok());
    }
    CHECK_FALSE(unpack_lines(good + "x").ok());
    CHECK_FALSE(unpack_lines(pack(LineMemory{0, "key"})).ok());
    CHECK_FALSE(unpack_lines(pack(LineMemory{4096, ""})).ok());
}
