// The shared-memory transport between threads of one process, each with its own heap. The code is
// the same as between processes, but a thread sanitizer can follow it.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/ranks/shm_group.hpp"
#include "test/ranks/shm_pattern.hpp"

namespace {

using namespace ucg;
using transport::Message;
using transport::MessageState;
using Group = test::ShmGroup;
using test::filled;
using test::first_ranks;
using test::kRecv;
using test::kSend;
using test::message;
using test::settle;
using transport::ShmAddress;
using transport::ShmOptions;
using transport::ShmTransport;

} // namespace

TEST_CASE("transport/shm: threads exchange random messages", "[ranks][shm]") {
    test::TrafficPattern pattern;
    pattern.rank_count = GENERATE(2, 3, 4);
    pattern.seed = GENERATE(21U, 22U, 23U);
    pattern.sizes = {0, 1, 40, 41, 64, 4096, (64 << 10) + 1};
    ShmOptions options;
    options.depth = GENERATE(2U, 16U);
    options.slot_bytes_max = 1024;
    options.single_copy_bytes_min = pattern.seed == 22 ? 64 : ~std::uint64_t{0};
    // Messages are copied once as long as reads say so, which take about this long.
    if (pattern.seed == 23) {
        options.single_copy_bytes_min = 1 << 30;
        options.far_copy_bytes_min = 64;
        options.near_ns = 30;
    }
    options.rings_at_first = GENERATE(0U, 16U);
    Group group(first_ranks(pattern.rank_count), options);
    std::vector<std::string> errors(group.transports.size());
    group.run([&](std::size_t i) {
        test::PatternRank mine(pattern, static_cast<Rank>(i));
        errors[i] = mine.run(*group.transports[i], shm::Waiter(8, 1));
    });
    for (const std::string& error : errors) {
        CHECK(error.empty());
    }
}

TEST_CASE("transport/shm: a short message is complete on return from post", "[ranks][shm]") {
    Group group(first_ranks(2), {});
    auto source = filled(8, 5);
    auto target = filled(8, 0);
    Message send = message(kSend, 1, source, 0);
    Message recv = message(kRecv, 0, target, 0);
    group.transports[0]->post({&send, 1});
    CHECK(send.state == MessageState::done);
    group.transports[1]->post({&recv, 1});
    CHECK(recv.state == MessageState::done);
    CHECK(target == source);
    CHECK(group.transports[0]->progress() == 0);
    CHECK(group.transports[1]->progress() == 0);
}

TEST_CASE("transport/shm: messages nobody awaits stay in the ring and hold the sender back",
          "[ranks][shm]") {
    ShmOptions options;
    options.depth = 4;
    Group group(first_ranks(2), options);
    auto source = filled(8, 1);
    std::vector<Message> sends;
    for (std::uint16_t step = 0; step < 6; ++step) {
        sends.push_back(message(kSend, 1, source, 0, step));
    }
    group.transports[0]->post(sends);
    settle(group);
    CHECK(sends[3].state == MessageState::done);
    CHECK(sends[4].state == MessageState::posted);
    auto target = filled(8, 0);
    std::vector<Message> recvs;
    for (std::uint16_t step = 0; step < 6; ++step) {
        recvs.push_back(message(kRecv, 0, target, 0, step));
    }
    group.transports[1]->post(recvs);
    settle(group);
    CHECK(sends[5].state == MessageState::done);
    CHECK(recvs[5].state == MessageState::done);
}

