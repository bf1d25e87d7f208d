// Flag slots of the shared-memory transport: what the ranks of a group share by them, and how ranks
// that run different collectives find out. The ranks are all in this thread, or they are processes.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "test/ranks/shm_group.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/support/seccomp.hpp"

namespace {

using namespace std::chrono_literals;
using namespace ucg;
using test::filled;
using test::first_ranks;
using test::kRecv;
using test::kSend;
using test::message;
using Group = test::ShmGroup;
using transport::FlagSlots;
using transport::FlagSlotSequence;
using transport::Message;
using transport::MessageState;
using transport::ShmOptions;
using transport::ShmTransport;

FlagSlots& flag_slot(const Group& group, std::size_t rank) {
    return *group.transports[rank]->flag_slots();
}

FlagSlotSequence sequence(std::uint64_t number, std::uint16_t plan = 7) {
    return {number, static_cast<std::uint32_t>(number + 100), plan};
}

std::vector<std::byte> bytes_at(const std::byte* data, std::size_t bytes) {
    return std::vector<std::byte>(data, data + bytes);
}

/// So many looks that a rank which waits in vain has compared what it waits for.
constexpr int kLooks = 3 * static_cast<int>(transport::kLooksInVain);

bool shared_at_last(const Group& group, std::size_t rank, const FlagSlotSequence& which,
                    Rank peer) {
    bool found = false;
    for (int i = 0; i < kLooks && !found; ++i) {
        found = flag_slot(group, rank).shared(which, peer, 0) != nullptr;
    }
    return found;
}

bool has_disagreed(const Group& group, std::size_t rank) {
    return group.transports[rank]->status().code() == Code::disagreement &&
           flag_slot(group, rank).broken();
}

} // namespace

TEST_CASE("transport/shm: where one rank lets nobody read its memory, nobody keeps any for that",
          "[ranks][shm]") {
    const auto taken = [](std::uint64_t first, std::uint64_t second) {
        std::vector<ShmOptions> options(2);
        options[0].staging_bytes = first;
        options[1].staging_bytes = second;
        const Group group(options);
        CHECK(group.transports[0]->staging().size() == std::min(first, second));
        return group.heaps[0]->capacity_bytes() - group.heaps[0]->free_bytes();
    };
    constexpr std::uint64_t kStaging = std::uint64_t{1} << 20;
    const std::uint64_t without = taken(0, 0);
    CHECK(taken(kStaging, 0) == without);
    CHECK(taken(0, kStaging) == without);
    CHECK(taken(kStaging, kStaging) == without + kStaging);
}

TEST_CASE("transport/shm: a rank that gets no memory for what peers read exposes nothing",
          "[ranks][shm]") {
    constexpr std::uint32_t kPopulateWrite = 23; // MADV_POPULATE_WRITE, newer than some headers.
    constexpr std::uint64_t kStaging = std::uint64_t{1} << 20;
    const auto results = test::fork_ranks(1, 30s, [](const test::ForkedRank&) -> std::string {
        ShmOptions options;
        options.staging_bytes = kStaging;
        const Group group(std::vector<ShmOptions>(2, options));
        if (!shm::backs_pages() || !test::refuse_advice(kPopulateWrite, ENOMEM)) {
            return ""; // Without backs_pages() the memory was there from the start.
        }
        if (group.transports[0]->expose(0, {}, kStaging)) {
            return "exposes what there is no memory for";
        }
        return group.transports[0]->status().code() == Code::out_of_memory ? "" : "does not say so";
    });
    INFO(results[0].output);
    CHECK(results[0].ok());
}

namespace {

/// What body(group) finds wrong in a process that gets no more memory for rings. Rank 0 already has
/// a ring with the last rank.
template <typename Body>
std::string without_rings(std::size_t ranks, Body body) {
    constexpr std::uint32_t kPopulateWrite = 23; // MADV_POPULATE_WRITE, newer than some headers.
    const auto results = test::fork_ranks(1, 30s, [&](const test::ForkedRank&) -> std::string {
        ShmOptions options;
        options.rings_at_first = 0;
        const Group group(std::vector<ShmOptions>(ranks, options));
        std::vector<std::byte> data = filled(8, 1);
        Message opens = message(kSend, static_cast<Rank>(ranks - 1), data, 0);
        group.transports[0]->post({&opens, 1});
        if (!shm::backs_pages() || !test::refuse_advice(kPopulateWrite, ENOMEM)) {
            return "";
        }
        return body(group);
    });
    return results[0].ok() ? "" : "the rank ended badly: " + results[0].output;
}

} // namespace

