// The memory that early messages leave behind for later ones.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/shm/early_arrivals.hpp"

namespace ucg::transport {
namespace {

constexpr std::uint64_t kMuch = std::uint64_t{1} << 20;

TEST_CASE("a later arrival has the memory of an earlier one, and nothing else of it") {
    SpareArrivals spare;
    auto first = spare.take(1000);
    const std::byte* const data = first->data.get();
    first->tag = 7;
    first->message.moved = 100;
    first->message.state = MessageState::done;
    first->elsewhere = {.address = 3, .place = 0};
    first->later.sequence = 5;
    spare.give_back(std::move(first));
    CHECK(spare.bytes() == 1000);
    const auto second = spare.take(900);
    CHECK(second->data.get() == data);
    CHECK(second->room == 1000);
    CHECK(second->tag == 0);
    CHECK(second->message.moved == 0);
    CHECK(second->message.state == MessageState::idle);
    CHECK(second->elsewhere.address == 0);
    CHECK(second->later.sequence == 0);
    CHECK(spare.bytes() == 0);
}

TEST_CASE("the least room that is enough serves, and else the least of all gets more") {
    SpareArrivals spare;
    for (const std::uint64_t bytes : {4000, 100, 2000}) {
        auto arrival = std::make_unique<EarlyArrival>();
        arrival->data = std::make_unique<std::byte[]>(bytes);
        arrival->room = bytes;
        spare.give_back(std::move(arrival));
    }
    CHECK(spare.take(1500)->room == 2000);
    CHECK(spare.bytes() == 4100);
    CHECK(spare.take(5000)->room == 5000);
    CHECK(spare.bytes() == 4000);
    CHECK(spare.take(0)->room == 4000);
    CHECK(spare.take(0)->room == 0);
}

TEST_CASE("what is kept is bounded, in bytes and in number") {
    SpareArrivals spare;
    auto large = spare.take(kMuch);
    REQUIRE(large->room == kMuch);
    spare.give_back(std::move(large));
    CHECK(spare.bytes() == 0);
    std::vector<std::unique_ptr<EarlyArrival>> many;
    for (int i = 0; i < 1000; ++i) {
        many.push_back(std::make_unique<EarlyArrival>());
        many.back()->data = std::make_unique<std::byte[]>(10000);
        many.back()->room = 10000;
    }
    for (auto& arrival : many) {
        spare.give_back(std::move(arrival));
    }
    CHECK(spare.bytes() > 100000);
    CHECK(spare.bytes() <= kMuch / 4);
}

} // namespace
} // namespace ucg::transport
