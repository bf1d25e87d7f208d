// Messages that come before they are awaited, those that are to be read later, and the memory that
// they leave behind.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/zeroed_memory.hpp"
#include "ucg_coll/transport/shm/early_arrivals.hpp"
#include "ucg_coll/transport/shm/remembered.hpp"

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

/// Both ends of a ring.
struct Ends {
    void send_rts(std::uint64_t tag, std::uint64_t place) {
        sender.send_rts(tag, {.address = 0, .place = place}, 100, {});
    }

    shm::RingShape shape = {16, 8192};
    test::ZeroedMemory lines{shape.lines_bytes()};
    test::ZeroedMemory buffers{shape.buffers_bytes()};
    test::ZeroedMemory reverse{shape.lines_bytes()};
    shm::RingSender sender{lines.get(), buffers.get(), reverse.get(), shape};
    shm::RingReceiver ring{lines.get(), buffers.get(), reverse.get(), shape};
};

TEST_CASE("of early arrivals only the newest is coming, and each is found until it is erased") {
    SpareArrivals spare;
    EarlyArrivals early(spare);
    Message* const first = early.begin(1, 10);
    REQUIRE(first != nullptr);
    CHECK(early.coming());
    first->state = MessageState::done;
    CHECK_FALSE(early.coming());
    Message* const second = early.begin(2, 20);
    REQUIRE(second != nullptr);
    CHECK(early.coming());
    REQUIRE(early.find(1) != nullptr);
    CHECK(&early.find(1)->message == first);
    CHECK_FALSE(early.find(1)->coming());
    early.erase(*early.find(1));
    CHECK(early.find(1) == nullptr);
    CHECK(&early.find(2)->message == second);
    early.erase_coming();
    CHECK(early.empty());
    CHECK(spare.bytes() == 30);
}

TEST_CASE("of what is remembered early, only that in private memory can be lost") {
    Ends ends;
    SpareArrivals spare;
    EarlyArrivals early(spare);
    for (const std::uint64_t tag : {1, 2, 3}) {
        ends.send_rts(tag, tag == 2 ? 1 : 0);
        REQUIRE(early.remember(ends.ring));
    }
    REQUIRE(early.begin(4, 10) != nullptr);
    std::vector<std::uint64_t> lost;
    early.erase_private([&](const EarlyArrival& arrival) { lost.push_back(arrival.tag); });
    CHECK(lost == std::vector<std::uint64_t>{1, 3});
    REQUIRE(early.find(2) != nullptr);
    CHECK(early.find(2)->elsewhere.place == 1);
    CHECK(early.coming());
}

TEST_CASE("a declined message is known by its own tag, and taken once") {
    Ends ends;
    DeclinedMessages declined;
    ends.send_rts(1, 0);
    ends.send_rts(2, 0);
    declined.add_head(ends.ring);
    CHECK(ends.ring.tag() == 2);
    CHECK_FALSE(declined.take(2));
    const auto later = declined.take(1);
    REQUIRE(later);
    CHECK(later->sequence == 1);
    CHECK(declined.empty());
}

} // namespace
} // namespace ucg::transport
