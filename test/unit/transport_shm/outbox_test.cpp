// The sending end alone, with a receiver that makes room at any moment.
#include <cstdint>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/zeroed_memory.hpp"
#include "ucg_coll/transport/shm/link.hpp"

namespace ucg::transport {
namespace {

constexpr std::uint32_t kDepth = 4;
constexpr std::uint64_t kLongBytes = 4096;

Message to_send(const std::vector<std::byte>& data, std::uint32_t sequence) {
    Message message;
    message.data = const_cast<std::byte*>(data.data());
    message.bytes = data.size();
    message.sequence = sequence;
    message.direction = Direction::send;
    message.state = MessageState::posted;
    return message;
}

TEST_CASE("a sender gives pages to the buffers of a message whenever there is room for it") {
    auto made = shm::Heap::create({std::uint64_t{1} << 24});
    REQUIRE(made.ok());
    shm::Heap& heap = **made;
    const shm::RingShape shape = {kDepth, kLongBytes};
    auto buffers = heap.reserve(shape.buffers_bytes(), 0);
    REQUIRE(buffers.ok());
    const std::vector<std::byte> line(shm::kInlineBytes);
    const std::vector<std::byte> data(kLongBytes);

    constexpr unsigned kRounds = 200;
    unsigned backed = 0;
    for (unsigned round = 0; round < kRounds; ++round) {
        const test::ZeroedMemory lines(shape.lines_bytes());
        const test::ZeroedMemory reverse(shape.lines_bytes());
        shm::Doorbell bell = {};
        shm::ReadableMemory readable;
        Outbox outbox({lines.get(), buffers->data()}, reverse.get(), shape, bell, heap, readable,
                      shm::PeerReach{}, false, SingleCopyLimits{});
        // These messages need no buffer, and they fill the ring.
        for (std::uint32_t i = 0; i < kDepth; ++i) {
            Message message = to_send(line, i);
            REQUIRE(outbox.post(message));
        }
        Message message = to_send(data, kDepth);
        REQUIRE_FALSE(outbox.post(message));
        std::thread receiver([&] {
            shm::RingReceiver ring(lines.get(), buffers->data(), reverse.get(), shape);
            std::vector<std::byte> got(shm::kInlineBytes);
            for (std::uint32_t i = 0; i < kDepth; ++i) {
                ring.receive(got.data(), 0);
            }
        });
        while (!outbox.idle()) {
            outbox.flush(shm::Share::all);
        }
        receiver.join();
        backed += outbox.has_backed() ? 1 : 0;
    }
    CHECK(backed == kRounds);
}

} // namespace
} // namespace ucg::transport
