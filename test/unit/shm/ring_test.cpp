#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "shm/ring.hpp"
#include "shm/wait.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace ucg::shm;

/// Zeroed memory for one ring.
class RingMemory {
  public:
    explicit RingMemory(const RingShape& shape) : lines_bytes_(shape.lines_bytes()) {
        const std::uint64_t bytes =
            ucg::round_up(lines_bytes_ + shape.buffers_bytes(), alignof(RingCredit));
        bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(alignof(RingCredit), bytes)));
        std::memset(bytes_.get(), 0, bytes);
    }
    std::byte* get() const { return bytes_.get(); }
    std::byte* buffers() const { return bytes_.get() + lines_bytes_; }

  private:
    struct Free {
        void operator()(std::byte* bytes) const { std::free(bytes); }
    };
    std::uint64_t lines_bytes_;
    std::unique_ptr<std::byte, Free> bytes_;
};

std::vector<std::byte> numbered(std::uint64_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) {
        data[i] = static_cast<std::byte>(i * 7 + 1);
    }
    return data;
}

} // namespace

TEST_CASE("shm/ring: zeroed memory is an empty ring", "[shm]") {
    const RingShape shape = {4, 128};
    const RingMemory memory(shape);
    CHECK_FALSE(RingReceiver(memory.get(), memory.buffers(), memory.get(), shape).ready());
    CHECK_FALSE(RingSender(memory.get(), memory.buffers(), memory.get(), shape).full());
}

TEST_CASE("shm/ring: messages of every length arrive with their tag, around the ring", "[shm]") {
    const RingShape shape = {4, GENERATE(128U, 1024U, 1088U)};
    const RingMemory memory(shape);
    RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
    RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
    for (std::uint64_t length = 0; length <= shape.slot_bytes; ++length) {
        const auto sent = numbered(length);
        std::vector<std::byte> got(length + 1, std::byte{0});
        REQUIRE_FALSE(sender.full());
        CHECK(sender.send(length + 5, sent.data(), length, 0) == length);
        REQUIRE(receiver.ready());
        CHECK(receiver.tag() == length + 5);
        CHECK(receiver.message_bytes() == length);
        CHECK(receiver.receive(got.data(), 0) == length);
        CHECK(got.back() == std::byte{0});
        got.pop_back();
        CHECK(got == sent);
    }
}

TEST_CASE("shm/ring: buffers are backed as far as messages need them", "[shm]") {
    const RingShape shape = {16, 16 << 10};
    const RingMemory memory(shape);
    RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
    RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
    std::uint64_t backed = 0;
    const auto back = [&](const std::byte* data, std::uint64_t bytes) {
        CHECK(data >= memory.buffers());
        CHECK(data + bytes <= memory.buffers() + shape.buffers_bytes());
        backed += bytes;
        return true;
    };
    const auto send = [&](std::uint64_t bytes) {
        backed = 0;
        const auto sent = numbered(bytes);
        std::vector<std::byte> got(bytes);
        sender.begin(bytes, back);
        for (std::uint64_t moved = 0, taken = 0; moved < bytes;) {
            moved += sender.send(1, sent.data(), bytes, moved);
            taken += receiver.receive(got.data(), taken);
        }
        CHECK(got == sent);
        return backed;
    };
    CHECK(send(40) == 0);
    CHECK_FALSE(sender.has_backed());
    CHECK(send(41) == 1024);
    CHECK(sender.has_backed());
    CHECK(send(4096) == 4096);
    CHECK(send(8192) == 16 << 10); // This takes a whole buffer.
    CHECK(send(32 << 10) == 2 * (16 << 10));
    CHECK(send(1 << 20) > 0); // It goes around the ring and takes all of it.
    CHECK(send(1 << 20) == 0);
    CHECK(send(700) == 0);
    CHECK(send((16 << 10) + 200) == 0);
}

TEST_CASE("shm/ring: each buffer has pages before a fragment lies there, however deep the ring is",
          "[shm]") {
    const RingShape shape = {GENERATE(16U, 32U, 64U, 128U), GENERATE(512U, 4096U, 8192U)};
    CAPTURE(shape.depth, shape.slot_bytes);
    BackedBuffers buffers(shape);
    std::vector<bool> backed(shape.buffers_bytes());
    for (std::uint64_t n = 0; n < 2 * shape.depth; ++n) {
        buffers.prepare(n, shape.slot_bytes, 0, [&](std::uint64_t offset, std::uint64_t bytes) {
            std::fill_n(backed.begin() + static_cast<std::ptrdiff_t>(offset), bytes, true);
            return true;
        });
        const auto buffer =
            backed.begin() + static_cast<std::ptrdiff_t>(shape.buffer_offset(n, shape.slot_bytes));
        REQUIRE(std::count(buffer, buffer + shape.slot_bytes, true) == shape.slot_bytes);
    }
}

