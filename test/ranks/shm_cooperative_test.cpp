// Long messages that both ends copy. One thread plays all ranks, so it is certain which end copies
// what.
#include <algorithm>
#include <array>
#include <cstring>
#include <sys/mman.h>

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

constexpr std::uint64_t kBytes = 1000003;

struct Pair {
    explicit Pair(const ShmOptions& options = {}) : group(test::first_ranks(2), options) {}

    transport::ShmTransport& sender() { return *group.transports[0]; }
    transport::ShmTransport& receiver() { return *group.transports[1]; }

    ShmGroup group;
};

bool kernel_copies(const ShmGroup& group) {
    return group.transports[1]->single_copy_peers() + 1 == group.transports.size();
}

/// Warns that there is nothing to test where the kernel copies nothing.
bool kernel_refuses(const ShmGroup& group) {
    if (!kernel_copies(group)) {
        WARN("this kernel refuses process_vm_readv");
    }
    return !kernel_copies(group);
}

std::vector<std::byte> numbered(std::uint64_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) {
        data[i] = static_cast<std::byte>(i * 31 + i / 4096);
    }
    return data;
}

void exhaust(transport::Transport& rank) {
    while (rank.progress() > 0) {
    }
}

/// Two ranks, and a message from the first to the second; nothing is posted yet.
struct Transfer : Pair {
    explicit Transfer(const ShmOptions& options = {}) : Pair(options) {}

    void post() {
        sender().post({&send, 1});
        receiver().post({&recv, 1});
    }

    std::vector<std::byte> source = numbered(kBytes);
    std::vector<std::byte> target = test::filled(kBytes, 0);
    Message send = message(kSend, 1, source, 0);
    Message recv = message(kRecv, 0, target, 0);
};

/// A transfer into memory that nobody may write at first.
struct ForbiddenTransfer : Transfer {
    static constexpr std::uint64_t kMapped = kBytes + 4096 - kBytes % 4096;

    ForbiddenTransfer()
        : memory(::mmap(nullptr, kMapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        REQUIRE(memory != MAP_FAILED);
        recv.data = static_cast<std::byte*>(memory);
    }
    ~ForbiddenTransfer() { ::munmap(memory, kMapped); }
    ForbiddenTransfer(const ForbiddenTransfer&) = delete;
    ForbiddenTransfer& operator=(const ForbiddenTransfer&) = delete;

    /// Lets the sender try in vain; from then on it could write.
    void try_and_permit() {
        post();
        CHECK(sender().progress() == 1);
        REQUIRE(::mprotect(memory, kMapped, PROT_READ | PROT_WRITE) == 0);
    }

    void* const memory;
};

/// A transfer after another message, which lets the receiver know that its sender copies.
struct LaterTransfer : Transfer {
    explicit LaterTransfer(const ShmOptions& options = {}) : Transfer(options) {
        std::vector<std::byte> before = numbered(kBytes);
        Message first_send = message(kSend, 1, before, 0);
        Message first_recv = message(kRecv, 0, target, 0);
        sender().post({&first_send, 1});
        receiver().post({&first_recv, 1});
        for (int i = 0; i < 200; ++i) { // Where the kernel refuses, it goes by the ring.
            receiver().progress();
            sender().progress();
        }
        REQUIRE(first_send.state == MessageState::done);
        std::fill(target.begin(), target.end(), std::byte{0});
        send.sequence = 1;
        recv.sequence = 1;
    }
};

/// Two ranks, each with a message for the other; nothing is posted yet.
struct Exchange {
    /// Makes progress until all messages have come.
    void finish() {
        for (int i = 0; i < 200; ++i) {
            pair.sender().progress();
            pair.receiver().progress();
        }
        for (std::size_t rank = 0; rank < 2; ++rank) {
            CHECK(sends[rank].state == MessageState::done);
            CHECK(recvs[rank].state == MessageState::done);
            CHECK(targets[rank] == sources[1 - rank]);
        }
    }

