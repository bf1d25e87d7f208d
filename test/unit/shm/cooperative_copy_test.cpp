#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "shm/cooperative_copy.hpp"
#include "test/support/catch.hpp"

using namespace ucg::shm;

namespace {

MessageName of_length(std::uint64_t bytes) {
    return {42, bytes};
}

} // namespace

TEST_CASE("shm/cooperative_copy: pieces cover a message once, whatever its length", "[shm]") {
    const std::uint64_t bytes =
        GENERATE(std::uint64_t{1}, std::uint64_t{16384}, std::uint64_t{16385}, std::uint64_t{65536},
                 std::uint64_t{1000003}, std::uint64_t{4} << 20, (std::uint64_t{60} << 30) + 1);
    REQUIRE((bytes <= kPieceMin || CooperativeCopy::serves(bytes)));
    CooperativeCopy cooperative{};
    cooperative.open(3, of_length(bytes), {});
    std::uint64_t front = 0;
    std::uint64_t back = bytes;
    for (int i = 0; front < back; ++i) {
        const CopyEnd end = i % 3 == 0 ? CopyEnd::sender : CopyEnd::receiver;
        const auto piece = cooperative.claim(end, 3, of_length(bytes));
        REQUIRE(piece);
        REQUIRE(piece->length > 0);
        REQUIRE(piece->length <= kPieceMax);
        if (end == CopyEnd::receiver) {
            REQUIRE(piece->offset == front);
            front += piece->length;
        } else {
            REQUIRE(piece->offset + piece->length == back);
            back = piece->offset;
        }
    }
    CHECK(front == back);
    CHECK_FALSE(cooperative.claim(CopyEnd::sender, 3, of_length(bytes)));
    CHECK_FALSE(cooperative.claim(CopyEnd::receiver, 3, of_length(bytes)));
    CHECK(cooperative.close(3, bytes) == bytes - back);
}

TEST_CASE("shm/cooperative_copy: nobody claims of another sequence number, nor of a closed message",
          "[shm]") {
    constexpr std::uint64_t kBytes = 1 << 20;
    CooperativeCopy cooperative{};
    // The memory is zero: no message is open.
    CHECK_FALSE(cooperative.claim(CopyEnd::sender, 0, of_length(kBytes)));
    cooperative.open(1, of_length(kBytes), {100, 0});
    CHECK_FALSE(cooperative.claim(CopyEnd::receiver, 2, of_length(kBytes)));
    REQUIRE(cooperative.claim(CopyEnd::sender, 1, of_length(kBytes)));
    CHECK(cooperative.target().at(8).address == 108);
    CHECK(cooperative.close(1, kBytes) == kBytes / 2);
    CHECK_FALSE(cooperative.claim(CopyEnd::sender, 1, of_length(kBytes)));
    cooperative.open(2, of_length(kBytes), {});
    CHECK_FALSE(cooperative.claim(CopyEnd::sender, 1, of_length(kBytes)));
    CHECK(cooperative.claim(CopyEnd::receiver, 2, of_length(kBytes))->offset == 0);
}

TEST_CASE(
    "shm/cooperative_copy: a message of another name or length is not the one that was opened",
    "[shm]") {
    constexpr std::uint64_t kBytes = 1 << 20;
    CooperativeCopy cooperative{};
    cooperative.open(1, {5, kBytes}, {100, 0});
    CHECK_FALSE(cooperative.is_open(1, {6, kBytes}));
    CHECK_FALSE(cooperative.claim(CopyEnd::sender, 1, {6, kBytes}));
    CHECK_FALSE(cooperative.claim(CopyEnd::sender, 1, {5, kBytes - 1}));
    CHECK(cooperative.close(1, kBytes) == 0);
    cooperative.open(1, {6, kBytes}, {200, 0}); // This is the message that has come instead.
    CHECK(cooperative.is_open(1, {6, kBytes}));
    CHECK_FALSE(cooperative.claim(CopyEnd::sender, 1, {5, kBytes}));
    REQUIRE(cooperative.claim(CopyEnd::sender, 1, {6, kBytes}));
    CHECK(cooperative.target().address == 200);
}