TEST_CASE("transport/shm: an awaited message is found behind others", "[ranks][shm]") {
    // The longest message needs several rings' worth of fragments, so it is adopted half received.
    const std::uint64_t bytes = GENERATE(0U, 8U, 5000U, 300000U);
    ShmOptions options;
    options.depth = 4;
    Group group(first_ranks(2), options);
    auto first = filled(bytes, 1);
    auto second = filled(16, 2);
    std::vector<Message> sends = {message(kSend, 1, first, 7), message(kSend, 1, second, 8)};
    group.transports[0]->post(sends);
    auto target_second = filled(16, 0);
    Message wanted = message(kRecv, 0, target_second, 8);
    group.transports[1]->post({&wanted, 1});
    auto target_first = filled(bytes, 0);
    Message late = message(kRecv, 0, target_first, 7);
    const bool post_half_way = GENERATE(false, true);
    if (post_half_way) {
        group.transports[1]->post({&late, 1});
    }
    settle(group);
    CHECK(wanted.state == MessageState::done);
    CHECK(target_second == second);
    if (!post_half_way) {
        group.transports[1]->post({&late, 1});
    }
    settle(group);
    CHECK(late.state == MessageState::done);
    CHECK(target_first == first);
}

TEST_CASE("transport/shm: a message whose RTS came early stays with its sender", "[ranks][shm]") {
    constexpr std::uint32_t kEarly = 70;         // The marks are in more than one word.
    constexpr std::uint64_t kBytes = 1200 << 10; // The message is read in two pieces.
    ShmOptions options;
    options.depth = 128;
    Group group(first_ranks(2), options);
    if (group.transports[0]->single_copy_peers() == 0) {
        return;
    }
    std::vector<std::vector<std::byte>> data;
    std::vector<Message> sends;
    for (std::uint32_t i = 0; i <= kEarly; ++i) {
        data.push_back(filled(kBytes, static_cast<int>(i) + 1));
    }
    for (std::uint32_t i = 0; i <= kEarly; ++i) {
        // The last message belongs to the collective that is due.
        sends.push_back(message(kSend, 1, data[i], i == kEarly ? 0 : i + 1));
    }
    auto target = filled(kBytes, 0);
    Message due = message(kRecv, 0, target, 0);
    group.transports[0]->post(sends);
    group.transports[1]->post({&due, 1});
    settle(group);
    CHECK(due.state == MessageState::done);
    CHECK(target == data[kEarly]);
    CHECK(sends[kEarly].state == MessageState::done);
    const auto is_posted = [](const Message& message) {
        return message.state == MessageState::posted;
    };
    CHECK(std::count_if(sends.begin(), sends.end(), is_posted) ==
          static_cast<std::ptrdiff_t>(kEarly));
    for (const std::uint32_t i :
         {3U, 0U, 69U, 64U, 17U, 1U, 2U}) { // The receives come in any order.
        Message late = message(kRecv, 0, target, i + 1);
        group.transports[1]->post({&late, 1});
        settle(group);
        CHECK(late.state == MessageState::done);
        CHECK(target == data[i]);
        CHECK(sends[i].state == MessageState::done);
    }
    group.transports[0]->abandon();
    group.transports[1]->abandon();
}

TEST_CASE("transport/shm: channels and steps tell messages apart", "[ranks][shm]") {
    Group group(first_ranks(2), {});
    auto data = filled(8, 3);
    auto none = filled(0, 0);
    std::vector<Message> sends = {message(kSend, 1, none, 0), message(kSend, 1, data, 0)};
    sends[0].channel = transport::kSignalChannel;
    group.transports[0]->post(sends);
    auto target = filled(8, 0);
    std::vector<Message> recvs = {message(kRecv, 0, target, 0), message(kRecv, 0, none, 0)};
    recvs[1].channel = transport::kSignalChannel;
    group.transports[1]->post(recvs);
    settle(group);
    CHECK(recvs[0].state == MessageState::done);
    CHECK(recvs[1].state == MessageState::done);
    CHECK(target == data);
}