    Pair pair;
    std::array<std::vector<std::byte>, 2> sources = {numbered(kBytes), test::filled(kBytes, 7)};
    std::array<std::vector<std::byte>, 2> targets = {test::filled(kBytes, 0),
                                                     test::filled(kBytes, 0)};
    std::array<Message, 2> sends = {message(kSend, 1, sources[0], 0),
                                    message(kSend, 0, sources[1], 0)};
    std::array<Message, 2> recvs = {message(kRecv, 1, targets[0], 0),
                                    message(kRecv, 0, targets[1], 0)};
};

} // namespace

TEST_CASE("transport/shm: a sender copies all of what its receiver leaves to it", "[ranks][shm]") {
    Transfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    transfer.sender().post({&transfer.send, 1});
    // The sender cannot copy before the receiver has said where to.
    CHECK(transfer.sender().progress() == 0);
    transfer.receiver().post({&transfer.recv, 1});
    CHECK(transfer.recv.state == MessageState::posted);
    exhaust(transfer.sender());
    CHECK(transfer.target == transfer.source);
    // The receiver still has to say that the message is complete.
    CHECK(transfer.send.state == MessageState::posted);
    exhaust(transfer.receiver());
    CHECK(transfer.recv.state == MessageState::done);
    exhaust(transfer.sender());
    CHECK(transfer.send.state == MessageState::done);
}

TEST_CASE("transport/shm: a receiver copies all of what a busy sender leaves to it",
          "[ranks][shm]") {
    ShmOptions options;
    options.own_processors = GENERATE(false, true);
    Transfer transfer(options);
    transfer.receiver().post({&transfer.recv, 1});
    transfer.sender().post({&transfer.send, 1});
    if (kernel_copies(transfer.group)) {
        exhaust(transfer.receiver());
        CHECK(transfer.recv.state == MessageState::done);
    }
    for (int i = 0; i < 200; ++i) {
        transfer.sender().progress();
        transfer.receiver().progress();
    }
    CHECK(transfer.target == transfer.source);
    CHECK(transfer.send.state == MessageState::done);
}

TEST_CASE("transport/shm: ends that take turns copy each byte once, message after message",
          "[ranks][shm]") {
    Pair pair;
    const std::uint64_t bytes = GENERATE(std::uint64_t{16384}, std::uint64_t{32769},
                                         std::uint64_t{65536}, kBytes, std::uint64_t{5} << 20);
    for (std::uint32_t sequence = 0; sequence < 40; ++sequence) {
        auto source = numbered(bytes + sequence);
        auto target = test::filled(bytes + sequence, 0);
        Message send = message(kSend, 1, source, sequence);
        Message recv = message(kRecv, 0, target, sequence);
        pair.sender().post({&send, 1});
        pair.receiver().post({&recv, 1});
        for (int i = 0; i < 2000 && send.state != MessageState::done; ++i) {
            pair.sender().progress();
            if (i % 3 == 0) {
                pair.receiver().progress();
            }
        }
        REQUIRE(recv.state == MessageState::done);
        REQUIRE(target == source);
    }
}

TEST_CASE("transport/shm: what is worked on next is brought by the receiver alone",
          "[ranks][shm]") {
    Transfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    transfer.recv.sender_help = transport::SenderHelp::unwanted;
    transfer.post();
    CHECK(transfer.recv.state == MessageState::done); // The message was not opened for the sender.
    CHECK(transfer.target == transfer.source);
}

TEST_CASE("transport/shm: what two ranks exchange its senders copy, each in one piece",
          "[ranks][shm]") {
    Exchange exchange;
    if (kernel_refuses(exchange.pair.group)) {
        return;
    }
    transport::ShmTransport& first = exchange.pair.sender();
    transport::ShmTransport& second = exchange.pair.receiver();
    first.post({&exchange.sends[0], 1});
    first.post({&exchange.recvs[0], 1});
    second.post({&exchange.sends[1], 1});
    second.post({&exchange.recvs[1], 1}); // This says where to copy.
    first.progress();
    CHECK(exchange.targets[1] == exchange.sources[0]);
    CHECK(exchange.targets[0] == test::filled(kBytes, 0));
    second.progress();
    CHECK(exchange.targets[0] == exchange.sources[1]);
    exchange.finish();
}