TEST_CASE("shm/ring: short messages travel whole, longer ones in two parts at least", "[shm]") {
    const RingShape shape = {16, 16 << 10};
    CHECK(fragment_bytes(shape, 0, 4096, 0) == 4096);
    CHECK(fragment_bytes(shape, 0, 8192, 0) == 8192);
    CHECK(fragment_bytes(shape, 0, 8200, 0) == 4160); // Each is about a half, in whole cache lines.
    CHECK(fragment_bytes(shape, 1, 8200, 4160) == 4040);
    CHECK(fragment_bytes(shape, 0, 64 << 10, 0) == 16 << 10);
    CHECK(fragment_bytes({16, 1024}, 0, 8192, 0) == 1024);
}

TEST_CASE("shm/ring: where pages are short, messages go in shorter pieces", "[shm]") {
    const RingShape shape = {4, GENERATE(64U, 512U, 16384U)};
    const std::uint64_t longest_backed = GENERATE(0U, 1024U);
    const RingMemory memory(shape);
    RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
    RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
    const auto back = [&](const std::byte* /*data*/, std::uint64_t bytes) {
        return bytes <= longest_backed;
    };
    for (const std::uint64_t bytes : {0U, 40U, 41U, 1000U, 3000U, 70000U}) {
        CAPTURE(bytes);
        const auto sent = numbered(bytes);
        std::vector<std::byte> got(bytes);
        sender.begin(bytes, back);
        std::uint64_t moved = 0;
        do {
            const std::uint64_t length = sender.send(7, sent.data(), bytes, moved);
            CHECK(length <= std::max<std::uint64_t>(longest_backed, kInlineBytes));
            REQUIRE(receiver.ready());
            CHECK(receiver.message_bytes() == bytes);
            CHECK(receiver.receive(got.data(), moved) == length);
            moved += length;
        } while (moved < bytes);
        CHECK(got == sent);
    }
}

TEST_CASE("shm/ring: more long buffers than slots, once the ring has gone around", "[shm]") {
    const RingShape shape = {4, 8192, GENERATE(16U, 256U)};
    const RingMemory memory(shape);
    RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
    RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
    std::vector<bool> backed(shape.buffers_bytes() / kShortBytes, false);
    const auto back = [&](const std::byte* data, std::uint64_t bytes) {
        const auto first = static_cast<std::uint64_t>(data - memory.buffers()) / kShortBytes;
        std::fill_n(backed.begin() + static_cast<std::ptrdiff_t>(first), bytes / kShortBytes, true);
        return true;
    };
    std::set<std::uint64_t> used;
    std::uint64_t n = 0;
    const auto send = [&](std::uint64_t bytes) {
        const auto sent = numbered(bytes);
        std::vector<std::byte> got(bytes);
        sender.begin(bytes, back);
        std::uint64_t taken = 0;
        for (std::uint64_t moved = 0; moved < bytes; ++n) {
            const std::uint64_t offset =
                shape.buffer_offset(n, fragment_bytes(shape, n, bytes, moved));
            CHECK(backed[offset / kShortBytes]);
            used.insert(offset);
            if (sender.full()) { // As much is in flight as may be.
                taken += receiver.receive(got.data(), taken);
            }
            REQUIRE_FALSE(sender.full());
            moved += sender.send(1, sent.data(), bytes, moved);
        }
        while (taken < bytes) {
            taken += receiver.receive(got.data(), taken);
        }
        CHECK(got == sent);
    };
    send(10 * 8192);
    CHECK(used.size() == shape.depth);
    for (const std::uint64_t bytes : {5U << 20, 20000U, 700U, 5000U, 100000U, 4096U, 1U << 20}) {
        send(bytes);
    }
    CHECK(used.size() > shape.buffers);
}