TEST_CASE("transport/shm: a rank that gets no memory for a ring fails what it would send",
          "[ranks][shm]") {
    CHECK(without_rings(3, [](const Group& group) -> std::string {
              std::vector<std::byte> data = filled(8, 1);
              Message sent = message(kSend, 1, data, 0);
              group.transports[0]->post({&sent, 1});
              if (sent.state != MessageState::failed) {
                  return "sends by a ring that there is no memory for";
              }
              return group.transports[0]->status().code() == Code::out_of_memory
                         ? ""
                         : "does not say so";
          }) == "");
}

TEST_CASE("transport/shm: with a message that there is no ring for all of a batch fail",
          "[ranks][shm]") {
    CHECK(
        without_rings(3, [](const Group& group) -> std::string {
            std::vector<std::byte> data = filled(8, 1);
            std::vector<std::byte> room = filled(8, 0);
            std::array<Message, 2> batch = {message(kSend, 1, data, 1), message(kRecv, 2, room, 1)};
            group.transports[0]->post(batch);
            return batch[0].state == MessageState::failed && batch[1].state == MessageState::failed
                       ? ""
                       : "waits for a message of a group that has failed";
        }) == "");
}

TEST_CASE("transport/shm: what a rank shares, all its peers read", "[ranks][shm][flag_slots]") {
    const Group group({3, 4, 9}, {});
    const std::vector<Rank> ranks = {3, 4, 9};
    CHECK(flag_slot(group, 0).bytes_max() == 8 << 10);
    const std::uint64_t length = GENERATE(0U, 1U, 8U, 32U, 33U, 8U << 10);
    const auto data = filled(length, 5);
    // So many long shares that some are copied past the caches.
    const std::uint64_t count = length < shm::kPacedBytesMin ? 40 : 600;
    for (std::uint64_t number = 0; number < count; ++number) {
        for (std::size_t from = 0; from < ranks.size(); ++from) {
            CHECK(flag_slot(group, (from + 1) % 3).shared(sequence(number), ranks[from], 0) ==
                  nullptr);
            CHECK(flag_slot(group, from).share(sequence(number), data.data(), length));
        }
        for (std::size_t from = 0; from < ranks.size(); ++from) {
            for (std::size_t to = 0; to < ranks.size(); ++to) {
                if (from != to) {
                    const std::byte* seen =
                        flag_slot(group, to).shared(sequence(number), ranks[from], length);
                    REQUIRE(seen != nullptr);
                    CHECK(bytes_at(seen, length) == data);
                }
            }
        }
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            flag_slot(group, rank).finish(number + 1);
        }
    }
}

TEST_CASE(
    "transport/shm: who is too far ahead on its flag slot is stuck until the last peer follows",
    "[ranks][shm][flag_slots]") {
    ShmOptions options;
    options.flag_slot_depth = 4;
    const Group group(first_ranks(3), options);
    const auto data = filled(8, 1);
    for (std::uint64_t number = 0; number < 4; ++number) {
        CHECK(flag_slot(group, 0).share(sequence(number), data.data(), 8));
    }
    CHECK_FALSE(group.transports[0]->stuck());
    CHECK_FALSE(flag_slot(group, 0).share(sequence(4), data.data(), 8));
    CHECK(group.transports[0]->stuck());
    flag_slot(group, 1).finish(1);
    CHECK_FALSE(flag_slot(group, 0).share(sequence(4), data.data(), 8));
    const std::byte* kept = flag_slot(group, 2).shared(sequence(0), 0, 8);
    REQUIRE(kept != nullptr);
    CHECK(bytes_at(kept, 8) == data);
    flag_slot(group, 2).finish(1);
    CHECK(flag_slot(group, 0).share(sequence(4), data.data(), 8));
    CHECK_FALSE(group.transports[0]->stuck());
}

