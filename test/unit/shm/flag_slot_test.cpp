#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "shm/flag_slot.hpp"
#include "shm/wait.hpp"
#include "test/support/catch.hpp"
#include "test/support/zeroed_memory.hpp"

namespace {

using namespace ucg::shm;

/// The flag slots of some ranks, each of which reads those of all others.
struct FlagSlots {
    ucg::test::ZeroedMemory lines;
    std::vector<ucg::test::ZeroedMemory> buffers;
    std::vector<FlagSlotWriter> writers;
    std::vector<FlagSlotReader> readers; ///< The index is the owner.

    explicit FlagSlots(const FlagSlotShape& shape) : lines(shape.lines_bytes()) {
        for (std::uint32_t i = 0; i < shape.ranks; ++i) {
            buffers.emplace_back(shape.buffers_bytes());
            writers.emplace_back(lines.get(), shape, i, buffers[i].get());
            readers.emplace_back(lines.get(), shape, i, buffers[i].get());
        }
    }
};

/// What `rank` shares under a sequence number: sometimes nothing, otherwise something short or
/// long.
std::vector<std::byte> share_of(std::uint64_t seed, std::uint64_t sequence, std::size_t rank,
                                std::uint64_t bytes_max) {
    std::mt19937_64 random(seed * 1000003 + sequence * 131 + rank);
    const std::uint64_t length =
        random() % 2 == 0 ? random() % (kFlagSlotInlineBytes + 1) : random() % (bytes_max + 1);
    std::vector<std::byte> data(length);
    for (std::byte& byte : data) {
        byte = static_cast<std::byte>(random());
    }
    return data;
}

} // namespace

TEST_CASE("shm/flag_slot: zeroed memory is an empty flag slot with room for all its slots",
          "[shm]") {
    const FlagSlotShape shape = {2, 4, 128};
    FlagSlots flag_slots(shape);
    for (std::uint64_t sequence = 0; sequence < 9; ++sequence) {
        CHECK_FALSE(flag_slots.readers[0].holds(sequence));
        CHECK(flag_slots.writers[0].has_room(sequence) == (sequence < 4));
    }
}

TEST_CASE("shm/flag_slot: shares of every length are read, around the flag slot", "[shm]") {
    const FlagSlotShape shape = {3, 4, 128};
    FlagSlots flag_slots(shape);
    for (std::uint64_t sequence = 0; sequence <= 128; ++sequence) {
        const auto data = share_of(1, sequence, sequence % 3, 128);
        FlagSlotWriter& writer = flag_slots.writers[sequence % 3];
        const FlagSlotReader& reader = flag_slots.readers[sequence % 3];
        REQUIRE(writer.has_room(sequence));
        CHECK_FALSE(reader.holds(sequence));
        const bool waits = sequence % 2 != 0;
        writer.write(sequence, sequence + 5, data.data(), data.size(), waits);
        REQUIRE(reader.holds(sequence));
        CHECK_FALSE(reader.holds(sequence + 4));
        CHECK(reader.stamp(sequence) == sequence + 5);
        CHECK(reader.bytes(sequence) == data.size());
        CHECK(std::vector<std::byte>(reader.data(sequence), reader.data(sequence) + data.size()) ==
              data);
        for (FlagSlotWriter& each : flag_slots.writers) {
            each.finish(sequence + 1);
        }
    }
}

TEST_CASE("shm/flag_slot: every byte of a share has a page, wherever in a page the buffers begin",
          "[shm]") {
    constexpr std::uint64_t kPage = 4096;
    const FlagSlotShape shape = {2, 2, 2 * kPage};
    const ucg::test::ZeroedMemory lines(shape.lines_bytes());
    alignas(kPage) static std::array<std::byte, 6 * kPage> memory;
    const auto page_of = [](const std::byte* byte) {
        return reinterpret_cast<std::uintptr_t>(byte) / kPage;
    };
    for (const std::uint64_t start : {std::uint64_t{0}, kPage / 2, kPage - 64}) {
        FlagSlotWriter writer(lines.get(), shape, 0, memory.data() + start);
        std::set<std::uintptr_t> pages;
        const auto back = [&](std::byte* data, std::uint64_t bytes) {
            for (std::uintptr_t page = page_of(data); page <= page_of(data + bytes - 1); ++page) {
                pages.insert(page);
            }
            return true;
        };
        for (const std::uint64_t bytes : {std::uint64_t{64}, kPage / 2, kPage, 2 * kPage}) {
            REQUIRE(writer.prepare(0, bytes, back));
            const std::byte* const buffer = memory.data() + start;
            CHECK(pages.contains(page_of(buffer)));
            CHECK(pages.contains(page_of(buffer + bytes - 1)));
        }
    }
}