TEST_CASE("shm/ring: buffers are used again first that were used last", "[shm]") {
    const RingShape shape = {16, 8192};
    const RingMemory memory(shape);
    RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
    sender.reuse_buffers();
    RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
    std::set<std::uint64_t> backed;
    const auto back = [&](const std::byte* data, std::uint64_t) {
        const auto offset = static_cast<std::uint64_t>(data - memory.buffers());
        if (offset >= shape.long_offset(0)) {
            backed.insert(offset);
        }
        return true;
    };
    std::vector<std::vector<std::byte>> on_their_way;
    const auto send = [&](std::uint64_t bytes) {
        on_their_way.push_back(numbered(bytes));
        sender.begin(bytes, back);
        for (std::uint64_t moved = 0; moved < bytes;) {
            REQUIRE_FALSE(sender.full_for(bytes, moved));
            moved += sender.send(1, on_their_way.back().data(), bytes, moved);
        }
    };
    const auto receive_all = [&] {
        for (const auto& sent : on_their_way) {
            std::vector<std::byte> got(sent.size());
            for (std::uint64_t taken = 0; taken < got.size();) {
                taken += receiver.receive(got.data(), taken);
            }
            CHECK(got == sent);
        }
        on_their_way.clear();
    };
    for (int i = 0; i < 100; ++i) { // Each message has two fragments.
        send(10000);
        receive_all();
    }
    CHECK(backed.size() == 4);
    // Buffers stay in use until the receiver has read them; all of them may be in flight.
    for (const int count : {1, 3, 8, 2, 5, 7, 1}) {
        for (int i = 0; i < count; ++i) {
            send(10000 + 16 * static_cast<std::uint64_t>(i));
        }
        receive_all();
    }
    CHECK(backed.size() == shape.depth);
}

TEST_CASE("shm/ring: fragments on their way have a buffer each", "[shm]") {
    const RingShape shape = {4, 8192, 16};
    for (std::uint64_t n = 0; n < 400; ++n) {
        for (std::uint64_t later = n + 1; later < n + shape.depth; ++later) {
            for (const std::uint64_t bytes : {4096U, 8192U}) {
                CHECK(shape.buffer_offset(n, 8192) != shape.buffer_offset(later, bytes));
                CHECK(shape.buffer_offset(n, bytes) != shape.buffer_offset(later, 8192));
            }
        }
    }
}

TEST_CASE("shm/ring: a full ring refuses until the receiver releases", "[shm]") {
    const RingShape shape = {4, 64};
    const RingMemory memory(shape);
    RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
    RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
    std::vector<std::byte> unused(shape.slot_bytes);
    for (int i = 0; i < 4; ++i) {
        REQUIRE_FALSE(sender.full());
        sender.send(static_cast<std::uint64_t>(i), unused.data(), 0, 0);
    }
    CHECK(sender.full());
    REQUIRE(receiver.ready());
    receiver.receive(unused.data(), 0);
    CHECK_FALSE(sender.full());
    sender.send(4, unused.data(), 0, 0);
    CHECK(sender.full());
}

TEST_CASE("shm/ring: two threads pass long messages in fragments", "[shm]") {
    const RingShape shape = {4, 128};
    const RingMemory memory(shape);
    const auto data = numbered(100000);
    std::vector<std::byte> got(data.size());
    std::thread other([&] {
        RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
        Waiter waiter(2, 1);
        for (std::uint64_t moved = 0; moved < data.size();) {
            if (sender.full()) {
                waiter.idle();
            } else {
                moved += sender.send(1, data.data(), data.size(), moved);
            }
        }
    });
    RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
    Waiter waiter(2, 1);
    for (std::uint64_t moved = 0; moved < data.size();) {
        if (receiver.ready()) {
            moved += receiver.receive(got.data(), moved);
        } else {
            waiter.idle();
        }
    }
    other.join();
    CHECK(got == data);
}

TEST_CASE("shm/ring: buffers of a ring lie apart from one another, and within it", "[shm]") {
    const RingShape shape = {8, GENERATE(64U, 1024U, 1088U, 16384U), GENERATE(0U, 32U)};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> buffers;
    for (std::uint64_t index = 0; index < shape.long_buffers(); ++index) {
        if (index < shape.depth && shape.short_bytes() > 0) {
            buffers.emplace_back(shape.buffer_offset(index, 1), shape.short_bytes());
            CHECK(shape.buffer_offset(index, shape.short_bytes()) == buffers.back().first);
        }
        buffers.emplace_back(shape.long_offset(index), shape.slot_bytes);
    }
    std::sort(buffers.begin(), buffers.end());
    std::uint64_t end = 0;
    for (const auto& [offset, bytes] : buffers) {
        CHECK(offset == end);
        end = offset + bytes;
    }
    CHECK(end == shape.buffers_bytes());
}