TEST_CASE("transport/shm: who has shared may leave, and its memory waits for those who read",
          "[ranks][shm][flag_slots]") {
    Group group(first_ranks(3), {});
    const auto data = filled(GENERATE(8U, 4096U), 3);
    // The first rank's memory holds the lines of all ranks.
    const std::size_t leaves = GENERATE(0U, 2U);
    const std::size_t reads = 1;
    for (const auto& transport : group.transports) {
        transport->establish();
    }
    CHECK(flag_slot(group, leaves).share(sequence(0), data.data(), data.size()));
    const std::uint64_t free_before = group.heaps[leaves]->free_bytes();
    group.transports[leaves].reset();
    CHECK(group.heaps[leaves]->free_bytes() == free_before);
    const bool ends = GENERATE(false, true);
    // The readers are threads of the same process, so the reader's own mapping serves them.
    if (ends) {
        group.heaps[leaves].reset();
    }
    const std::byte* seen =
        flag_slot(group, reads).shared(sequence(0), static_cast<Rank>(leaves), data.size());
    REQUIRE(seen != nullptr);
    CHECK(bytes_at(seen, data.size()) == data);
    group.transports.clear();
    if (!ends) {
        CHECK(group.heaps[leaves]->free_bytes() > free_before);
    }
}

TEST_CASE("transport/shm: fewer bytes on a flag slot than are to be read are a disagreement",
          "[ranks][shm][flag_slots]") {
    const Group group(first_ranks(2), {});
    const auto data = filled(64, 1);
    const std::uint64_t shared = GENERATE(0U, 8U, 40U);
    CHECK(flag_slot(group, 0).share(sequence(0), data.data(), shared));
    CHECK(flag_slot(group, 1).shared(sequence(0), 0, shared) != nullptr);
    CHECK(flag_slot(group, 1).shared(sequence(0), 0, shared + 1) == nullptr);
    CHECK(has_disagreed(group, 1));
}

TEST_CASE(
    "transport/shm: flag slots of a host take an eighth of its bytes, and short shares always fit",
    "[ranks][shm][flag_slots]") {
    const ShmOptions options;
    const std::uint32_t ranks = GENERATE(1U, 2U, 64U, 65U, 1024U, 2048U);
    const shm::FlagSlotShape shape = transport::flag_slot_shape(ranks, options);
    CHECK(shape.depth == options.flag_slot_depth);
    CHECK(shape.slot_bytes >= kCacheLine);
    CHECK(shape.slot_bytes <= options.flag_slot_bytes_max);
    CHECK(shape.slot_bytes % kCacheLine == 0);
    CHECK(shape.lines_bytes() + ranks * shape.buffers_bytes() <= options.host_bytes_max / 8);
    if (ranks <= 2) {
        CHECK(shape.slot_bytes == options.flag_slot_bytes_max);
    }
}

TEST_CASE("transport/shm: flag slots are as deep as they are wanted, where that shortens no share",
          "[ranks][shm][flag_slots]") {
    ShmOptions deep;
    deep.flag_slot_depth = 64;
    const auto depth = [&](std::uint32_t ranks) {
        const shm::FlagSlotShape shape = transport::flag_slot_shape(ranks, deep);
        CHECK(shape.slot_bytes == transport::flag_slot_shape(ranks, {}).slot_bytes);
        return shape.depth;
    };
    CHECK(depth(2) == 64);
    CHECK(depth(15) == 64);
    CHECK(depth(16) == 32);
    CHECK(depth(32) == transport::kFlagSlotDepth);
    CHECK(depth(1024) == transport::kFlagSlotDepth);
    CHECK(transport::flag_slot_depth(0) == transport::kFlagSlotDepth);
    CHECK(transport::flag_slot_depth(100) == 64);
    CHECK(transport::flag_slot_depth(~std::uint64_t{0}) == 1024);
}

