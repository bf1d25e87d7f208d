// A rank that has failed gives its caller's buffers back, although it had told peers where they
// are: no peer may take what it finds there afterwards for the message.
#include <algorithm>
#include <cstring>
#include <vector>

#include "test/ranks/shm_group.hpp"

namespace {

using namespace ucg;
using test::kRecv;
using test::kSend;
using test::message;
using test::ShmGroup;
using transport::Message;
using transport::MessageState;
using transport::ShmOptions;

constexpr std::uint64_t kBytes = std::uint64_t{3} << 20;
constexpr std::uint64_t kManyBytes = std::uint64_t{20} << 20; ///< This is more than one look reads.
constexpr int kSent = 1;
constexpr int kOther = 2;
/// These are fewer turns than after which a rank that waits in vain checks whether the group is
/// lost.
constexpr int kTurns = 100;

/// Two ranks, which one thread plays.
struct Pair {
    explicit Pair(const ShmOptions& options = {}) : group(test::first_ranks(2), options) {}

    transport::ShmTransport& sender() { return *group.transports[0]; }
    transport::ShmTransport& receiver() { return *group.transports[1]; }
    /// Warns that there is nothing to test where the kernel copies nothing.
    bool kernel_copies() {
        const bool copies = receiver().single_copy_peers() > 0;
        if (!copies) {
            WARN("this kernel refuses process_vm_readv");
        }
        return copies;
    }

    void receiver_turns() {
        for (int i = 0; i < kTurns; ++i) {
            receiver().progress();
        }
    }
    /// The sender fails, and its caller uses the buffer for something else.
    void sender_fails(std::span<std::byte> buffer) {
        sender().abandon();
        std::ranges::fill(buffer, static_cast<std::byte>(kOther));
    }

    ShmGroup group;
};

ShmOptions options_with(bool own_processors) {
    ShmOptions options;
    options.own_processors = own_processors;
    return options;
}

} // namespace

TEST_CASE("transport/shm: what a rank had sent an RTS for before it failed is not received",
          "[ranks][shm][lost]") {
    Pair pair(options_with(GENERATE(false, true)));
    if (!pair.kernel_copies()) {
        return;
    }
    const bool half_read = GENERATE(false, true);
    INFO("half read " << half_read);
    auto source = test::filled(half_read ? kManyBytes : kBytes, kSent);
    auto target = test::filled(source.size(), 0);
    Message send = message(kSend, 1, source, 0);
    Message recv = message(kRecv, 0, target, 0);
    pair.sender().post({&send, 1});
    REQUIRE(send.state == MessageState::posted);
    if (half_read) {
        pair.receiver().post({&recv, 1});
        for (int i = 0; i < kTurns && recv.moved == 0; ++i) {
            pair.receiver().progress();
        }
        REQUIRE(recv.moved > 0);
        REQUIRE(recv.state == MessageState::posted);
    }
    pair.sender_fails(source);
    if (!half_read) {
        pair.receiver().post({&recv, 1});
    }
    pair.receiver_turns();
    CHECK(recv.state == MessageState::failed);
    CHECK(pair.receiver().status().code() == Code::io_error);
}

TEST_CASE("transport/shm: what a rank remembers of one that fails is not received",
          "[ranks][shm][lost]") {
    Pair pair;
    if (!pair.kernel_copies()) {
        return;
    }
    auto source = test::filled(kBytes, kSent);
    auto target = test::filled(kBytes, 0);
    auto word = test::filled(8, kSent);
    auto word_target = test::filled(8, 0);
    Message sends[] = {message(kSend, 1, source, 0), message(kSend, 1, word, 1)};
    Message recvs[] = {message(kRecv, 0, target, 0), message(kRecv, 0, word_target, 1)};
    pair.sender().post(sends);
    pair.receiver().post({&recvs[1], 1});
    pair.receiver_turns();
    REQUIRE(recvs[1].state == MessageState::done);
    pair.sender_fails(source);
    pair.receiver().post({&recvs[0], 1});
    pair.receiver_turns();
    CHECK(recvs[0].state == MessageState::failed);
}

TEST_CASE("transport/shm: what lies in the memory of a rank that fails is not received",
          "[ranks][shm][lost]") {
    Pair pair(options_with(GENERATE(false, true)));
    const bool in_place = GENERATE(false, true);
    INFO("in place " << in_place);
    auto lease = pair.group.heaps[0]->lease(kBytes);
    REQUIRE(lease.ok());
    const std::span<std::byte> source(lease->data(), kBytes);
    std::ranges::fill(source, static_cast<std::byte>(kSent));
    auto target = test::filled(kBytes, 0);
    Message send = message(kSend, 1, target, 0);
    send.data = source.data(); // It is as long as the other buffer.
    Message recv = message(kRecv, 0, target, 0);
    recv.read_on_arrival = in_place;
    recv.sender_help = transport::SenderHelp::unwanted;
    pair.sender().post({&send, 1});
    if (in_place) {
        pair.receiver().post({&recv, 1});
        pair.receiver().progress();
        REQUIRE(recv.state == MessageState::part);
    }
    pair.sender_fails(source);
    if (in_place) {
        recv.taken += recv.part_bytes;
        pair.receiver().take_part(recv);
    } else {
        pair.receiver().post({&recv, 1});
    }
    pair.receiver_turns();
    CHECK(recv.state == MessageState::failed);
}

TEST_CASE("transport/shm: who has read exposed buffers learns that a rank has failed",
          "[ranks][shm][lost]") {
    Pair pair;
    CHECK(pair.receiver().intact());
    pair.sender().abandon();
    CHECK_FALSE(pair.receiver().intact());
    CHECK(pair.receiver().status().code() == Code::io_error);
}