TEST_CASE("shm/ring: fragments cover a message, the last is the rest", "[shm]") {
    const RingShape shape = {GENERATE(4U, 16U), GENERATE(512U, 4096U, 16384U)};
    const std::uint64_t bytes = GENERATE(1U, 40U, 4096U, 4097U, 8192U, 16385U, 65537U, 1U << 20);
    const std::uint64_t flags = GENERATE(std::uint64_t{0}, kCutLong);
    for (std::uint64_t n = 0; n < 2 * kRunSlots; ++n) {
        std::uint64_t moved = 0;
        for (std::uint64_t slot = n; moved < bytes;) {
            const std::uint64_t length = fragment_bytes(shape, slot, bytes, moved, flags);
            const std::uint64_t slots = slots_of(shape, length);
            REQUIRE(length > 0);
            REQUIRE(length <= slots * shape.slot_bytes);
            if (slots > 1) { // A run does not go around the ring.
                const bool is_short = slots == kShortRunSlots;
                REQUIRE((is_short ? flags == kCutLong : slots == kRunSlots));
                REQUIRE(slot % shape.depth + slots <= shape.depth);
                REQUIRE(bytes >= (is_short ? kShortRunsOfMessage : kRunsOfMessage) * length);
            }
            slot += slots;
            moved += length;
        }
        CHECK(moved == bytes);
    }
}

TEST_CASE("shm/ring: runs begin where they lie right, and the message is long enough", "[shm]") {
    const RingShape shape = {4 * kRunSlots, 512};
    const std::uint64_t run_bytes = kRunSlots * 512;
    const std::uint64_t bytes = kRunsOfMessage * run_bytes;
    CHECK(run_slots(shape, 0, bytes, run_bytes, 0) == kRunSlots);
    CHECK(run_slots(shape, kRunSlots, bytes, bytes, 0) == kRunSlots);
    CHECK(run_slots(shape, 1, bytes, run_bytes, 0) == 1);
    CHECK(run_slots(shape, 0, bytes - 1, run_bytes, 0) == 1);
    CHECK(run_slots(shape, 0, bytes, run_bytes - 1, 0) == 1);
    CHECK(run_slots(shape, 0, bytes, run_bytes, kCutShort) == 1);
    CHECK(run_slots(shape, 0, bytes, run_bytes, kCutToLines) == 1);
    CHECK(run_slots({2 * kRunSlots, 512}, 0, bytes, run_bytes, kCutLong) == 1);
}

TEST_CASE("shm/ring: where the receiver is far, messages have fewer pieces", "[shm]") {
    const RingShape shape = {16, 16384};
    const auto pieces = [&](std::uint64_t bytes, std::uint64_t flags) {
        std::vector<std::uint64_t> lengths;
        std::uint64_t slot = 0;
        for (std::uint64_t moved = 0; moved < bytes; moved += lengths.back()) {
            lengths.push_back(fragment_bytes(shape, slot, bytes, moved, flags));
            slot += slots_of(shape, lengths.back());
        }
        return lengths;
    };
    using Lengths = std::vector<std::uint64_t>;
    CHECK(pieces(16384, 0) == Lengths{8192, 8192});
    CHECK(pieces(16384, kCutLong) == Lengths{16384});
    CHECK(pieces(32768, kCutLong) == Lengths{16384, 16384});
    CHECK(pieces(65536, 0) == Lengths{16384, 16384, 16384, 16384});
    CHECK(pieces(65536, kCutLong) == Lengths{32768, 32768});
    CHECK(pieces(81920, kCutLong) == Lengths{32768, 32768, 16384});
    CHECK(pieces(262144, 0) == pieces(262144, kCutLong));
}

