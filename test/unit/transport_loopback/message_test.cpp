#include <algorithm>
#include <array>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace {

using namespace ucg;
using transport::Delivery;
using transport::Direction;
using transport::LoopbackFabric;
using transport::Message;
using transport::MessageState;
using transport::Routes;
using transport::Transport;

constexpr std::size_t kMessages = 8;

} // namespace

TEST_CASE("transport: routes are a list, or follow from the ranks of the host", "[transport]") {
    LoopbackFabric fabric(2, Delivery::immediate);
    Transport* const within = &fabric.transport(0);
    Transport* const beyond = &fabric.transport(1);
    const std::vector<Rank> local = {1, 3, 4};
    const Routes both(3, local, within, beyond);
    const std::vector<Transport*> expected = {beyond, within, beyond, nullptr, within, beyond};
    const Routes listed(expected);
    for (Rank rank = 0; rank < 6; ++rank) {
        CHECK(both[rank] == expected[static_cast<std::size_t>(rank)]);
        CHECK(listed[rank] == expected[static_cast<std::size_t>(rank)]);
    }
    CHECK(std::ranges::equal(both.all(), std::array{within, beyond}));
    CHECK(std::ranges::equal(listed.all(), expected));

    const Routes network(3, local, nullptr, beyond);
    CHECK(network[4] == beyond);
    CHECK(network[3] == nullptr);
    // A rank that reaches nobody in shared memory does without it.
    CHECK(std::ranges::equal(Routes(2, Ranks::consecutive(2, 1), within, beyond).all(),
                             std::array<Transport*, 2>{nullptr, beyond}));
    CHECK(Routes().all().size() == 2);
    CHECK(Routes()[0] == nullptr);
}

// Steps are counted modulo 2^16, so two messages of a long collective may have the same step.
TEST_CASE("loopback: messages of one step meet in the order of posting", "[transport][loopback]") {
    const auto delivery = GENERATE(Delivery::immediate, Delivery::reordered, Delivery::synchronous);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        LoopbackFabric fabric(2, delivery, seed);
        std::array<std::byte, kMessages> sent{};
        std::array<std::byte, kMessages> received{};
        std::array<Message, kMessages> sends;
        std::array<Message, kMessages> recvs;
        for (std::size_t i = 0; i < kMessages; ++i) {
            sent[i] = static_cast<std::byte>(i + 1);
            sends[i].data = &sent[i];
            recvs[i].data = &received[i];
            sends[i].bytes = recvs[i].bytes = 1;
            sends[i].peer = 1;
            recvs[i].peer = 0;
            sends[i].step = recvs[i].step = i % 2;
            recvs[i].direction = Direction::recv;
        }
        fabric.transport(1).post(std::span(recvs).first(kMessages / 2));
        fabric.transport(0).post(sends);
        fabric.transport(1).post(std::span(recvs).last(kMessages / 2));
        for (int round = 0; round < 1000 && !fabric.quiet(); ++round) {
            fabric.transport(1).progress();
        }
        REQUIRE(fabric.quiet());
        CHECK(received == sent);
        CHECK(sends[0].state == MessageState::done);
    }
}