TEST_CASE("transport/shm: different plans for one collective are a disagreement", "[ranks][shm]") {
    set_log_level(LogLevel::error);
    Group group(first_ranks(2), {});
    auto data = filled(8, 3);
    auto target = filled(8, 0);
    auto none = filled(0, 0);
    Message sent = message(kSend, 1, none, 0);
    sent.channel = transport::kSignalChannel;
    sent.plan = 1;
    Message awaited = message(kRecv, 0, target, 0);
    awaited.plan = 2;
    Message before = message(kRecv, 0, none, 0);
    before.sequence = awaited.sequence + 1; // This one moves what was sent to the early arrivals.
    SECTION("awaited before it comes") {
        group.transports[1]->post({&awaited, 1});
        group.transports[0]->post({&sent, 1});
    }
    SECTION("awaited when it has come") {
        group.transports[0]->post({&sent, 1});
        settle(group);
        group.transports[1]->post({&awaited, 1});
    }
    SECTION("awaited when it has come early") {
        group.transports[0]->post({&sent, 1});
        group.transports[1]->post({&before, 1});
        settle(group);
        group.transports[1]->post({&awaited, 1});
    }
    settle(group);
    CHECK(awaited.state == MessageState::failed);
    CHECK(group.transports[1]->status().code() == Code::disagreement);
}

TEST_CASE("transport/shm: lengths that disagree fail the group and are explained", "[ranks][shm]") {
    set_log_level(LogLevel::error);
    Group group(first_ranks(2), {});
    auto source = filled(8, 1);
    auto target = filled(16, 0);
    auto other = filled(4, 0);
    Message send = message(kSend, 1, source, 0);
    std::vector<Message> recvs = {message(kRecv, 0, target, 0), message(kRecv, 0, other, 1)};
    const bool early = GENERATE(false, true);
    group.transports[0]->post({&send, 1});
    if (early) {
        std::swap(recvs[0], recvs[1]);
    }
    group.transports[1]->post(recvs);
    unsigned failed = 0;
    for (int i = 0; i < 4; ++i) {
        failed += group.transports[1]->progress();
    }
    CHECK(failed == 2);
    CHECK(recvs[0].state == MessageState::failed);
    CHECK(recvs[1].state == MessageState::failed);
    CHECK(group.transports[1]->status().code() == Code::disagreement);
    Message again = message(kSend, 0, source, 2);
    group.transports[1]->post({&again, 1});
    CHECK(again.state == MessageState::failed);
    CHECK(group.transports[1]->progress() == 1);
}

TEST_CASE("transport/shm: who waits for a rank that has disagreed learns of it", "[ranks][shm]") {
    set_log_level(LogLevel::error);
    Group group(first_ranks(3), {});
    auto source = filled(8, 1);
    auto target = filled(16, 0);
    Message send = message(kSend, 1, source, 0);
    Message wrong = message(kRecv, 0, target, 0);
    Message next = message(kRecv, 1, target, 0);
    group.transports[2]->post({&next, 1});
    group.transports[0]->post({&send, 1});
    group.transports[1]->post({&wrong, 1});
    for (std::uint32_t i = 0; i < 3 * transport::kLooksInVain; ++i) {
        group.transports[1]->progress();
        group.transports[2]->progress();
    }
    CHECK(wrong.state == MessageState::failed);
    CHECK(next.state == MessageState::failed);
    CHECK(group.transports[2]->status().code() == Code::disagreement);
}

TEST_CASE("transport/shm: who waits for a rank that another transport failed learns of it",
          "[ranks][shm]") {
    set_log_level(LogLevel::error);
    Group group(first_ranks(2), {});
    auto target = filled(8, 0);
    Message awaited = message(kRecv, 0, target, 0);
    group.transports[1]->post({&awaited, 1});
    group.transports[0]->abandon();
    for (std::uint32_t i = 0; i < 3 * transport::kLooksInVain; ++i) {
        group.transports[1]->progress();
    }
    CHECK(awaited.state == MessageState::failed);
    CHECK(group.transports[1]->status().code() == Code::io_error);
}

TEST_CASE("transport/shm: ranks of a host need not follow one another", "[ranks][shm]") {
    Group group({3, 17, 90}, {});
    for (std::size_t from = 0; from < 3; ++from) {
        for (std::size_t to = 0; to < 3; ++to) {
            if (from == to) {
                continue;
            }
            const std::vector<Rank> ranks = {3, 17, 90};
            auto source = filled(100, static_cast<int>(from * 3 + to));
            auto target = filled(100, 0);
            Message send = message(kSend, ranks[to], source, 0);
            Message recv = message(kRecv, ranks[from], target, 0);
            group.transports[from]->post({&send, 1});
            group.transports[to]->post({&recv, 1});
            CHECK(recv.state == MessageState::done);
            CHECK(target == source);
        }
    }
}