TEST_CASE("shm/ring: a sender never waits for a run while its receiver has taken everything",
          "[shm]") {
    const RingShape shape = {16, 1088};
    const RingMemory memory(shape);
    const auto data = numbered(40000);
    std::vector<std::byte> got(data.size());
    for (std::uint64_t before = 0; before < 2 * shape.depth; ++before) {
        std::memset(memory.get(), 0, shape.lines_bytes());
        RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
        RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
        for (std::uint64_t i = 0; i < before; ++i) {
            REQUIRE_FALSE(sender.full());
            sender.send(1, data.data(), 8, 0);
            receiver.receive(got.data(), 0);
        }
        unsigned runs = 0;
        std::uint64_t taken = 0;
        for (std::uint64_t moved = 0; moved < data.size();) {
            if (sender.full_for(data.size(), moved)) {
                REQUIRE(receiver.ready());
                taken += receiver.receive(got.data(), taken);
                continue;
            }
            const std::uint64_t length = sender.send(1, data.data(), data.size(), moved);
            runs += length > shape.slot_bytes ? 1 : 0;
            moved += length;
        }
        while (taken < data.size()) {
            REQUIRE(receiver.ready());
            taken += receiver.receive(got.data(), taken);
        }
        CHECK(got == data);
        CHECK(runs >= data.size() / (kRunSlots * shape.slot_bytes) - 1);
    }
}

TEST_CASE("shm/ring: senders of long messages learn how far the receiver is", "[shm]") {
    const std::uint64_t bytes = GENERATE(1000U, 5000U); // They go in one fragment, or in two.
    const RingShape shape = {4, 8192, 16};
    const RingMemory memory(shape);
    RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
    RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
    const auto data = numbered(bytes);
    std::vector<std::byte> got(bytes);
    const auto send = [&](unsigned messages) {
        for (unsigned i = 0; i < messages; ++i) {
            for (std::uint64_t moved = 0; moved < bytes;) {
                REQUIRE_FALSE(sender.full_for(bytes, moved));
                const std::uint64_t length = sender.send(1, data.data(), bytes, moved);
                CHECK(receiver.receive(got.data(), moved) == length);
                moved += length;
            }
            CHECK(got == data);
        }
    };
    const auto becomes_far = [&](std::uint64_t bytes_min, std::uint32_t near_ns) {
        sender.learn_distance(bytes_min, near_ns);
        send(100);
        return sender.receiver_far();
    };
    // However long a read takes here, the receiver is far by one of these limits.
    bool by_any = false;
    for (std::uint32_t near_ns = 1; near_ns < (1U << 24) && !by_any; near_ns *= 2) {
        CHECK_FALSE(becomes_far(bytes + 1, near_ns)); // These messages are too short to count.
        by_any = becomes_far(bytes, near_ns);
    }
    CHECK(by_any);
    CHECK_FALSE(becomes_far(bytes, 1U << 31));
}

TEST_CASE("shm/ring: to a far receiver messages go in fewer pieces, all of which have pages",
          "[shm]") {
    constexpr std::uint64_t kPage = 4096;
    const RingShape shape = {16, 16384, 16};
    const RingMemory memory(shape);
    RingSender sender(memory.get(), memory.buffers(), memory.get(), shape);
    RingReceiver receiver(memory.get(), memory.buffers(), memory.get(), shape);
    const auto data = numbered(65536);
    std::vector<std::byte> got(data.size());
    std::vector<bool> backed(ucg::divide_up(shape.buffers_bytes(), kPage));
    const auto pages = [&](const std::byte* first, std::uint64_t bytes) {
        const auto offset = static_cast<std::uint64_t>(first - memory.buffers());
        return std::pair(offset / kPage, ucg::divide_up(offset + bytes, kPage));
    };
    const auto back = [&](const std::byte* first, std::uint64_t bytes) {
        for (auto [page, end] = pages(first, bytes); page < end; ++page) {
            backed[page] = true;
        }
        return true;
    };
    const auto pieces = [&](std::uint64_t bytes) {
        unsigned count = 0;
        sender.begin(bytes, back);
        for (std::uint64_t moved = 0; moved < bytes; ++count) {
            REQUIRE_FALSE(sender.full_for(bytes, moved));
            const std::uint64_t length = sender.send(1, data.data(), bytes, moved);
            const std::span<const std::byte> fragment = receiver.fragment(moved);
            REQUIRE(fragment.size() == length);
            for (auto [page, end] = pages(fragment.data(), length); page < end; ++page) {
                REQUIRE(backed[page]);
            }
            REQUIRE(receiver.receive(got.data(), moved) == length);
            moved += length;
        }
        CHECK(std::equal(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(bytes),
                         data.begin()));
        return count;
    };
    CHECK(pieces(16384) == 2);
    CHECK(pieces(65536) == 4);
    for (std::uint32_t near_ns = 1; near_ns < (1U << 24) && !sender.receiver_far(); near_ns *= 2) {
        sender.learn_distance(kWholeBytes + 1, near_ns);
        for (unsigned i = 0; i < 100; ++i) {
            pieces(16384);
        }
    }
    REQUIRE(sender.receiver_far());
    CHECK(pieces(16384) == 1);
    CHECK(pieces(65536) <= 3);                   // It takes two where the first may be a run.
    sender.learn_distance(~std::uint64_t{0}, 0); // Now nothing is known about the distance.
    CHECK(pieces(16384) == 2);
    CHECK(pieces(65536) == 4);
}