TEST_CASE("transport/shm: a rank that sends and does not say where to is not awaited for ever",
          "[ranks][shm]") {
    Exchange exchange;
    if (kernel_refuses(exchange.pair.group)) {
        return;
    }
    transport::ShmTransport& first = exchange.pair.sender();
    transport::ShmTransport& second = exchange.pair.receiver();
    first.post({&exchange.sends[0], 1});
    second.post({&exchange.sends[1], 1}); // Rank 1 will receive when its message has left.
    first.post({&exchange.recvs[0], 1});
    CHECK(first.progress() == 0);
    for (int i = 0; i < 2000 && exchange.recvs[0].state != MessageState::done; ++i) {
        first.progress();
    }
    REQUIRE(exchange.recvs[0].state == MessageState::done);
    second.progress();
    CHECK(exchange.sends[1].state == MessageState::done);
    second.post({&exchange.recvs[1], 1});
    exchange.finish();
}

TEST_CASE("transport/shm: a receiver says ahead where a message goes, and its sender begins",
          "[ranks][shm]") {
    LaterTransfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    transfer.receiver().post({&transfer.recv, 1});
    transfer.sender().post({&transfer.send, 1});
    exhaust(transfer.sender());
    CHECK(transfer.target == transfer.source); // The receiver made no progress meanwhile.
    exhaust(transfer.receiver());
    exhaust(transfer.sender());
    CHECK(transfer.recv.state == MessageState::done);
    CHECK(transfer.send.state == MessageState::done);
}

TEST_CASE("transport/shm: another message than the one that was awaited goes nowhere else",
          "[ranks][shm]") {
    LaterTransfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    const std::uint64_t bytes = GENERATE(std::uint64_t{8}, std::uint64_t{20000}, kBytes);
    std::vector<std::byte> other_source = test::filled(bytes, 7);
    std::vector<std::byte> other_target = test::filled(bytes, 0);
    Message other_send = message(kSend, 1, other_source, 2);
    Message other_recv = message(kRecv, 0, other_target, 2);
    transfer.receiver().post({&transfer.recv, 1});
    transfer.sender().post({&other_send, 1});
    exhaust(transfer.sender());
    CHECK(transfer.target == test::filled(kBytes, 0));
    transfer.sender().post({&transfer.send, 1});
    for (int i = 0; i < 200; ++i) {
        transfer.sender().progress();
        transfer.receiver().progress();
    }
    CHECK(transfer.recv.state == MessageState::done);
    CHECK(transfer.target == transfer.source);
    transfer.receiver().post({&other_recv, 1});
    CHECK(other_recv.state == MessageState::done);
    CHECK(other_target == other_source);
    // After its RTS a message stays with the sender until it is asked for.
    exhaust(transfer.sender());
    CHECK(other_send.state == MessageState::done);
}

TEST_CASE("transport/shm: of two that are awaited the second may come first, and is begun as well",
          "[ranks][shm]") {
    LaterTransfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    std::vector<std::byte> other_source = test::filled(kBytes, 7);
    std::vector<std::byte> other_target = test::filled(kBytes, 0);
    Message other_send = message(kSend, 1, other_source, 2);
    Message other_recv = message(kRecv, 0, other_target, 2);
    transfer.receiver().post({&transfer.recv, 1}); // The message is opened ahead of its RTS.
    transfer.receiver().post({&other_recv, 1});
    transfer.sender().post({&other_send, 1});
    exhaust(transfer.sender());
    CHECK(other_target == test::filled(kBytes, 0));
    transfer.receiver().progress(); // This opens the message once more.
    exhaust(transfer.sender());
    transfer.sender().post({&transfer.send, 1});
    for (int i = 0; i < 200; ++i) {
        transfer.sender().progress();
        transfer.receiver().progress();
    }
    CHECK(other_recv.state == MessageState::done);
    CHECK(other_target == other_source);
    CHECK(transfer.recv.state == MessageState::done);
    CHECK(transfer.target == transfer.source);
}