TEST_CASE("transport/shm: buffers in the heap are seen by peers, others are not", "[ranks][shm]") {
    Group group(first_ranks(2), {});
    const auto lease = group.heaps[0]->lease(100);
    REQUIRE(lease.ok());
    auto own = filled(100, 1);
    constexpr std::uint32_t kSequence = 200;
    using graph::BufferKind;
    const transport::PeerMemory& reader = *group.transports[1];
    CHECK(reader.peer_buffer(0, BufferKind::input, kSequence).data == nullptr);
    CHECK(group.transports[0]->is_mapped_by_peers(lease->data() + 8, 92));
    CHECK_FALSE(group.transports[0]->is_mapped_by_peers(own.data(), own.size()));
    REQUIRE(group.transports[0]->expose(
        kSequence, {{{lease->data() + 8, false}, {own.data(), false}, {lease->data() + 16, true}}},
        0));
    lease->data()[8] = std::byte{42};
    const transport::SharedBuffer seen = reader.peer_buffer(0, BufferKind::input, kSequence);
    REQUIRE(seen.data != nullptr);
    CHECK(*seen.data == std::byte{42});
    CHECK_FALSE(seen.staging_buffer);
    CHECK(reader.peer_buffer(0, BufferKind::output, kSequence).data == nullptr);
    const transport::SharedBuffer staging = reader.peer_buffer(0, BufferKind::scratch, kSequence);
    CHECK(staging.data == seen.data + 8);
    CHECK(staging.staging_buffer);
    CHECK(reader.peer_buffer(0, BufferKind::input, kSequence + 64).data == nullptr);
}

TEST_CASE("transport/shm: staging that one rank does not have, none has", "[ranks][shm]") {
    auto small = shm::Heap::create({std::uint64_t{1} << 26});
    auto large = shm::Heap::create({std::uint64_t{1} << 26});
    REQUIRE((small.ok() && large.ok()));
    ShmOptions with;
    with.staging_bytes = 1 << 20;
    const std::vector<Rank> both = first_ranks(2);
    const auto first = ShmTransport::create(**small, both, 0, {});
    const auto second = ShmTransport::create(**large, both, 1, with);
    REQUIRE((first.ok() && second.ok()));
    const std::uint64_t before = (*large)->free_bytes();
    const std::vector<ShmAddress> addresses = {(*first)->address(), (*second)->address()};
    Status other;
    std::thread peer([&] { other = (*first)->connect(addresses); });
    CHECK((*second)->connect(addresses).ok());
    peer.join();
    CHECK(other.ok());
    CHECK((*second)->staging().empty());
    CHECK((*large)->free_bytes() == before + with.staging_bytes);
}

TEST_CASE("transport/shm: settings that differ are a disagreement", "[ranks][shm]") {
    auto heap = shm::Heap::create({std::uint64_t{1} << 24});
    REQUIRE(heap.ok());
    const auto ranks = first_ranks(2);
    ShmOptions other;
    other.depth = 8;
    const auto first = ShmTransport::create(**heap, ranks, 0, {});
    const auto second = ShmTransport::create(**heap, ranks, 1, other);
    REQUIRE(first.ok());
    REQUIRE(second.ok());
    const std::vector<ShmAddress> addresses = {(*first)->address(), (*second)->address()};
    CHECK((*first)->connect(addresses).code() == Code::disagreement);
    CHECK((*second)->connect(addresses).code() == Code::disagreement);
}