TEST_CASE("shm/flag_slot: nothing is shared as a null pointer of no bytes", "[shm]") {
    FlagSlots flag_slots({2, 2, 64});
    REQUIRE(flag_slots.writers[0].has_room(0));
    flag_slots.writers[0].write(0, 1, nullptr, 0, false);
    CHECK(flag_slots.readers[0].holds(0));
    CHECK(flag_slots.readers[0].bytes(0) == 0);
}

TEST_CASE("shm/flag_slot: sequence numbers may be shared in any order, and left out", "[shm]") {
    FlagSlots flag_slots({2, 4, 64});
    const auto data = share_of(2, 0, 0, kFlagSlotInlineBytes);
    for (const std::uint64_t sequence : {3U, 0U, 1U}) {
        REQUIRE(flag_slots.writers[0].has_room(sequence));
        flag_slots.writers[0].write(sequence, sequence, data.data(), data.size(), false);
    }
    CHECK(flag_slots.readers[0].holds(0));
    CHECK(flag_slots.readers[0].holds(1));
    CHECK_FALSE(flag_slots.readers[0].holds(2));
    CHECK(flag_slots.readers[0].holds(3));
    CHECK(flag_slots.writers[1].finish(4));
    CHECK(flag_slots.writers[0].has_room(6));
    flag_slots.writers[0].write(6, 6, data.data(), data.size(), false);
    CHECK(flag_slots.readers[0].holds(6));
    CHECK_FALSE(flag_slots.readers[0].holds(5));
}

TEST_CASE("shm/flag_slot: a sequence number has room when the last peer is done with the one "
          "before it there",
          "[shm]") {
    FlagSlots flag_slots({4, 4, 64});
    FlagSlotWriter& writer = flag_slots.writers[1];
    CHECK(writer.has_room(3));
    CHECK_FALSE(writer.has_room(4));
    for (const std::size_t peer : {3U, 0U}) {
        flag_slots.writers[peer].finish(2);
        CHECK_FALSE(writer.has_room(4));
    }
    CHECK(writer.last_peer() == 2);
    flag_slots.writers[2].finish(1);
    CHECK(writer.has_room(4));
    CHECK_FALSE(writer.has_room(5));
    flag_slots.writers[2].finish(5);
    CHECK(writer.has_room(5));
    CHECK_FALSE(writer.has_room(6));
    CHECK(writer.last_peer() != 2);
}

TEST_CASE("shm/flag_slot: who is done says so every quarter of the flag slot", "[shm]") {
    const std::uint32_t depth = GENERATE(2U, 4U, 16U);
    const std::uint64_t quarter = std::max(1U, depth / 4);
    FlagSlots flag_slots({2, depth, 64});
    for (std::uint64_t sequence = 1; sequence < 100; ++sequence) {
        CHECK(flag_slots.writers[1].finish(sequence) == (sequence % quarter == 0));
        CHECK(flag_slots.writers[1].done() == sequence);
        // So a peer that is not ahead always finds three quarters of the flag slot free.
        CHECK(flag_slots.writers[0].has_room(sequence + depth - quarter));
        CHECK_FALSE(flag_slots.writers[0].has_room(sequence + depth));
    }
}

TEST_CASE("shm/flag_slot: stamps from a sequence number on are those of no earlier one", "[shm]") {
    FlagSlots flag_slots({2, 4, 64});
    for (std::uint64_t sequence = 0; sequence < 3; ++sequence) {
        flag_slots.writers[0].write(sequence, 10 + sequence, nullptr, 0, false);
    }
    const std::uint64_t first = GENERATE(0U, 1U, 2U, 3U);
    std::vector<std::uint64_t> seen;
    flag_slots.readers[0].each_stamp(first, [&](std::uint64_t stamp) { seen.push_back(stamp); });
    std::vector<std::uint64_t> expected;
    for (std::uint64_t sequence = first; sequence < 3; ++sequence) {
        expected.push_back(10 + sequence);
    }
    CHECK(seen == expected);
}

namespace {

/// Tells a rank that waits for ever from one whose processor other programs take for a while.
class Progress {
  public:
    explicit Progress(const std::atomic<std::uint64_t>& finished) : finished_(finished) {}

    /// Has no rank finished a sequence number for half a minute?
    bool stalled() {
        const auto now = std::chrono::steady_clock::now();
        if (const std::uint64_t finished = finished_.load(std::memory_order_relaxed);
            finished != seen_) {
            seen_ = finished;
            since_ = now;
        }
        return now - since_ > std::chrono::seconds(30);
    }

  private:
    const std::atomic<std::uint64_t>& finished_;
    std::uint64_t seen_ = 0;
    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

/// One rank of a stress test: it opens up to `window` sequence numbers at a time, shares them in
/// random order, and reads all peers' shares of each, in random order as well.
struct Rank {
    enum class Habit { both, reads, shares, late };

