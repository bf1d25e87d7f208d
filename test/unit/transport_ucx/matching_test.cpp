#include <cstring>
#include <malloc.h>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/matching.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

using namespace ucg;
using namespace ucg::transport;
using namespace ucg::transport::ucx;

namespace {

Message receive(std::uint32_t sequence, std::uint16_t step, std::uint8_t channel = kDataChannel) {
    Message message;
    message.direction = Direction::recv;
    message.sequence = sequence;
    message.step = step;
    message.channel = channel;
    return message;
}

/// What is tested here does not look at a link's relation to its peer.
struct Fixture {
    GroupState group;
    RankLink link{group, 1, 5, *reinterpret_cast<Peer*>(&group)};
};

} // namespace

TEST_CASE("ucx matching: a fifo gives back by key, in order among equals", "[ucx]") {
    std::vector<Message> messages = {receive(1, 0), receive(1, 1), receive(2, 0),
                                     receive(1, 0, kSignalChannel), receive(1, 0)};
    Fifo<Message> fifo;
    for (Message& message : messages) {
        fifo.push(message);
    }
    CHECK(fifo.take({3, 0, 0}) == nullptr);
    CHECK(fifo.take({1, 0, 1}) == &messages[3]);
    CHECK(fifo.take({1, 0, 0}) == &messages[0]);
    CHECK(fifo.take({1, 0, 0}) == &messages[4]);
    // The last message was taken, so the list must go on growing at its new end.
    fifo.push(messages[0]);
    CHECK(fifo.pop() == &messages[1]);
    CHECK(fifo.pop() == &messages[2]);
    CHECK(fifo.pop() == &messages[0]);
    CHECK(fifo.pop() == nullptr);
    CHECK(fifo.empty());
}

TEST_CASE("ucx matching: a member is a peer, and then the link to it", "[ucx]") {
    Fixture fixture;
    Member member;
    CHECK(member.peer() == nullptr);
    CHECK(member.link() == nullptr);
    member.set(fixture.link.peer);
    CHECK(member.peer() == &fixture.link.peer);
    CHECK(member.link() == nullptr);
    member.set(fixture.link);
    CHECK(member.peer() == &fixture.link.peer);
    CHECK(member.link() == &fixture.link);
    static_assert(sizeof(Member) == 8);
}

TEST_CASE("ucx matching: each process has its number for a group, equal ones or not", "[ucx]") {
    const GroupIds equal(std::vector<std::uint32_t>{7, 7, 7});
    const GroupIds other(std::vector<std::uint32_t>{7, 7, 8});
    for (Rank rank = 0; rank < 3; ++rank) {
        CHECK(equal[rank] == 7);
        CHECK(other[rank] == (rank == 2 ? 8 : 7));
    }
}

TEST_CASE("ucx matching: credits are counted, not carried", "[ucx]") {
    Fixture at;
    CHECK(at.link.has_credit(16, 16));
    CHECK_FALSE(at.link.has_credit(17, 16));
    at.link.sent = 16;
    CHECK_FALSE(at.link.has_credit(1, 16));
    at.link.acknowledge(10);
    CHECK(at.link.has_credit(10, 16));
    SECTION("a late count changes nothing") {
        at.link.acknowledge(4);
        CHECK(at.link.acknowledged == 10);
    }
    SECTION("more than was sent is not believed") {
        at.link.acknowledge(17);
        CHECK(at.link.acknowledged == 10);
    }
    SECTION("counts wrap around") {
        at.link.sent = 5;
        at.link.acknowledged = 0xfffffff0U;
        CHECK(at.link.has_credit(11, 32));
        CHECK_FALSE(at.link.has_credit(12, 32));
        at.link.acknowledge(3);
        CHECK(at.link.acknowledged == 3);
    }
}

TEST_CASE("ucx matching: a receiver's word that it is ready serves one message", "[ucx]") {
    Fixture at;
    const Key one{1, 0, 0};
    const Key other{1, 1, 0};
    CHECK_FALSE(at.link.take_ready(one).has_value());
    at.link.note_ready(one, 10000);
    at.link.note_ready(other, 20000);
    at.link.note_ready(other, 20000); // The same happens after a connection that was made again.
    CHECK(at.link.take_ready(other) == 20000);
    CHECK_FALSE(at.link.take_ready(other).has_value());
    CHECK(at.link.take_ready(one) == 10000);
}

TEST_CASE("ucx matching: a receiver's word that it is ready contradicts another plan", "[ucx]") {
    constexpr std::uint16_t kOne = 1U << 1U;
    constexpr std::uint16_t kOther = 2U << 1U;
    Fixture at;
    CHECK_FALSE(at.link.ready_contradicts({1, 0, kOne}));
    at.link.note_ready({1, 3, kOther | kSignalChannel}, 10000);
    CHECK(at.link.ready_contradicts({1, 0, kOne}));
    CHECK_FALSE(at.link.ready_contradicts({1, 0, kOther}));
    CHECK_FALSE(at.link.ready_contradicts({2, 0, kOne}));
}

TEST_CASE("ucx matching: early arrivals keep a copy of every size", "[ucx]") {
    EarlyPool pool;
    for (const std::size_t bytes : {0U, 1U, 128U, 129U, 8192U}) {
        std::vector<std::byte> data(bytes, std::byte{42});
        Early* early = pool.hold(Envelope{}, data.data(), bytes);
        std::fill(data.begin(), data.end(), std::byte{0});
        REQUIRE(early->data().size() == bytes);
        for (const std::byte each : early->data()) {
            CHECK(each == std::byte{42});
        }
        pool.release(early);
        CHECK(early->large == nullptr);
    }
}

TEST_CASE("ucx matching: what a late rank held is freed when it is released", "[ucx]") {
    constexpr std::size_t kMany = 100'000;
    EarlyPool pool;
    std::vector<Early*> held;
    held.reserve(kMany);
    const std::size_t before = ::mallinfo2().uordblks;
    for (std::size_t i = 0; i < kMany; ++i) {
        held.push_back(pool.hold(Envelope{}, &i, sizeof(i)));
    }
    REQUIRE(::mallinfo2().uordblks - before > kMany * sizeof(Early));
    Early* const kept = held.back();
    held.pop_back();
    for (Early* const early : held) {
        pool.release(early);
    }
    CHECK(::mallinfo2().uordblks - before < kMany * sizeof(Early) / 8);
    std::size_t last = 0;
    std::memcpy(&last, kept->data().data(), sizeof(last));
    CHECK(last == kMany - 1);
    for (Early*& early : held) { // Those that are kept serve again.
        early = pool.hold(Envelope{}, &last, sizeof(last));
    }
    CHECK(pool.hold(Envelope{}, nullptr, 0)->bytes == 0);
}

TEST_CASE("ucx matching: what an eager message costs", "[ucx]") {
    CHECK(credit_cost(0) == kEarlyBytes);
    CHECK(credit_cost(kEarlyShortBytes) == kEarlyBytes);
    CHECK(credit_cost(kEarlyShortBytes + 1) == kEarlyBytes + kEarlyShortBytes + 1);
    CHECK(credit_cost(8192) == kEarlyBytes + 8192);
    // In a gather or a reduction most ranks only send.
    const UcxOptions options;
    CHECK(options.window_bytes / credit_cost(8) > 1000);
    CHECK(options.window_bytes >= 2 * credit_cost(options.eager_bytes));
    CHECK(options.window_bytes >= 2 * credit_cost(options.eager_bytes_tcp));
}
