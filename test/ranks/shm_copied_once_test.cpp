// From which length on the shared-memory transport leaves a message with its sender, to be copied
// once, instead of sending it through a ring.
#include "test/ranks/shm_group.hpp"

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
using transport::ShmOptions;

/// Returns how many of 240 messages from rank 0 to rank 1 leave by an RTS and not by the ring.
unsigned sent_by_rts(const ShmOptions& options, std::uint64_t bytes,
                     MessageUse use = MessageUse::exchanged) {
    Group group(first_ranks(2), options);
    unsigned count = 0;
    for (std::uint32_t i = 0; i < 240; ++i) {
        auto data = filled(bytes, static_cast<int>(i % 100) + 1);
        auto target = filled(bytes, 0);
        Message wanted = message(kRecv, 0, target, i);
        Message sent = message(kSend, 1, data, i);
        sent.use = use;
        group.transports[1]->post({&wanted, 1});
        group.transports[0]->post({&sent, 1});
        count += sent.state == MessageState::posted ? 1 : 0;
        settle(group);
        CHECK(target == data);
        CHECK(sent.state == MessageState::done);
    }
    return count;
}

} // namespace

TEST_CASE("transport/shm: between cores that are far apart messages are copied once",
          "[ranks][shm]") {
    constexpr std::uint64_t kBytes = 20000;
    ShmOptions options;
    options.single_copy_bytes_min = 1 << 20;
    options.far_copy_bytes_min = kBytes;
    // If peers whose reads take so long or longer count as far.
    const auto sent = [&](std::uint64_t bytes, std::uint32_t near_ns) {
        options.near_ns = near_ns;
        return sent_by_rts(options, bytes);
    };
    if (Group(first_ranks(2), options).transports[1]->single_copy_peers() == 0) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    CHECK(sent(kBytes, 1U << 31) == 0);
    // However long a read takes here, the peer is far by one of these limits.
    bool by_any = false;
    for (std::uint32_t near_ns = 1; near_ns < (1U << 24) && !by_any; near_ns *= 2) {
        by_any = sent(kBytes, near_ns) > 0;
        CHECK(sent(kBytes - 1, near_ns) == 0);
    }
    CHECK(by_any);
}

TEST_CASE("transport/shm: a message's use decides from which length on it is copied once",
          "[ranks][shm]") {
    ShmOptions options;
    options.single_copy_bytes_min[MessageUse::exchanged] = 10000;
    options.single_copy_bytes_min[MessageUse::one_way] = 20000;
    options.single_copy_bytes_min[MessageUse::combined] = 30000;
    Group group(first_ranks(2), options);
    if (group.transports[1]->single_copy_peers() == 0) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    std::uint32_t sequence = 0;
    // Whether the message leaves by an RTS: one that goes through the ring has left at once.
    const auto stays = [&](MessageUse use, std::uint64_t bytes) {
        auto data = filled(bytes, 7);
        auto target = filled(bytes, 0);
        Message wanted = message(kRecv, 0, target, sequence);
        Message sent = message(kSend, 1, data, sequence++);
        sent.use = use;
        group.transports[1]->post({&wanted, 1});
        group.transports[0]->post({&sent, 1});
        const bool stayed = sent.state == MessageState::posted;
        settle(group);
        CHECK(target == data);
        CHECK(sent.state == MessageState::done);
        return stayed;
    };
    for (const MessageUse use : kMessageUses) {
        const std::uint64_t bytes_min = options.single_copy_bytes_min[use];
        CHECK_FALSE(stays(use, bytes_min - 1));
        CHECK(stays(use, bytes_min));
    }
}

TEST_CASE("transport/shm: what the receiver copies slowly goes through the ring, but for trials",
          "[ranks][shm]") {
    constexpr std::uint64_t kBytes = 20000;
    ShmOptions options;
    options.single_copy_bytes_min = kBytes;
    options.cooperative_copy_bytes_min = 2 * kBytes;
    const auto sent = [&](std::uint64_t bytes, const shm::SlowPull& slow, MessageUse use) {
        options.slow_pull = slow;
        return sent_by_rts(options, bytes, use);
    };
    if (Group(first_ranks(2), options).transports[1]->single_copy_peers() == 0) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    const shm::SlowPull never = {1e12, 0};
    const shm::SlowPull always = {0, 0};
    CHECK(sent(kBytes, never, MessageUse::one_way) == 240);
    // One copy of four is timed, three say that copies are slow, and then there are three trials
    // after 16, 32 and 64 messages.
    CHECK(sent(kBytes, always, MessageUse::one_way) == 12 + 3 * 3);
    CHECK(sent(kBytes, always, MessageUse::exchanged) == 12 + 3 * 3);
    // What both ends copy is pushed, and what is longer than a ring's buffers is no faster there.
    CHECK(sent(2 * kBytes, always, MessageUse::exchanged) == 240);
    // The sender may have copied all of some, which then are not timed.
    CHECK(sent(2 * kBytes, always, MessageUse::exchanged_combined) < 120);
    CHECK(sent(options.ring_bytes, always, MessageUse::one_way) == 240);
}
