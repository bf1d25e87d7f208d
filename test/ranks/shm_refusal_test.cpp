// A kernel that copies between ranks at first and refuses later: messages whose RTS was sent before
// must come another way. Here a process notes the refusal itself, at the moment that is to be
// tested; test/mpi/forbidden.c has real refusals.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include "test/ranks/shm_group.hpp"
#include "test/ranks/shm_pattern.hpp"

namespace {

using namespace ucg;
using test::kRecv;
using test::kSend;
using test::message;
using test::settle;
using test::ShmGroup;
using transport::Help;
using transport::HelpedCall;
using transport::HelpedPart;
using transport::Message;
using transport::MessageState;
using transport::ShmOptions;

constexpr std::uint64_t kBytes = (std::uint64_t{3} << 20) + 5;

bool kernel_copies() {
    const bool copies = shm::can_read(shm::own_access_ticket());
    if (!copies) {
        WARN("this kernel refuses process_vm_readv");
    }
    return copies;
}

/// What that rank may do with the memory of all others, which is memory of this process.
shm::PeerAccess& access_of(ShmGroup& group, std::size_t rank) {
    return group.heaps[rank]->access_to(shm::own_access_ticket());
}

std::vector<std::byte> numbered(std::uint64_t bytes, int first) {
    std::vector<std::byte> data(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) {
        data[i] = static_cast<std::byte>(first + static_cast<int>(i * 31 + i / 4096));
    }
    return data;
}

/// Messages from rank 0 to rank 1, each of a collective of its own.
struct Stream {
    Stream(ShmGroup& its_group, std::size_t count, std::uint64_t bytes, std::uint32_t first = 0)
        : group(its_group) {
        for (std::size_t i = 0; i < count; ++i) {
            sources.push_back(numbered(bytes + i, static_cast<int>(i)));
            targets.push_back(test::filled(bytes + i, 0));
        }
        for (std::size_t i = 0; i < count; ++i) {
            const auto sequence = static_cast<std::uint32_t>(first + i);
            sends.push_back(message(kSend, 1, sources[i], sequence));
            recvs.push_back(message(kRecv, 0, targets[i], sequence));
        }
    }

    void send(std::size_t i) { group.transports[0]->post({&sends[i], 1}); }
    void receive(std::size_t i) { group.transports[1]->post({&recvs[i], 1}); }
    void send_all() { group.transports[0]->post(sends); }

    void check() {
        settle(group);
        for (std::size_t i = 0; i < sends.size(); ++i) {
            CHECK(sends[i].state == MessageState::done);
            CHECK(recvs[i].state == MessageState::done);
            CHECK(targets[i] == sources[i]);
        }
    }