TEST_CASE("transport/shm: flag slots of different shapes are a disagreement",
          "[ranks][shm][flag_slots]") {
    auto heap = shm::Heap::create({std::uint64_t{1} << 24});
    REQUIRE(heap.ok());
    ShmOptions other;
    other.flag_slot_bytes_max = 1024;
    const std::vector<Rank> both = first_ranks(2);
    const auto first = ShmTransport::create(**heap, both, 0, {});
    const auto second = ShmTransport::create(**heap, both, 1, other);
    REQUIRE(first.ok());
    REQUIRE(second.ok());
    CHECK((*first)->connect(std::array{(*first)->address(), (*second)->address()}).code() ==
          Code::disagreement);
}

TEST_CASE("transport/shm: what is lost shares nothing any more", "[ranks][shm][flag_slots]") {
    const Group group(first_ranks(2), {});
    const auto data = filled(8, 1);
    CHECK(flag_slot(group, 0).share(sequence(0), data.data(), 8));
    CHECK_FALSE(flag_slot(group, 1).broken());
    group.transports[1]->abandon();
    CHECK(flag_slot(group, 1).broken());
    CHECK(flag_slot(group, 1).shared(sequence(0), 0, 0) == nullptr);
    CHECK_FALSE(flag_slot(group, 1).share(sequence(0), data.data(), 8));
    CHECK(flag_slot(group, 0).shared(sequence(0), 1, 0) == nullptr);
    CHECK(group.transports[1]->status().ok());
}

TEST_CASE("transport/shm: another plan or collective at a sequence number is a disagreement",
          "[ranks][shm][flag_slots]") {
    set_log_level(LogLevel::error);
    const Group group(first_ranks(2), {});
    const auto data = filled(8, 1);
    CHECK(flag_slot(group, 0).share(sequence(0, 1), data.data(), 8));
    FlagSlotSequence other = sequence(0, 1);
    SECTION("plan") {
        other.plan = 2;
    }
    SECTION("collective") {
        ++other.collective;
    }
    CHECK(flag_slot(group, 1).shared(other, 0, 0) == nullptr);
    CHECK(has_disagreed(group, 1));
    CHECK(flag_slot(group, 1).shared(sequence(0, 1), 0, 0) == nullptr);
}

TEST_CASE("transport/shm: a sequence number that a peer takes for messages is a disagreement",
          "[ranks][shm][flag_slots]") {
    set_log_level(LogLevel::error);
    ShmOptions options;
    options.flag_slot_depth = 4;
    options.rings_at_first = GENERATE(0U, 16U);
    Group group(first_ranks(3), options);
    auto data = filled(8, 3);
    auto none = filled(0, 0);
    FlagSlotSequence wanted = sequence(4, 2);
    Message sent = message(kSend, 1, data, wanted.collective);
    sent.plan = 1;
    SECTION("which waits in the ring") {
        group.transports[0]->post({&sent, 1});
        CHECK_FALSE(shared_at_last(group, 1, wanted, 0));
        CHECK(has_disagreed(group, 1));
    }
    SECTION("which came early") {
        Message later = message(kRecv, 0, none, wanted.collective + 1);
        group.transports[0]->post({&sent, 1});
        group.transports[1]->post({&later, 1});
        CHECK_FALSE(shared_at_last(group, 1, wanted, 0));
        CHECK(has_disagreed(group, 1));
        CHECK(later.state == MessageState::failed);
        CHECK(group.transports[1]->progress() == 1);
    }
    SECTION("whose place this rank waits for") {
        for (std::uint64_t number = 0; number < 4; ++number) {
            CHECK(flag_slot(group, 1).share(sequence(number), data.data(), 8));
        }
        flag_slot(group, 2).finish(4);
        group.transports[0]->post({&sent, 1});
        for (int i = 0; i < kLooks; ++i) {
            CHECK_FALSE(flag_slot(group, 1).share(wanted, data.data(), 8));
        }
        CHECK(has_disagreed(group, 1));
    }
    SECTION("while messages of the same collective, or of another, are none") {
        sent.plan = wanted.plan;
        Message earlier = message(kSend, 1, data, wanted.collective - 1);
        earlier.plan = 1;
        group.transports[0]->post({&sent, 1});
        group.transports[0]->post({&earlier, 1});
        CHECK_FALSE(shared_at_last(group, 1, wanted, 0));
        CHECK(group.transports[1]->status().ok());
    }
}