TEST_CASE("shm/cooperative_copy: a message that is over is nobody's, whatever its sequence number",
          "[shm]") {
    CooperativeCopy cooperative{};
    constexpr std::uint64_t kSequence = 5;
    constexpr std::uint64_t kBytes = 1 << 20;
    cooperative.open(kSequence, of_length(kBytes), {});
    // Half is left to claim.
    REQUIRE(cooperative.claim(CopyEnd::receiver, kSequence, of_length(kBytes)));
    // The number is that of another message, so nothing is closed.
    CHECK(cooperative.close(kSequence + 1, kBytes) == 0);
    CHECK(cooperative.close(kSequence, kBytes) == 0);
    CHECK_FALSE(cooperative.claim(CopyEnd::sender, kSequence, of_length(kBytes)));
    CHECK_FALSE(cooperative.claim(CopyEnd::sender, kSequence + (1 << 15), of_length(kBytes)));
}

TEST_CASE(
    "shm/cooperative_copy: a piece that could not be pushed is told, and forgotten by the next",
    "[shm]") {
    CooperativeCopy cooperative{};
    cooperative.open(1, of_length(200), {});
    cooperative.piece_pushed(100, true);
    CHECK(cooperative.pushed().bytes == 100);
    CHECK_FALSE(cooperative.pushed().failed);
    cooperative.piece_pushed(50, false);
    CHECK(cooperative.pushed().bytes == 150);
    CHECK(cooperative.pushed().failed);
    cooperative.open(2, of_length(200), {});
    CHECK(cooperative.pushed().bytes == 0);
    CHECK_FALSE(cooperative.pushed().failed);
}

TEST_CASE("shm/cooperative_copy: two threads share many messages, and each byte comes once",
          "[shm]") {
    constexpr std::uint64_t kBytes = 200000;
    constexpr std::uint64_t kSequences = 200;
    CooperativeCopy cooperative{};
    std::vector<std::uint8_t> source(kBytes);
    std::vector<std::uint8_t> target(kBytes);
    std::atomic<std::uint64_t> taken = 0;
    const auto copy = [&](const Piece& piece) {
        for (std::uint64_t i = piece.offset; i < piece.offset + piece.length; ++i) {
            target[i] = static_cast<std::uint8_t>(target[i] + source[i]);
        }
    };
    std::thread sender([&] {
        for (std::uint64_t sequence = 1; sequence <= kSequences; ++sequence) {
            while (taken.load(std::memory_order_acquire) < sequence) {
                if (const auto piece =
                        cooperative.claim(CopyEnd::sender, sequence, of_length(kBytes))) {
                    copy(*piece);
                    cooperative.piece_pushed(piece->length, true);
                } else {
                    std::this_thread::yield();
                }
            }
        }
    });
    std::uint64_t wrong = 0;
    for (std::uint64_t sequence = 1; sequence <= kSequences; ++sequence) {
        std::fill(source.begin(), source.end(), static_cast<std::uint8_t>(sequence));
        std::fill(target.begin(), target.end(), std::uint8_t{0});
        cooperative.open(sequence, of_length(kBytes), {});
        std::uint64_t own = 0;
        while (const auto piece =
                   cooperative.claim(CopyEnd::receiver, sequence, of_length(kBytes))) {
            copy(*piece);
            own += piece->length;
        }
        while (own + cooperative.pushed().bytes < kBytes) {
            std::this_thread::yield();
        }
        for (const std::uint8_t byte : target) {
            wrong += byte == static_cast<std::uint8_t>(sequence) ? 0 : 1;
        }
        cooperative.close(sequence, kBytes);
        taken.store(sequence, std::memory_order_release);
    }
    sender.join();
    CHECK(wrong == 0);
}