TEST_CASE("transport/shm: of an exchange nothing is opened ahead", "[ranks][shm]") {
    LaterTransfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    std::vector<std::byte> back_source = test::filled(kBytes, 7);
    std::vector<std::byte> back_target = test::filled(kBytes, 0);
    Message back_send = message(kSend, 0, back_source, 1);
    Message back_recv = message(kRecv, 1, back_target, 1);
    transfer.receiver().post({&back_send, 1});
    transfer.receiver().post({&transfer.recv, 1});
    transfer.sender().post({&transfer.send, 1});
    CHECK(transfer.sender().progress() == 0);
    transfer.sender().post({&back_recv, 1});
    for (int i = 0; i < 200; ++i) {
        transfer.sender().progress();
        transfer.receiver().progress();
    }
    CHECK(transfer.target == transfer.source);
    CHECK(back_target == back_source);
}

TEST_CASE("transport/shm: a message of another length than was awaited is not begun",
          "[ranks][shm]") {
    LaterTransfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    transfer.recv.bytes -= 4096;
    transfer.receiver().post({&transfer.recv, 1});
    transfer.sender().post({&transfer.send, 1});
    exhaust(transfer.sender());
    CHECK(transfer.target == test::filled(kBytes, 0));
    exhaust(transfer.receiver());
    CHECK(transfer.recv.state == MessageState::failed);
    CHECK(transfer.receiver().status().code() == Code::disagreement);
    exhaust(transfer.sender());
    CHECK(transfer.target == test::filled(kBytes, 0));
}

TEST_CASE("transport/shm: a receiver that fails takes back what it opened ahead", "[ranks][shm]") {
    LaterTransfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    const bool begun = GENERATE(false, true);
    transfer.receiver().post({&transfer.recv, 1});
    if (begun) {
        transfer.sender().post({&transfer.send, 1});
        CHECK(transfer.sender().progress() == 1); // The sender copies one piece.
    }
    transfer.receiver().abandon();
    CHECK(transfer.recv.state == MessageState::failed);
    const auto left = transfer.target;
    if (!begun) {
        transfer.sender().post({&transfer.send, 1});
    }
    CHECK(transfer.sender().progress() == 0);
    CHECK(transfer.target == left);
}

TEST_CASE("transport/shm: where ranks share processors senders copy only what is wanted",
          "[ranks][shm]") {
    ShmOptions options;
    options.own_processors = false;
    LaterTransfer transfer(options);
    if (kernel_refuses(transfer.group)) {
        return;
    }
    const bool wanted = GENERATE(false, true);
    const std::uint64_t bytes =
        GENERATE(transport::kWantedHelpBytesMin - 1, transport::kWantedHelpBytesMin, kBytes);
    transfer.send.bytes = transfer.recv.bytes = bytes;
    transfer.source.resize(bytes);
    transfer.target.resize(bytes);
    transfer.recv.sender_help =
        wanted ? transport::SenderHelp::wanted : transport::SenderHelp::spare;
    transfer.receiver().post({&transfer.recv, 1});
    transfer.sender().post({&transfer.send, 1});
    exhaust(transfer.sender());
    CHECK((transfer.target == transfer.source) ==
          (wanted && bytes >= transport::kWantedHelpBytesMin));
    exhaust(transfer.receiver());
    CHECK(transfer.recv.state == MessageState::done);
    CHECK(transfer.target == transfer.source);
}