TEST_CASE("transport/shm: who sleeps finds a disagreement in few looks, whatever else it looks at",
          "[ranks][shm][flag_slots]") {
    set_log_level(LogLevel::error);
    const Group group(first_ranks(2), {});
    auto data = filled(8, 3);
    const FlagSlotSequence wanted = sequence(1, 2);
    Message sent = message(kSend, 1, data, wanted.collective);
    sent.plan = 1;
    group.transports[0]->post({&sent, 1});
    group.transports[1]->sleeping(1);
    const bool messages = GENERATE(false, true);
    const int before = GENERATE(0, 1, 3);
    const int after = GENERATE(0, 1, 2);
    CAPTURE(messages, before, after);
    const auto look_elsewhere = [&](int times) {
        for (int i = 0; i < times; ++i) {
            if (messages) {
                group.transports[1]->progress();
            } else {
                flag_slot(group, 1).shared(sequence(0), 0, 0);
            }
        }
    };
    const int rounds = 6 * static_cast<int>(transport::kLooksAsleep);
    for (int i = 0; i < rounds && !flag_slot(group, 1).broken(); ++i) {
        look_elsewhere(before);
        CHECK(flag_slot(group, 1).shared(wanted, 0, 0) == nullptr);
        look_elsewhere(after);
    }
    CHECK(has_disagreed(group, 1));
    group.transports[1]->sleeping(0);
}

TEST_CASE("transport/shm: pages of what a group has shared are not kept with its memory",
          "[ranks][shm][flag_slots]") {
    if (!shm::backs_pages()) {
        return; // The pages were there from the start.
    }
    Group group(first_ranks(2), {});
    for (const auto& transport : group.transports) {
        transport->establish();
    }
    const auto data = filled(4096, 3);
    REQUIRE(flag_slot(group, 0).share(sequence(0), data.data(), data.size()));
    const std::byte* const seen = flag_slot(group, 1).shared(sequence(0), 0, data.size());
    REQUIRE(seen != nullptr);
    const std::uint64_t into_page = reinterpret_cast<std::uintptr_t>(seen) % shm::page_bytes();
    const auto has_page = [page = seen - into_page] {
        unsigned char state = 0;
        REQUIRE(::mincore(const_cast<std::byte*>(page), shm::page_bytes(), &state) == 0);
        return state % 2 == 1;
    };
    CHECK(has_page());
    group.transports.clear();
    group.heaps[0]->collect();
    CHECK_FALSE(has_page());
}

TEST_CASE("transport/shm: a message awaited from a peer that shares is a disagreement",
          "[ranks][shm][flag_slots]") {
    set_log_level(LogLevel::error);
    const Group group(first_ranks(3), {});
    auto data = filled(8, 3);
    auto target = filled(8, 0);
    const FlagSlotSequence shared = sequence(5, 2);
    Message awaited = message(kRecv, 0, target, shared.collective);
    awaited.plan = 1;
    const auto look = [&] {
        unsigned events = 0;
        for (int i = 0; i < kLooks; ++i) {
            events += group.transports[1]->progress();
        }
        return events;
    };
    SECTION("in the same collective") {
        CHECK(flag_slot(group, 0).share(shared, data.data(), 8));
        group.transports[1]->post({&awaited, 1});
        CHECK(look() == 1);
        CHECK(awaited.state == MessageState::failed);
        CHECK(has_disagreed(group, 1));
    }
    SECTION("but not if it is the same plan's, or of a sequence number that is over") {
        const bool same = GENERATE(false, true);
        awaited.plan = same ? shared.plan : awaited.plan;
        CHECK(flag_slot(group, 0).share(shared, data.data(), 8));
        flag_slot(group, 1).finish(shared.sequence + (same ? 0 : 1));
        group.transports[1]->post({&awaited, 1});
        CHECK(look() == 0);
        CHECK(awaited.state == MessageState::posted);
        CHECK(group.transports[1]->status().ok());
        Message late = message(kSend, 1, data, shared.collective);
        late.plan = awaited.plan;
        group.transports[0]->post({&late, 1});
        CHECK(group.transports[1]->progress() == 1);
        CHECK(target == data);
    }
}