    ShmGroup& group;
    std::vector<std::vector<std::byte>> sources;
    std::vector<std::vector<std::byte>> targets;
    std::vector<Message> sends;
    std::vector<Message> recvs;
};

/// Checks that a message of that length leaves by the ring, without an RTS, even though no rank
/// receives yet.
void check_by_ring(ShmGroup& group, std::uint32_t sequence) {
    Stream next(group, 1, 100'000, sequence);
    next.send(0);
    CHECK(next.sends[0].state == MessageState::done);
    next.receive(0);
    next.check();
}

} // namespace

TEST_CASE("transport/shm: what the kernel does not find at its sender's is sent",
          "[ranks][shm][refusal]") {
    if (!kernel_copies()) {
        return;
    }
    ShmOptions options;
    options.own_processors = GENERATE(false, true);
    const bool remembered = GENERATE(false, true);
    INFO("remembered " << remembered);
    constexpr std::uint64_t kMapped = std::uint64_t{3} << 20;
    ShmGroup group(test::first_ranks(2), options);
    const auto content = numbered(kMapped, 1);
    auto target = test::filled(kMapped, 0);
    std::vector<std::byte> word(8);
    std::vector<std::byte> word_target(8);
    void* const memory =
        ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    std::memcpy(memory, content.data(), kMapped);
    Message sends[] = {message(kSend, 1, target, 0), message(kSend, 1, word, 1)};
    Message recvs[] = {message(kRecv, 0, target, 0), message(kRecv, 0, word_target, 1)};
    sends[0].data = static_cast<std::byte*>(memory);
    group.transports[0]->post(sends);
    if (remembered) {
        group.transports[1]->post({&recvs[1], 1});
        group.transports[1]->progress();
    }
    // Like secret memory, it can be read by no other rank while the receiver tries.
    REQUIRE(::mprotect(memory, kMapped, PROT_NONE) == 0);
    group.transports[1]->post({&recvs[0], 1});
    for (int i = 0; i < 10; ++i) {
        group.transports[1]->progress();
    }
    REQUIRE(::mprotect(memory, kMapped, PROT_READ | PROT_WRITE) == 0);
    if (!remembered) {
        group.transports[1]->post({&recvs[1], 1});
    }
    settle(group);
    for (const Message& each : {sends[0], sends[1], recvs[0], recvs[1]}) {
        CHECK(each.state == MessageState::done);
    }
    CHECK(target == content);
    CHECK(group.transports[1]->status().ok());
    check_by_ring(group, 2);
    REQUIRE(::munmap(memory, kMapped) == 0);
}

TEST_CASE("transport/shm: what a receiver cannot read any more is sent", "[ranks][shm][refusal]") {
    if (!kernel_copies()) {
        return;
    }
    enum When { rts_sent, half_read, half_pushed, all_read, whens };
    ShmOptions options;
    options.own_processors = GENERATE(false, true);
    ShmGroup group(test::first_ranks(2), options);
    const int when = GENERATE(range(0, static_cast<int>(whens)));
    INFO(when);
    Stream stream(group, 1, kBytes);
    stream.send(0);
    if (when != rts_sent) {
        stream.receive(0);
    }
    if (when == half_read) {
        group.transports[1]->progress();
    } else if (when == half_pushed) {
        group.transports[0]->progress();
    } else if (when == all_read) {
        settle(group);
    }
    // A post alone may read the message.
    const bool read = stream.recvs[0].state == MessageState::done;
    access_of(group, 1).refuse_reading();
    if (when == rts_sent) {
        stream.receive(0);
    }
    stream.check();
    if (!read) {
        check_by_ring(group, 1);
    }
    Stream later(group, 3, kBytes, 2);
    for (std::size_t i = 0; i < 3; ++i) {
        later.send(i);
        later.receive(i);
    }
    later.check();
    check_by_ring(group, 9);
}

TEST_CASE("transport/shm: a receiver that had said ahead where a message goes declines it",
          "[ranks][shm][refusal]") {
    if (!kernel_copies()) {
        return;
    }
    ShmGroup group(test::first_ranks(2), {});
    Stream before(group, 1, kBytes); // This message lets the receiver know that its sender copies.
    before.send(0);
    before.receive(0);
    before.check();
    Stream stream(group, 2, kBytes, 1);
    const bool pushed = GENERATE(false, true);
    const bool writes = GENERATE(false, true);
    stream.receive(0);
    if (!pushed && !writes) {
        access_of(group, 0).refuse_writing(); // The refusal is reported to the sender.
    }
    stream.send(0);
    if (pushed) {
        CHECK(group.transports[0]->progress() == 1);
    }
    if (!writes) {
        access_of(group, 0).refuse_writing();
    }
    access_of(group, 1).refuse_reading();
    stream.receive(1);
    stream.send(1);
    stream.check();
    check_by_ring(group, 3);
}

TEST_CASE("transport/shm: who cannot write any more leaves all to the receiver",
          "[ranks][shm][refusal]") {
    if (!kernel_copies()) {
        return;
    }
    ShmGroup group(test::first_ranks(2), {});
    Stream stream(group, 4, kBytes);
    stream.send(0);
    stream.receive(0);
    CHECK(group.transports[0]->progress() == 1);
    access_of(group, 0).refuse_writing();
    for (std::size_t i = 1; i < 4; ++i) {
        stream.receive(i);
        stream.send(i);
    }
    stream.check();
    CHECK(access_of(group, 1).reads());
}

TEST_CASE("transport/shm: what is remembered and cannot be read is sent, in any order",
          "[ranks][shm][refusal]") {
    if (!kernel_copies()) {
        return;
    }
    constexpr std::size_t kCount = 40;
    ShmGroup group(test::first_ranks(2), {});
    const std::size_t awaited = GENERATE(0U, 1U, 3U);
    const bool tells = GENERATE(false, true);
    Stream stream(group, kCount, kBytes / 8);
    stream.send_all();
    stream.receive(kCount - 1); // All other messages come early.
    for (int i = 0; i < 20; ++i) {
        group.transports[0]->progress();
        group.transports[1]->progress();
    }
    for (std::size_t i = 0; i < awaited; ++i) {
        stream.receive(i);
    }
    access_of(group, 1).refuse_reading();
    if (tells) {
        settle(group);
    }
    for (std::size_t i = kCount - 1; i-- > awaited;) {
        stream.receive(i);
    }
    stream.check();
    CHECK(group.transports[1]->status().ok());
    check_by_ring(group, kCount);
}

TEST_CASE("transport/shm: what lies in the sender's segment is read as before, and marks last",
          "[ranks][shm][refusal]") {
    if (!kernel_copies()) {
        return;
    }
    constexpr std::size_t kCount = 15;
    ShmGroup group(test::first_ranks(2), {});
    auto from = group.heaps[0]->lease(kBytes);
    REQUIRE(from.ok());
    const std::vector<std::byte> data = numbered(kBytes, 5);
    std::memcpy(from->data(), data.data(), kBytes);
    Stream stream(group, kCount, 70'000);
    stream.send_all();
    access_of(group, 1).refuse_reading();
    std::vector<std::byte> target(kBytes);
    // There are more messages than marks, and at first the marks of the declined ones are still in
    // use.
    for (std::uint32_t i = 0; i < 1000; ++i) {
        Message send = message(kSend, 1, target, 100 + i);
        Message recv = message(kRecv, 0, target, 100 + i);
        send.data = from->data();
        send.bytes = recv.bytes = i % 100 == 0 ? kBytes : 10'000;
        std::fill(target.begin(), target.end(), std::byte{0});
        group.transports[0]->post({&send, 1});
        group.transports[1]->post({&recv, 1});
        CHECK(send.state == MessageState::posted); // Its RTS was sent.
        for (int n = 0; n < 400 && send.state == MessageState::posted; ++n) {
            group.transports[0]->progress();
            group.transports[1]->progress();
        }
        CHECK(send.state == MessageState::done);
        REQUIRE(recv.state == MessageState::done);
        CHECK(std::memcmp(target.data(), data.data(), recv.bytes) == 0);
        if (i == 500) {
            for (std::size_t n = 0; n < kCount; ++n) {
                stream.receive(n);
            }
        }
    }
    stream.check();
}

TEST_CASE("transport/shm: groups that are made later do not try what was refused",
          "[ranks][shm][refusal]") {
    if (!kernel_copies()) {
        return;
    }
    ShmGroup group(test::first_ranks(2), {});
    CHECK(group.transports[0]->reaches_all());
    access_of(group, 0).refuse_writing();
    CHECK_FALSE(group.transports[0]->reaches_all());
    CHECK(group.transports[1]->reaches_all());
}

TEST_CASE("transport/shm: a crowd of messages while one rank after the other is refused",
          "[ranks][shm][refusal]") {
    if (!kernel_copies()) {
        return;
    }
    test::TrafficPattern pattern;
    pattern.rank_count = GENERATE(2, 3, 4);
    pattern.seed = GENERATE(91U, 92U, 93U, 94U);
    pattern.sequences = 12;
    pattern.sizes = {0, 8, 41, 4096, (64 << 10) + 1, 300'000, 1 << 20};
    pattern.receive_in_order = pattern.seed % 2 == 0;
    ShmOptions options;
    options.single_copy_bytes_min = 4096;
    options.own_processors = pattern.seed < 93;
    ShmGroup group(test::first_ranks(pattern.rank_count), options);
    std::vector<std::string> errors(group.transports.size());
    std::thread refuses([&] {
        for (std::size_t i = 0; i < group.transports.size(); ++i) {
            const std::size_t rank = (i + pattern.seed) % group.transports.size();
            std::this_thread::sleep_for(std::chrono::microseconds(500 * (pattern.seed % 4)));
            access_of(group, rank).refuse_writing();
            std::this_thread::sleep_for(std::chrono::microseconds(300));
            access_of(group, rank).refuse_reading();
        }
    });
    group.run([&](std::size_t i) {
        test::PatternRank mine(pattern, static_cast<Rank>(i));
        errors[i] = mine.run(*group.transports[i], shm::Waiter(8, 1));
    });
    refuses.join();
    for (const std::string& error : errors) {
        CHECK(error.empty());
    }
}

namespace {

/// A part of rank 0 that names both ranks.
const std::vector<HelpedPart> kParts = {{0, 0, 2, {0, 1}}};

/// Two ranks that have begun a collective in which they help each other.
struct Helped {
    Helped() {
        for (std::size_t rank = 0; rank < 2; ++rank) {
            calls[rank].sequence = 3;
            calls[rank].input = inputs[rank].data();
            calls[rank].input_bytes = kBytes;
            calls[rank].output = outputs[rank].data();
            calls[rank].output_bytes = kBytes;
            calls[rank].parts = kParts;
            help(rank).begin(calls[rank]);
        }
    }
    Help& help(std::size_t rank) { return *group.transports[rank]->help(); }

    ShmGroup group{test::first_ranks(2), {}};
    std::vector<std::vector<std::byte>> inputs = {numbered(kBytes, 1), numbered(kBytes, 2)};
    std::vector<std::vector<std::byte>> outputs = {test::filled(kBytes, 0),
                                                   test::filled(kBytes, 0)};
    std::vector<HelpedCall> calls = std::vector<HelpedCall>(2);
};

/// Attempts it until the owner, which makes progress in between, has done it. Returns how many
/// attempts failed; nothing if it never succeeds.
template <typename Try>
std::optional<int> tries(ShmGroup& group, std::size_t owner, Try attempt) {
    for (int i = 0; i < 1000; ++i) {
        if (attempt() == Help::Copied::yes) {
            return i;
        }
        group.transports[owner]->progress();
    }
    return std::nullopt;
}

} // namespace

TEST_CASE("transport/shm: who helps and gets at nothing has its owner copy",
          "[ranks][shm][refusal]") {
    using graph::BufferKind;
    Helped pair;
    REQUIRE(pair.help(0).look(kParts[0], 3) == Help::State::ready);
    REQUIRE(pair.help(0).take(kParts[0], 3) == 0U);
    access_of(pair.group, 0).refuse_reading();
    access_of(pair.group, 0).refuse_writing();
    constexpr std::uint64_t kOffset = 1001;
    std::vector<std::byte> here(kBytes - kOffset);
    std::vector<std::byte> other(10);
    CHECK(pair.help(0).read(1, BufferKind::input, 3, kOffset, here) == Help::Copied::later);
    CHECK(pair.help(0).read(1, BufferKind::input, 3, 0, other) == Help::Copied::later);
    CHECK(tries(pair.group, 1, [&] {
              return pair.help(0).read(1, BufferKind::input, 3, kOffset, here);
          }).has_value());
    CHECK(std::equal(here.begin(), here.end(), pair.inputs[1].begin() + kOffset));
    CHECK(tries(pair.group, 1, [&] {
              return pair.help(0).write(1, BufferKind::output, 3, kOffset, here);
          }).has_value());
    CHECK(std::equal(here.begin(), here.end(), pair.outputs[1].begin() + kOffset));
    CHECK(pair.outputs[1][kOffset - 1] == std::byte{0});
    CHECK(pair.group.transports[1]->progress() == 0); // The owner does not copy it again.
    pair.help(0).unit_done(kParts[0], 3);
    // The part's owner goes on like that, another does not.
    CHECK(pair.help(0).look(kParts[0], 3) == Help::State::ready);
    CHECK(pair.help(1).look(kParts[0], 3) == Help::State::ready);
    std::vector<std::byte> back(10);
    access_of(pair.group, 1).refuse_reading();
    access_of(pair.group, 1).refuse_writing();
    CHECK(tries(pair.group, 0, [&] {
              return pair.help(1).read(0, BufferKind::input, 3, 0, back);
          }).has_value());
    CHECK(pair.help(1).look(kParts[0], 3) == Help::State::waits);
    CHECK(pair.help(0).look(kParts[0], 3) == Help::State::ready);
    REQUIRE(pair.help(0).take(kParts[0], 3) == 1U);
    pair.help(0).unit_done(kParts[0], 3);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        CHECK(pair.help(rank).look(kParts[0], 3) == Help::State::over);
        pair.help(rank).end(3);
    }
}

/// Rank 0 takes a unit and asks rank 1 for what the kernel does not let it read.
void take_and_ask(Helped& pair, std::uint32_t unit, std::span<std::byte> here) {
    REQUIRE(pair.help(0).take(kParts[0], 3) == unit);
    access_of(pair.group, 0).refuse_reading();
    CHECK(pair.help(0).read(1, graph::BufferKind::input, 3, 0, here) == Help::Copied::later);
}

TEST_CASE("transport/shm: who gives up does not wait for what it has asked itself",
          "[ranks][shm][refusal]") {
    using graph::BufferKind;
    Helped pair;
    std::vector<std::byte> here(100);
    take_and_ask(pair, 0, here);
    const std::size_t first = GENERATE(0U, 1U);
    if (first == 0) {
        pair.group.transports[0]->abandon();
        pair.help(0).unit_done(kParts[0], 3); // The unit was given back.
        CHECK(pair.help(1).look(kParts[0], 3) == Help::State::broken);
        pair.group.transports[1]->abandon();
    } else {
        std::thread gives_up([&] { pair.group.transports[1]->abandon(); });
        while (pair.help(0).look(kParts[0], 3) != Help::State::broken) {
            std::this_thread::yield();
        }
        pair.help(0).unit_done(kParts[0], 3);
        gives_up.join();
        pair.group.transports[1]->progress();
        CHECK(pair.help(0).read(1, BufferKind::input, 3, 0, here) == Help::Copied::later);
        pair.group.transports[0]->abandon();
    }
}

TEST_CASE("transport/shm: who gives up does not wait for a helper that has asked and is away",
          "[ranks][shm][refusal]") {
    using graph::BufferKind;
    Helped pair;
    std::vector<std::byte> here(100);
    take_and_ask(pair, 0, here);
    const bool comes_back = GENERATE(false, true);
    const bool takes_another = comes_back && GENERATE(false, true);
    CAPTURE(comes_back, takes_another);
    if (takes_another) {
        REQUIRE(pair.help(0).take(kParts[0], 3) == 1U);
    } else if (comes_back) {
        CHECK(pair.help(0).look(kParts[0], 3) != Help::State::broken);
    }
    std::atomic<bool> ended = false;
    std::thread gives_up([&] {
        pair.group.transports[1]->abandon();
        ended = true;
    });
    for (int i = 0; i < 2000 && !ended; ++i) {
        if (comes_back && i == 50) { // If abandon() does not wait, it has returned by then.
            CHECK_FALSE(ended.load());
            pair.help(0).unit_done(kParts[0], 3);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(ended.load());
    CHECK(pair.help(0).look(kParts[0], 3) == Help::State::broken);
    pair.help(0).unit_done(kParts[0], 3);
    gives_up.join();
    pair.group.transports[0]->abandon();
}

TEST_CASE("transport/shm: who gives up waits while more units are not done than helpers are away",
          "[ranks][shm][refusal]") {
    Helped pair;
    std::vector<std::byte> here(100);
    // The first unit stands for that of another helper, which is inside it.
    REQUIRE(pair.help(0).take(kParts[0], 3) == 0U);
    take_and_ask(pair, 1, here);
    std::atomic<bool> ended = false;
    std::thread gives_up([&] {
        pair.group.transports[1]->abandon();
        ended = true;
    });
    for (int i = 0; i < 1200 && !ended; ++i) { // Longer than ranks that are away get.
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK_FALSE(ended.load());
    pair.help(0).unit_done(kParts[0], 3);
    gives_up.join();
    CHECK(pair.help(0).look(kParts[0], 3) == Help::State::broken);
    pair.group.transports[0]->abandon();
}
