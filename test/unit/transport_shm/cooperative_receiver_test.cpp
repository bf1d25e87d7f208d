// To which message a sender may be writing, by what its receiver says.
#include <cstdint>
#include <memory>
#include <vector>

#include "shm/heap.hpp"
#include "shm/ring.hpp"
#include "test/support/catch.hpp"
#include "test/support/zeroed_memory.hpp"
#include "ucg_coll/transport/shm/cooperative_receiver.hpp"

namespace ucg::transport {
namespace {

constexpr std::uint64_t kBytes = 200'000;
constexpr shm::CopyOffer kOffer = {true, true};

/// Both ends of a ring, whose sender offers help with each message.
struct Ends {
    Ends() {
        auto made = shm::Heap::create({std::uint64_t{1} << 24});
        REQUIRE(made.ok());
        heap = std::move(*made);
        receiver = CooperativeReceiver(*heap, true, 0);
    }

    Message message(std::uint32_t sequence) {
        Message message;
        message.data = target.data();
        message.bytes = kBytes;
        message.sequence = sequence;
        return message;
    }

    /// Sends the RTS of the message, and returns its mark.
    std::uint64_t send(const Message& message) {
        return sender.send_rts(tag_of(message), {0, 1}, message.bytes, kOffer);
    }

    /// Has the receiver learn that the sender offers help.
    void learn(std::uint32_t sequence) {
        const Message first = message(sequence);
        send(first);
        REQUIRE(receiver.begin(first, ring));
        receiver.end(ring);
        ring.take();
    }

    /// Returns the piece that the sender can claim of the message; none if it is not open.
    std::optional<shm::Piece> claim(const Message& message, std::uint64_t mark) {
        return sender.cooperative().claim(shm::CopyEnd::sender, sender.sequence(mark),
                                          name_of(message));
    }

    shm::RingShape shape = {16, 8192};
    test::ZeroedMemory lines{shape.lines_bytes()};
    test::ZeroedMemory buffers{shape.buffers_bytes()};
    test::ZeroedMemory reverse{shape.lines_bytes()};
    std::vector<std::byte> target = std::vector<std::byte>(kBytes);
    std::unique_ptr<shm::Heap> heap;
    shm::RingSender sender{lines.get(), buffers.get(), reverse.get(), shape};
    shm::RingReceiver ring{lines.get(), buffers.get(), reverse.get(), shape};
    CooperativeReceiver receiver;
};

TEST_CASE("nothing is opened ahead before the sender has offered help") {
    Ends ends;
    const Message message = ends.message(1);
    ends.receiver.open_ahead(message, ends.ring);
    CHECK(ends.receiver.message() == nullptr);
    ends.learn(0);
    ends.receiver.open_ahead(message, ends.ring);
    CHECK(ends.receiver.message() == &message);
    CHECK(ends.claim(message, ends.send(message)));
}

TEST_CASE("what was opened ahead stays open if it is the message that comes") {
    Ends ends;
    ends.learn(0);
    const Message message = ends.message(1);
    ends.receiver.open_ahead(message, ends.ring);
    const std::uint64_t mark = ends.send(message);
    const auto pushed = ends.claim(message, mark);
    REQUIRE(pushed);
    CHECK(ends.receiver.begin(message, ends.ring));
    const auto pulled = ends.receiver.claim(ends.ring);
    REQUIRE(pulled);
    CHECK(pulled->offset == 0);
    CHECK(pulled->length + pushed->length < kBytes); // What the sender claimed counts.
    ends.receiver.end(ends.ring);
    CHECK(ends.receiver.message() == nullptr);
    CHECK_FALSE(ends.claim(message, mark));
}

TEST_CASE("another message that comes is open, and what was opened ahead is not") {
    Ends ends;
    ends.learn(0);
    const Message awaited = ends.message(2);
    const Message other = ends.message(1);
    ends.receiver.open_ahead(awaited, ends.ring);
    const std::uint64_t mark = ends.send(other);
    CHECK_FALSE(ends.claim(other, mark));
    const bool by_ring = GENERATE(false, true);
    if (by_ring) {
        ends.receiver.close_ahead(ends.ring);
        CHECK(ends.receiver.message() == nullptr);
    } else {
        CHECK(ends.receiver.begin(other, ends.ring));
        CHECK(ends.receiver.message() == &other);
    }
    CHECK(ends.claim(other, mark).has_value() == !by_ring);
}

TEST_CASE("a message is closed once the sender is done with what it has claimed") {
    Ends ends;
    const Message message = ends.message(0);
    const std::uint64_t mark = ends.send(message);
    REQUIRE(ends.receiver.begin(message, ends.ring));
    const auto piece = ends.claim(message, mark);
    REQUIRE(piece);
    CHECK_FALSE(ends.receiver.close(ends.ring));
    CHECK_FALSE(ends.receiver.close(ends.ring));
    CHECK_FALSE(ends.receiver.claim(ends.ring));
    CHECK_FALSE(ends.claim(message, mark));
    CHECK(ends.receiver.message() == &message);
    ends.sender.cooperative().piece_pushed(piece->length, true);
    CHECK(ends.receiver.close(ends.ring));
    CHECK(ends.receiver.message() == nullptr);
}

} // namespace
} // namespace ucg::transport