TEST_CASE("shm/ring: a message whose RTS was sent is the sender's until it was taken", "[shm]") {
    const RingShape shape = {4, 64};
    const RingMemory memory(shape);
    const RingMemory reverse(shape);
    RingSender sender(memory.get(), memory.buffers(), reverse.get(), shape);
    RingReceiver receiver(memory.get(), memory.buffers(), reverse.get(), shape);
    CHECK_FALSE(sender.receiver_reads());
    receiver.offer_reading();
    REQUIRE(sender.receiver_reads());

    const auto data = numbered(1000);
    const RemoteBytes place = {reinterpret_cast<std::uintptr_t>(data.data()), 0};
    const std::uint64_t mark = sender.send_rts(9, place, data.size(), {true, false});
    REQUIRE(receiver.ready());
    CHECK(receiver.tag() == 9);
    CHECK(receiver.message_bytes() == data.size());
    CHECK(receiver.sequence() == sender.sequence(mark));
    CHECK_FALSE(receiver.help().reaches({1, 0}));
    CHECK(receiver.help().reaches({1, 1}));
    REQUIRE(receiver.elsewhere());
    CHECK(receiver.elsewhere()->address == place.address);
    CHECK_FALSE(sender.taken(mark));
    receiver.take();
    CHECK(sender.taken(mark));
    CHECK_FALSE(sender.taken_slowly());
    for (const bool slowly : {true, false}) {
        const std::uint64_t next = sender.send_rts(9, place, data.size(), {true, false});
        CHECK_FALSE(sender.taken(next));
        receiver.taking_slowly(slowly);
        receiver.take();
        CHECK(sender.taken(next));
        CHECK(sender.taken_slowly() == slowly);
    }

    sender.send(10, data.data(), 8, 0);
    REQUIRE(receiver.ready());
    CHECK_FALSE(receiver.elsewhere());
    CHECK(receiver.message_bytes() == 8);
}

TEST_CASE("shm/ring: as many messages are remembered as there are marks", "[shm]") {
    const RingShape shape = {4, 64};
    const RingMemory memory(shape);
    const RingMemory reverse(shape);
    RingSender sender(memory.get(), memory.buffers(), reverse.get(), shape);
    RingReceiver receiver(memory.get(), memory.buffers(), reverse.get(), shape);
    const RemoteBytes place = {0, 1};
    std::vector<std::uint64_t> marks;
    std::vector<ReadLater> later;
    while (!sender.all_marked()) {
        REQUIRE_FALSE(sender.full());
        marks.push_back(sender.send_rts(marks.size(), place, 1000, {}));
        REQUIRE(receiver.ready());
        later.push_back(receiver.remember());
    }
    REQUIRE(marks.size() == RingFin::kMarks);
    // Messages that come by the ring meanwhile, read in any order, do not end another message.
    std::byte byte = {};
    sender.send(9, &byte, 1, 0);
    REQUIRE(receiver.ready());
    receiver.receive(&byte, 0);
    for (std::size_t i = marks.size(); i-- > 0;) {
        const std::size_t at = i * 5 % marks.size();
        CHECK_FALSE(sender.taken(marks[at]));
        receiver.take(later[at]);
        CHECK(sender.passed(marks[at]));
        if (i % 2 == 0) {
            CHECK(sender.taken(marks[at]));
            CHECK_FALSE(sender.all_marked());
        }
    }
    // A mark is used again once the sender knows that the message which had it was read.
    const std::uint64_t again = sender.send_rts(9, place, 1000, {});
    CHECK_FALSE(sender.taken(again));
    REQUIRE(receiver.ready());
    receiver.take();
    CHECK(sender.taken(again));
}