namespace {

/// One process of a group that sleeps while it waits for flag slots only.
class Sleepy {
  public:
    Sleepy(const test::ForkedRank& rank, std::uint64_t seed) : rank_(rank), seed_(seed) {
        ShmOptions options;
        options.flag_slot_depth = 4;
        options.flag_slot_bytes_max = 256;
        heap_ = shm::Heap::create({std::uint64_t{1} << 26}).value();
        const auto ranks = first_ranks(static_cast<Rank>(rank.size()));
        transport_ = ShmTransport::create(*heap_, ranks, rank.rank(), options).value();
        const transport::ShmAddress mine = transport_->address();
        std::vector<transport::ShmAddress> all;
        for (const std::string& text :
             rank.exchange({reinterpret_cast<const char*>(&mine), sizeof(mine)})) {
            std::memcpy(&all.emplace_back(), text.data(), sizeof(mine));
        }
        connected_ = transport_->connect(all).ok();
    }

    std::string run(std::uint64_t sequences) {
        std::string error = connected_ ? "" : "not connected";
        for (std::uint64_t number = 0; number < sequences && error.empty(); ++number) {
            error = take_sequence(number);
            transport_->finish(number + 1);
        }
        rank_.barrier();
        return error;
    }

  private:
    /// Whether a rank shares: now and then all do; else one does for a while and gets ahead of
    /// those that only read.
    bool shares(std::uint64_t number, Rank rank) const {
        return (number + seed_) % 8 == 0 ||
               (number / 64) % static_cast<std::uint64_t>(rank_.size()) ==
                   static_cast<std::uint64_t>(rank);
    }
    static std::vector<std::byte> data(std::uint64_t number, Rank rank) {
        return filled(number * 11 % 257, static_cast<int>(number * 3) + rank);
    }

    std::string take_sequence(std::uint64_t number) {
        const auto mine = data(number, rank_.rank());
        if (shares(number, rank_.rank()) &&
            !await([&] { return transport_->share(sequence(number), mine.data(), mine.size()); })) {
            return "slept too long for room";
        }
        for (Rank peer = 0; peer < rank_.size(); ++peer) {
            if (peer == rank_.rank() || !shares(number, peer)) {
                continue;
            }
            const std::byte* seen = nullptr;
            if (!await([&] {
                    return (seen = transport_->shared(sequence(number), peer, 0)) != nullptr;
                })) {
                return "slept too long for a share";
            }
            const auto wanted = data(number, peer);
            if (bytes_at(seen, wanted.size()) != wanted) {
                return "read something else";
            }
        }
        return {};
    }

    /// Sleeps until the condition holds; false if a nap other than the first ended by its time-out.
    template <typename Condition>
    bool await(Condition condition) {
        shm::Sleeper& sleeper = *heap_->sleeper().value();
        bool seen = condition();
        transport_->sleeping(seen ? 0 : 1);
        announced_ = {}; // An earlier announcement did not follow this look.
        while (!seen) {
            announced_ = sleeper.announce(
                transport_->stuck() ? shm::Awaits::both : shm::Awaits::message, announced_);
            seen = condition();
            if (!seen) {
                sleeper.nap(announced_, 10s);
            }
            if (sleeper.counts().timed_out > 0) {
                return false;
            }
        }
        return true;
    }

    const test::ForkedRank& rank_;
    std::uint64_t seed_;
    std::unique_ptr<shm::Heap> heap_;
    std::unique_ptr<ShmTransport> transport_;
    bool connected_ = false;
    shm::Announcement announced_;
};

} // namespace

TEST_CASE("transport/shm: processes asleep are woken for shares and for room",
          "[ranks][shm][flag_slots]") {
    const int size = GENERATE(2, 3, 4);
    const std::uint64_t seed = GENERATE(0U, 1U);
    CAPTURE(size, seed);
    const auto results = test::fork_ranks(
        size, 60s, [&](const test::ForkedRank& rank) { return Sleepy(rank, seed).run(2000); });
    for (const test::RankResult& result : results) {
        INFO(result.output);
        CHECK(result.ok());
    }
}
