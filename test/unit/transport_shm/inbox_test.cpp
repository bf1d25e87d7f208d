// The receiving end alone, with a sender that stops at any point that the test chooses.
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/zeroed_memory.hpp"
#include "ucg_coll/transport/shm/link.hpp"

namespace ucg::transport {
namespace {

constexpr std::uint64_t kBytes = 200'000;
constexpr shm::CopyOffer kOffer = {true, true};
constexpr shm::CopyOffer kMappedOffer = {true, false};

/// Both ends are in this process; `segment` is the sender's.
struct Pair {
    explicit Pair(const shm::ProcessNumber& number = {}) {
        auto made = shm::Heap::create({std::uint64_t{1} << 26});
        REQUIRE(made.ok());
        heap = std::move(*made);
        shm::PeerReach reach = {segment.data(), {}, &access};
        if (number.process != 0) { // Then only its number identifies the sender.
            reach.access = nullptr;
            reach.number = number;
        }
        inbox = Inbox({lines.get(), buffers.get()}, reverse.get(), shape, bell, *heap, spare, reach,
                      {}, true, 0, lost);
        sender = shm::RingSender(lines.get(), buffers.get(), reverse.get(), shape);
    }

    Message receive(std::vector<std::byte>& data, std::uint32_t sequence) {
        Message message;
        message.data = data.data();
        message.bytes = data.size();
        message.sequence = sequence;
        message.direction = Direction::recv;
        message.state = MessageState::posted;
        return message;
    }

    shm::RingShape shape = {16, 8192};
    test::ZeroedMemory lines{shape.lines_bytes()};
    test::ZeroedMemory buffers{shape.buffers_bytes()};
    test::ZeroedMemory reverse{shape.lines_bytes()};
    std::vector<std::byte> segment = std::vector<std::byte>(100, std::byte{1});
    shm::PeerAccess access{true, true};
    shm::Doorbell bell = {};
    SpareArrivals spare;
    std::atomic<std::uint64_t> lost = 0;
    std::unique_ptr<shm::Heap> heap;
    Inbox inbox;
    shm::RingSender sender;
};

TEST_CASE("a message is declined once its sender is done with what it has claimed ahead") {
    Pair pair;
    std::vector<std::byte> first_target(pair.segment.size());
    Message first = pair.receive(first_target, 1); // With this message the sender offers to copy.
    pair.sender.send_rts(tag_of(first), {0, 1}, first.bytes, kOffer);
    pair.inbox.post(first);
    REQUIRE(first.state == MessageState::done);

    std::vector<std::byte> source(kBytes, std::byte{2});
    std::vector<std::byte> target(kBytes);
    Message message = pair.receive(target, 2);
    CHECK_FALSE(pair.inbox.post(message));
    pair.inbox.open_ahead(message);
    const std::uint64_t mark = pair.sender.send_rts(tag_of(message), {0, 0}, message.bytes, kOffer);
    const auto piece = pair.sender.cooperative().claim(
        shm::CopyEnd::sender, pair.sender.sequence(mark), name_of(message));
    REQUIRE(piece);
    pair.access.refuse_reading();
    pair.inbox.drain(Pull::now);
    CHECK_FALSE(pair.sender.declined()); // The sender may be writing into the buffer.
    pair.sender.cooperative().piece_pushed(piece->length, true);
    pair.inbox.drain(Pull::now);
    CHECK(pair.sender.declined());

    pair.sender.begin(kBytes, [](const std::byte*, std::uint64_t) { return true; });
    for (std::uint64_t moved = 0; moved < kBytes;) {
        while (moved < kBytes && !pair.sender.full_for(kBytes, moved)) {
            moved += pair.sender.send(tag_of(message), source.data(), kBytes, moved);
        }
        pair.inbox.drain(Pull::now);
    }
    CHECK(message.state == MessageState::done);
    CHECK(target == source);
}

/// Posts a receive into `target`, of which the sender has claimed a piece already.
shm::Piece claimed_ahead(Pair& pair, Message& first, Message& message) {
    pair.sender.send_rts(tag_of(first), {0, 1}, first.bytes, kMappedOffer);
    pair.inbox.post(first);
    REQUIRE(first.state == MessageState::done);
    CHECK_FALSE(pair.inbox.post(message));
    pair.inbox.open_ahead(message);
    const std::uint64_t mark =
        pair.sender.send_rts(tag_of(message), {0, 1}, message.bytes, kMappedOffer);
    const auto piece = pair.sender.cooperative().claim(
        shm::CopyEnd::sender, pair.sender.sequence(mark), name_of(message));
    REQUIRE(piece);
    return *piece;
}

TEST_CASE(
    "who takes its memory back waits for a sender that is known by its number, while it lives") {
    const bool lives = GENERATE(false, true);
    shm::ProcessNumber number = shm::own_process_number();
    if (!lives) {
        number.process = 0x7ffffffe; // No process has such a number.
    }
    Pair pair(number);
    std::vector<std::byte> first_target(pair.segment.size());
    auto target = pair.heap->lease(kBytes);
    REQUIRE(target.ok());
    Message first = pair.receive(first_target, 1);
    Message message = first;
    message.sequence = 2;
    message.data = target->data();
    message.bytes = kBytes;
    const shm::Piece piece = claimed_ahead(pair, first, message);
    std::atomic<bool> pushed = !lives;
    std::thread sender([&] {
        if (lives) {
            for (int i = 0; i < 1000; ++i) {
                std::this_thread::yield();
            }
            pushed = true;
            pair.sender.cooperative().piece_pushed(piece.length, true);
        }
    });
    CHECK(pair.inbox.fail_all() == 1);
    CHECK(pushed);
    sender.join();
    CHECK(message.state == MessageState::failed);
}

} // namespace
} // namespace ucg::transport