TEST_CASE("transport/shm: a heap that is too small is a status, and nothing stays leased",
          "[ranks][shm]") {
    auto heap = shm::Heap::create({std::uint64_t{1} << 16});
    REQUIRE(heap.ok());
    const std::vector<Rank> eight = first_ranks(8);
    const auto made = ShmTransport::create(**heap, eight, 0, {});
    CHECK(made.status().code() == Code::out_of_memory);
    CHECK((*heap)->free_bytes() == (*heap)->capacity_bytes());
}

TEST_CASE("transport/shm: rings shrink with the ranks so that a host's share is bounded",
          "[ranks][shm]") {
    ShmOptions options;
    options.ring_bytes =
        GENERATE(std::uint64_t{256} << 10, std::uint64_t{2} << 20, ~std::uint64_t{0});
    for (const std::uint32_t count : {1U, 2U, 4U, 16U, 48U, 96U, 128U, 192U}) {
        CAPTURE(count);
        const auto shape = transport::ring_shape(count, options);
        CHECK(shape.slot_bytes % kCacheLine == 0);
        CHECK(shape.slot_bytes >= options.slot_bytes_min);
        CHECK(shape.depth >= 4);
        const std::uint64_t all =
            std::uint64_t{count} * (count - 1) *
            (shape.lines_bytes() + shape.buffers_bytes() - sizeof(shm::RingCredit));
        CHECK((all <= options.host_bytes_max || shape.slot_bytes == options.slot_bytes_min));
    }
    CHECK(transport::ring_shape(2, {}) == shm::RingShape{16, 16 << 10, 16});
    options.ring_bytes = 2 << 20;
    CHECK(transport::ring_shape(4, options) == shm::RingShape{16, 16 << 10, 128});
    CHECK(transport::ring_shape(16, options).long_buffers() == 16);
}

TEST_CASE("transport/shm: a message is read where it arrives, in the ring or at its sender",
          "[ranks][shm]") {
    const bool mapped = GENERATE(false, true);
    const std::uint64_t bytes = 100000;
    ShmOptions options;
    options.single_copy_bytes_min = ~std::uint64_t{0};
    Group group(first_ranks(2), options);
    auto source = filled(bytes, 1);
    for (std::uint64_t i = 0; i < bytes; ++i) {
        source[i] = static_cast<std::byte>(i * 31 + i / 4096);
    }
    auto lease = group.heaps[0]->lease(bytes);
    REQUIRE(lease.ok());
    std::copy(source.begin(), source.end(), lease->data());
    auto target = filled(bytes, 0);
    Message send = message(kSend, 1, source, 0);
    send.data = mapped ? lease->data() : source.data();
    Message recv = message(kRecv, 0, target, 0);
    recv.read_on_arrival = true;
    group.transports[0]->post({&send, 1});
    group.transports[1]->post({&recv, 1});
    unsigned parts = 0;
    for (int i = 0; i < 200; ++i) {
        group.transports[0]->progress();
        group.transports[1]->progress();
        if (recv.state == MessageState::part) {
            CHECK(recv.data[recv.taken] == std::byte{0}); // Nothing was copied there.
            std::copy_n(recv.part, recv.part_bytes, target.begin() + static_cast<long>(recv.taken));
            CHECK((mapped || recv.part_bytes % kCacheLine == 0 ||
                   recv.taken + recv.part_bytes == bytes));
            recv.taken += recv.part_bytes;
            group.transports[1]->take_part(recv);
            ++parts;
        }
    }
    CHECK(parts == (mapped ? 1U : 7U));
    CHECK(recv.state == MessageState::done);
    CHECK(send.state == MessageState::done);
    CHECK(target == source);
}

TEST_CASE("transport/shm: a message that is read half where it arrived fails with its group",
          "[ranks][shm]") {
    ShmOptions options;
    options.single_copy_bytes_min = ~std::uint64_t{0};
    Group group(first_ranks(2), options);
    auto data = filled(100000, 1);
    Message send = message(kSend, 1, data, 0);
    auto target = filled(100000, 0);
    Message recv = message(kRecv, 0, target, 0);
    recv.read_on_arrival = true;
    group.transports[0]->post({&send, 1});
    group.transports[1]->post({&recv, 1});
    REQUIRE(recv.state == MessageState::part);
    group.transports[1]->abandon();
    CHECK(recv.state == MessageState::failed);
    group.transports[0]->abandon();
}

