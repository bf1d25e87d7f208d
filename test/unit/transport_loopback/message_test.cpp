#include <array>

#include "test/support/catch.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace {

using namespace ucg;
using transport::Delivery;
using transport::Direction;
using transport::LoopbackFabric;
using transport::Message;
using transport::MessageState;

constexpr std::size_t kMessages = 8;

} // namespace

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