TEST_CASE("transport/shm: mapped messages need no kernel", "[ranks][shm]") {
    ShmOptions options;
    options.single_copy_bytes_min = ~std::uint64_t{0};
    Pair pair(options);
    REQUIRE_FALSE(kernel_copies(pair.group));
    auto from = pair.group.heaps[0]->lease(kBytes);
    auto to = pair.group.heaps[1]->lease(kBytes);
    REQUIRE(from.ok());
    REQUIRE(to.ok());
    const auto data = numbered(kBytes);
    std::memcpy(from->data(), data.data(), kBytes);
    std::vector<std::byte> none;
    Message send = message(kSend, 1, none, 0);
    send.data = from->data();
    send.bytes = kBytes;
    Message recv = message(kRecv, 0, none, 0);
    recv.data = to->data();
    recv.bytes = kBytes;
    pair.sender().post({&send, 1});
    pair.receiver().post({&recv, 1});
    exhaust(pair.sender());
    CHECK(std::memcmp(to->data(), data.data(), kBytes) == 0);
    exhaust(pair.receiver());
    exhaust(pair.sender());
    CHECK(send.state == MessageState::done);
    CHECK(recv.state == MessageState::done);
}

TEST_CASE("transport/shm: a target that nobody can write fails the receiver", "[ranks][shm]") {
    ForbiddenTransfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    transfer.post();
    // The sender tried to copy, and has reported the failure.
    CHECK(transfer.sender().progress() == 1);
    exhaust(transfer.receiver());
    CHECK(transfer.recv.state == MessageState::failed);
    CHECK(transfer.receiver().status().code() == Code::io_error);
    CHECK(transfer.sender().progress() == 0); // There is nothing more to copy.
}

TEST_CASE("transport/shm: what its sender could not write the receiver copies itself",
          "[ranks][shm]") {
    ForbiddenTransfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    transfer.try_and_permit();
    CHECK(transfer.sender().progress() == 0); // The sender does not try again.
    exhaust(transfer.receiver());
    exhaust(transfer.sender());
    CHECK(transfer.recv.state == MessageState::done);
    CHECK(transfer.send.state == MessageState::done);
    CHECK(std::memcmp(transfer.memory, transfer.source.data(), kBytes) == 0);
}

TEST_CASE("transport/shm: what a sender did not push before is not awaited when a receiver fails",
          "[ranks][shm]") {
    ForbiddenTransfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    transfer.try_and_permit();
    exhaust(transfer.receiver());
    exhaust(transfer.sender());
    REQUIRE(transfer.recv.state == MessageState::done);
    Message late = message(kRecv, 0, transfer.target, 1);
    transfer.receiver().post({&late, 1});
    transfer.receiver().abandon(); // This ends the receive.
    CHECK(late.state == MessageState::failed);
}

TEST_CASE("transport/shm: after another transport's failure no sender writes to the caller",
          "[ranks][shm]") {
    Transfer transfer;
    if (kernel_refuses(transfer.group)) {
        return;
    }
    transfer.post();
    transfer.sender().progress();
    transfer.receiver().abandon();
    CHECK(transfer.recv.state == MessageState::failed);
    const auto left = transfer.target;
    CHECK(transfer.sender().progress() == 0);
    CHECK(transfer.target == left);
    Message late = message(kRecv, 0, transfer.target, 1);
    transfer.receiver().post({&late, 1});
    CHECK(late.state == MessageState::failed);
}

TEST_CASE("transport/shm: a receiver that fails for another reason takes its memory back",
          "[ranks][shm]") {
    ShmGroup group(test::first_ranks(3), {});
    if (kernel_refuses(group)) {
        return;
    }
    auto source = numbered(kBytes);
    auto target = test::filled(kBytes, 0);
    auto shorter = test::filled(8, 1);
    auto longer = test::filled(16, 1);
    Message send = message(kSend, 1, source, 0);
    Message recv = message(kRecv, 0, target, 0);
    Message wrong = message(kSend, 1, longer, 0);
    Message awaited = message(kRecv, 2, shorter, 0);
    group.transports[0]->post({&send, 1});
    group.transports[1]->post({&recv, 1});
    group.transports[2]->post({&wrong, 1});
    group.transports[1]->post({&awaited, 1});
    group.transports[1]->progress();
    CHECK(recv.state == MessageState::failed);
    const auto left = target;
    CHECK(group.transports[0]->progress() == 0);
    CHECK(target == left);
}