    FlagSlots& flag_slots;
    /// How many sequence numbers all ranks together have finished.
    std::atomic<std::uint64_t>& finished_by_all;
    std::size_t self;
    std::uint64_t seed;
    std::uint64_t sequences;
    std::uint64_t window;
    std::uint64_t bytes_max;
    std::vector<Habit> habits; ///< The habits of all ranks.

    struct Open {
        std::uint64_t sequence = 0;
        bool shared = false;
        std::vector<bool> read;
    };

    bool wrong_ = false;

    void share(Open& open) {
        FlagSlotWriter& writer = flag_slots.writers[self];
        if (!open.shared && writer.has_room(open.sequence)) {
            const auto data = share_of(seed, open.sequence, self, bytes_max);
            writer.write(open.sequence, open.sequence * 3, data.data(), data.size(), false);
            open.shared = true;
        }
    }

    void read(Open& open, std::size_t peer) {
        const FlagSlotReader& reader = flag_slots.readers[peer];
        if (open.read[peer] || !reader.holds(open.sequence)) {
            return;
        }
        const auto data = share_of(seed, open.sequence, peer, bytes_max);
        wrong_ = wrong_ || reader.stamp(open.sequence) != open.sequence * 3 ||
                 reader.bytes(open.sequence) != data.size() ||
                 (!data.empty() &&
                  std::memcmp(reader.data(open.sequence), data.data(), data.size()) != 0);
        open.read[peer] = true;
    }

    bool over(const Open& open) const {
        return open.shared &&
               std::find(open.read.begin(), open.read.end(), false) == open.read.end();
    }

    Open opened(std::uint64_t sequence) const {
        Open open = {sequence, habits[self] == Habit::reads, {}};
        for (std::size_t peer = 0; peer < habits.size(); ++peer) {
            open.read.push_back(peer == self || habits[self] == Habit::shares ||
                                habits[peer] == Habit::reads);
        }
        return open;
    }

    /// Empty if every share was right and all sequence numbers were finished.
    std::string run() {
        std::mt19937_64 random(seed + self);
        std::vector<Open> open;
        Waiter waiter(static_cast<unsigned>(habits.size()), 1);
        Progress progress{finished_by_all};
        std::uint64_t next = 0;
        std::uint64_t finished = 0;
        for (std::uint64_t rounds = 0; finished < sequences && !wrong_; ++rounds) {
            while (next < sequences && open.size() < window) {
                open.push_back(opened(next++));
            }
            Open& any = open[random() % open.size()];
            if (habits[self] != Habit::late || random() % 64 == 0) {
                share(any);
                read(any, random() % habits.size());
            }
            while (!open.empty() && over(open.front())) {
                open.erase(open.begin());
                flag_slots.writers[self].finish(++finished);
                finished_by_all.fetch_add(1, std::memory_order_relaxed);
            }
            // When a processor is yielded beside a process that computes, it comes back only after
            // milliseconds. A rank that is late on purpose does something in one of 64 rounds, so
            // it yields in fewer of them.
            if (rounds % (habits[self] == Habit::late ? 1024 : 16) == 0) {
                waiter.idle();
                if (progress.stalled()) {
                    return stuck(open.front(), finished);
                }
            }
        }
        return wrong_ ? "rank " + std::to_string(self) + " read something else" : "";
    }

    std::string stuck(const Open& front, std::uint64_t finished) const {
        std::string text =
            "rank " + std::to_string(self) + " finished " + std::to_string(finished) +
            " sequence numbers and waits for ever at number " + std::to_string(front.sequence) +
            ", " + (front.shared ? "shared" : "not shared") + ", read:";
        for (const bool each : front.read) {
            text += each ? " yes" : " no";
        }
        return text;
    }
};

} // namespace

TEST_CASE("shm/flag_slot: threads share overlapping sequence numbers; some lag, some only read",
          "[shm]") {
    using Habit = Rank::Habit;
    const std::uint64_t seed = GENERATE(1U, 2U);
    const std::uint32_t depth = GENERATE(2U, 4U, 16U);
    const auto habits = GENERATE(std::vector<Habit>{Habit::both, Habit::both},
                                 std::vector<Habit>{Habit::both, Habit::reads, Habit::both},
                                 std::vector<Habit>{Habit::late, Habit::shares, Habit::reads});
    CAPTURE(seed, depth, habits.size());
    FlagSlots flag_slots({static_cast<std::uint32_t>(habits.size()), depth, 256});
    std::vector<std::string> complaints(habits.size());
    std::atomic<std::uint64_t> finished{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < habits.size(); ++i) {
        threads.emplace_back([&, i] {
            // More numbers are open than the flag slot has slots, so some wait for room.
            complaints[i] = Rank{flag_slots, finished, i, seed, 1000, 2 * depth, 256, habits}.run();
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const std::string& complaint : complaints) {
        CHECK(complaint == "");
    }
}