namespace {

/// What rank `rank` of two sees of its peer after both have shared.
std::vector<std::byte> exchanged(const Group& group, std::size_t rank, std::uint64_t sequence,
                                 const std::vector<std::byte>& mine, std::uint32_t looks) {
    const transport::FlagSlotRead read = {static_cast<Rank>(1 - rank), mine.size()};
    const std::byte* place = nullptr;
    const transport::FlagSlotExchange exchange = {
        .sequence = {sequence, static_cast<std::uint32_t>(sequence), 7},
        .data = mine.data(),
        .bytes = mine.size(),
        .reads = {&read, 1},
        .places = &place,
        .looks = looks};
    if (group.transports[rank]->flag_slots()->exchange(exchange) != 1) {
        return {};
    }
    return {place, place + mine.size()};
}

} // namespace

TEST_CASE("transport/shm: an exchange looks for what its peer is about to share", "[ranks][shm]") {
    constexpr std::uint32_t kForEver = ~std::uint32_t{0};
    constexpr std::uint64_t kSequences = 100;
    const std::size_t bytes = GENERATE(0U, 8U, 1000U);
    Group group(first_ranks(2), {});
    std::string errors[2];
    group.run([&](std::size_t rank) {
        for (std::uint64_t sequence = 0; sequence < kSequences; ++sequence) {
            const auto mine = filled(bytes, static_cast<std::uint8_t>(2 * sequence + rank));
            const auto theirs = filled(bytes, static_cast<std::uint8_t>(2 * sequence + 1 - rank));
            if (exchanged(group, rank, sequence, mine, kForEver) != theirs) {
                errors[rank] = "sequence number " + std::to_string(sequence) + " was not seen";
            }
        }
    });
    CHECK(errors[0] == "");
    CHECK(errors[1] == "");
}

TEST_CASE("transport/shm: an exchange whose peer shares nothing ends its looks", "[ranks][shm]") {
    const std::size_t bytes = GENERATE(8U, 1000U);
    const Group group(first_ranks(2), {});
    const auto mine = filled(bytes, 1);
    CHECK(exchanged(group, 0, 0, mine, 100).empty());
    CHECK(exchanged(group, 1, 0, mine, 100) == mine);
    CHECK(group.transports[0]->flag_slots()->shared({0, 0, 7}, 1, bytes) != nullptr);
}

TEST_CASE("transport/shm: ranks that stall in two collectives report each once, whoever asks when",
          "[ranks][shm]") {
    using Calls = transport::CallsSoFar;
    const Group group(first_ranks(4), {});
    const auto reports = [&](std::size_t rank, const Calls& call, bool beyond = false) {
        return group.transports[rank]->is_first_to_report(call, beyond);
    };
    const std::uint32_t number = GENERATE(1U, 7U, 0x80000000U, 0xffffffffU, 0U);
    CAPTURE(number);
    const Calls bcast = {number, graph::Collective::bcast};
    const Calls gather = {number + 1, graph::Collective::gather};
    CHECK(reports(1, bcast));
    CHECK(reports(2, gather));
    CHECK_FALSE(reports(3, bcast));
    CHECK_FALSE(reports(0, gather));
    CHECK_FALSE(reports(2, bcast));

    CHECK(reports(1, gather, true)); // Nobody has said so far for whom it waits elsewhere.
    CHECK_FALSE(reports(2, bcast, true));
    CHECK_FALSE(reports(3, gather, true));
    CHECK_FALSE(reports(3, bcast));

    CHECK(reports(0, {number + 1, graph::Collective::scan})); // Another one of the same number.
    CHECK_FALSE(reports(1, gather));
    // Long afterwards.
    CHECK(reports(2, {number + 0x7fffffffU, graph::Collective::bcast}));
    CHECK(reports(2, {number + 0xfffffff0U, graph::Collective::bcast}));
}
