// Messages between forked processes over real UCX: every size and protocol, any order of posting,
// several groups, groups that are made late, and windows that run full.
#include <algorithm>
#include <random>

#include "test/ranks/ucx_support.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

using namespace ucg;
using namespace ucg::test;

namespace {

constexpr std::uint64_t kSizes[] = {0,    1,    8,    64,    100,         4096,
                                    8191, 8192, 8193, 65537, 1024 * 1024, 8 * 1024 * 1024};

std::uint64_t seed_of(std::uint32_t group, Rank from, Rank to, std::uint64_t step) {
    return ((group * 17 + static_cast<std::uint64_t>(from)) * 17 + static_cast<std::uint64_t>(to)) *
               101 +
           step;
}

/// All messages of one all-to-all with several steps, and their buffers.
struct Exchange {
    std::vector<std::vector<std::byte>> buffers;
    std::vector<Message> messages;

    void add(std::uint32_t group, Rank self, Rank peer, std::uint32_t sequence, std::uint16_t step,
             std::uint64_t bytes) {
        buffers.push_back(filled(seed_of(group, self, peer, step), bytes));
        messages.push_back(message(Direction::send, peer, buffers.back(), sequence, step));
        buffers.emplace_back(bytes);
        messages.push_back(message(Direction::recv, peer, buffers.back(), sequence, step));
    }

    std::string check(std::uint32_t group, Rank self, const Status& status) const {
        std::string wrong = check_done(messages, status);
        for (const Message& each : messages) {
            const std::uint64_t seed = seed_of(group, each.peer, self, each.step);
            for (std::uint64_t i = 0;
                 wrong.empty() && each.direction == Direction::recv && i < each.bytes; ++i) {
                if (each.data[i] != pattern(seed, i)) {
                    wrong = fmt::format("byte {} of {} from rank {} is wrong", i, each.bytes,
                                        each.peer);
                }
            }
        }
        return wrong;
    }
};

std::string all_sizes(const ForkedRank& rank, const Fabric& fabric) {
    const RankWorker own(rank, options_for(fabric));
    if (!own.worker) {
        return own.complaint;
    }
    const auto transport = own.group(7, rank.rank());
    Exchange exchange;
    for (std::uint16_t step = 0; step < std::size(kSizes); ++step) {
        for (Rank peer = 0; peer < rank.size(); ++peer) {
            if (peer != rank.rank()) {
                exchange.add(7, rank.rank(), peer, 1, step, kSizes[step]);
            }
        }
    }
    transport->post(exchange.messages);
    complete(*transport, exchange.messages);
    std::string wrong = exchange.check(7, rank.rank(), transport->status());
    if (!wrong.empty()) {
        wrong += "\n" + own.worker->describe();
    }
    return wrong;
}

/// Two groups at once. Every rank posts all its messages in an order of its own, a few at a time,
/// so that many come before their receives. Within a (peer, sequence) the order of steps is kept.
std::string random_order(const ForkedRank& rank, const Fabric& fabric, std::uint32_t seed) {
    const RankWorker own(rank, options_for(fabric));
    if (!own.worker) {
        return own.complaint;
    }
    constexpr std::uint32_t kGroups[] = {3, 4};
    std::mt19937 random(seed * 1000 + static_cast<std::uint32_t>(rank.rank()));
    std::unique_ptr<UcxTransport> transports[2];
    Exchange exchanges[2];
    for (std::size_t g = 0; g < 2; ++g) {
        transports[g] = own.group(kGroups[g], rank.rank());
        for (std::uint32_t sequence = 0; sequence < 8; ++sequence) {
            for (Rank peer = 0; peer < rank.size(); ++peer) {
                const auto step = static_cast<std::uint16_t>(sequence);
                if (peer != rank.rank()) {
                    exchanges[g].add(kGroups[g], rank.rank(), peer, sequence, step,
                                     kSizes[(sequence + g * 3) % 10]);
                }
            }
        }
        std::shuffle(exchanges[g].messages.begin(), exchanges[g].messages.end(), random);
    }
    for (std::size_t i = 0; i < exchanges[0].messages.size(); ++i) {
        for (std::size_t g = 0; g < 2; ++g) {
            transports[g]->post({&exchanges[g].messages[i], 1});
            transports[random() % 2]->progress();
        }
    }
    std::string wrong;
    for (std::size_t g = 0; g < 2 && wrong.empty(); ++g) {
        complete(*transports[g], exchanges[g].messages);
        wrong = exchanges[g].check(kGroups[g], rank.rank(), transports[g]->status());
    }
    rank.barrier_polling([&] { own.worker->progress(); });
    return wrong;
}

/// Rank 0 sends before the others have the group, and even before they make progress.
std::string late_group(const ForkedRank& rank, const Fabric& fabric) {
    const RankWorker own(rank, options_for(fabric));
    if (!own.worker) {
        return own.complaint;
    }
    std::unique_ptr<UcxTransport> transport;
    Exchange exchange;
    if (rank.rank() == 0) {
        transport = own.group(9, 0);
    }
    for (std::uint16_t step = 0; step < 10; ++step) {
        for (Rank peer = 0; peer < rank.size(); ++peer) {
            if (peer != rank.rank()) {
                exchange.add(9, rank.rank(), peer, 5, step, kSizes[step]);
            }
        }
    }
    if (transport) {
        transport->post(exchange.messages);
    }
    // This is long enough for eager data and rendezvous messages to arrive here without a group.
    const auto until = std::chrono::steady_clock::now() + 50ms;
    rank.barrier_polling([&] { own.worker->progress(); });
    while (std::chrono::steady_clock::now() < until) {
        own.worker->progress();
    }
    if (!transport) {
        transport = own.group(9, rank.rank());
        transport->post(exchange.messages);
    }
    complete(*transport, exchange.messages);
    const std::string wrong = exchange.check(9, rank.rank(), transport->status());
    rank.barrier_polling([&] { own.worker->progress(); });
    return wrong;
}

/// Which of these messages, each short enough to be eager, the window lets leave while the peer
/// takes none of them.
std::vector<bool> let_go(std::span<const Message> messages, std::uint32_t window_bytes) {
    std::vector<bool> goes;
    std::uint32_t taken = 0;
    for (const Message& each : messages) {
        const std::uint32_t cost = transport::ucx::credit_cost(each.bytes);
        goes.push_back(taken + cost <= window_bytes);
        taken += goes.back() ? cost : 0;
    }
    return goes;
}

/// Progresses until at least `count` messages are done, as complete() does.
void complete_some(UcxTransport& transport, std::span<const Message> messages, std::size_t count) {
    const auto done = [](const Message& each) { return each.state == MessageState::done; };
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (static_cast<std::size_t>(std::count_if(messages.begin(), messages.end(), done)) <
               count &&
           std::chrono::steady_clock::now() < deadline) {
        if (transport.progress() == 0) {
            sched_yield();
        }
    }
}

/// Empty if exactly the messages that `goes` says are done.
std::string check_held_back(std::span<const Message> messages, const std::vector<bool>& goes) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (messages[i].state != (goes[i] ? MessageState::done : MessageState::posted)) {
            return fmt::format("the window {} message {}, of {} bytes", goes[i] ? "held" : "let go",
                               i, messages[i].bytes);
        }
    }
    return {};
}

/// Rank 0 sends far more than the window holds. Rank 1 makes progress but posts its receives only
/// after all messages that can leave have left, and then the receives of the last collectives
/// first.
std::string full_window(const ForkedRank& rank, const Fabric& fabric) {
    constexpr std::uint32_t kSequences = 40;
    constexpr std::uint16_t kSteps = 50;
    UcxOptions options = options_for(fabric);
    options.window_bytes = 32 << 10;
    const RankWorker own(rank, options);
    if (!own.worker) {
        return own.complaint;
    }
    const auto transport = own.group(2, rank.rank());
    std::vector<std::vector<std::byte>> buffers;
    std::vector<Message> messages;
    buffers.reserve(kSequences * kSteps);
    for (std::uint32_t s = 0; s < kSequences; ++s) {
        const std::uint32_t sequence = rank.rank() == 0 ? s : kSequences - 1 - s;
        for (std::uint16_t step = 0; step < kSteps; ++step) {
            const std::uint64_t bytes = kSizes[(sequence + step) % 6];
            const std::uint64_t seed = seed_of(2, 0, 1, sequence * 64 + step);
            buffers.push_back(rank.rank() == 0 ? filled(seed, bytes)
                                               : std::vector<std::byte>(bytes));
            messages.push_back(message(rank.rank() == 0 ? Direction::send : Direction::recv,
                                       1 - rank.rank(), buffers.back(), sequence, step));
        }
    }
    const auto look = [&] { transport->progress(); };
    if (rank.rank() == 0) {
        const std::vector<bool> goes = let_go(messages, options.window_bytes);
        transport->post(messages);
        complete_some(*transport, messages,
                      static_cast<std::size_t>(std::count(goes.begin(), goes.end(), true)));
        rank.barrier_polling(look); // Rank 1 is there, and makes progress until the next barrier.
        if (const std::string wrong = check_held_back(messages, goes); !wrong.empty()) {
            return wrong;
        }
        rank.barrier_polling(look);
    } else {
        rank.barrier_polling(look);
        rank.barrier_polling(look);
        transport->post(messages);
    }
    complete(*transport, messages);
    std::string wrong = check_done(messages, transport->status());
    for (std::size_t i = 0; rank.rank() == 1 && wrong.empty() && i < messages.size(); ++i) {
        const std::uint64_t seed = seed_of(2, 0, 1, messages[i].sequence * 64 + messages[i].step);
        if (buffers[i] != filled(seed, messages[i].bytes)) {
            wrong = fmt::format("message {} is wrong", i);
        }
    }
    rank.barrier_polling([&] { own.worker->progress(); });
    return wrong;
}

/// Streams in one direction, with credits that only come back by themselves, then ping-pongs until
/// both ends use the short lane.
std::string stream_and_lane(const ForkedRank& rank, const Fabric& fabric) {
    UcxOptions options = options_for(fabric);
    options.window_bytes = 4 << 10;
    const RankWorker own(rank, options);
    if (!own.worker) {
        return own.complaint;
    }
    const auto transport = own.group(1, rank.rank());
    std::string wrong;
    for (std::uint32_t i = 0; i < 2000 && wrong.empty(); ++i) {
        std::vector<std::byte> buffer =
            rank.rank() == 0 ? filled(i, i % 100) : std::vector<std::byte>(i % 100);
        Message one = message(rank.rank() == 0 ? Direction::send : Direction::recv, 1 - rank.rank(),
                              buffer, i);
        transport->post({&one, 1});
        complete(*transport, {&one, 1});
        wrong = check_done({&one, 1}, transport->status());
        if (wrong.empty() && rank.rank() == 1 && buffer != filled(i, i % 100)) {
            wrong = "wrong bytes";
        }
    }
    const std::string lane = own.worker->describe();
    if (wrong.empty() && (lane.find(" open\n") != std::string::npos) != fabric.short_lane) {
        wrong = "the short lane is not as it should be: " + lane;
    }
    rank.barrier_polling([&] { own.worker->progress(); });
    return wrong;
}

/// Rank 1 is ready for a long message, and then makes no progress until rank 0's send has ended,
/// which could not happen with a rendezvous.
std::string told_ready(const ForkedRank& rank, const Fabric& fabric) {
    UcxOptions options = options_for(fabric);
    // A message that is longer than this still fits into a socket.
    options.eager_bytes_tcp = options.eager_bytes;
    const RankWorker own(rank, options);
    if (!own.worker) {
        return own.complaint;
    }
    const auto transport = own.group(6, rank.rank());
    const Rank peer = 1 - rank.rank();
    constexpr std::uint64_t kLong = 16 << 10;
    std::vector<std::byte> content =
        rank.rank() == 0 ? filled(6, kLong) : std::vector<std::byte>(kLong);
    std::vector<std::byte> word(1);
    Message message_long =
        message(rank.rank() == 0 ? Direction::send : Direction::recv, peer, content, 2);
    Message after = message(rank.rank() == 0 ? Direction::recv : Direction::send, peer, word, 1);
    if (rank.rank() == 1) {
        transport->post({&message_long, 1});
    }
    transport->post({&after, 1}); // This message comes after the word that rank 1 is ready.
    complete(*transport, {&after, 1});
    rank.barrier_polling([&] { transport->progress(); });
    std::string wrong;
    if (rank.rank() == 0) {
        transport->post({&message_long, 1});
        if (!complete(*transport, {&message_long, 1}, 5s)) {
            wrong = "the sender waited for a receiver that had told to be ready";
        }
    }
    rank.barrier();
    complete(*transport, {&message_long, 1});
    if (wrong.empty()) {
        wrong = check_done({&message_long, 1}, transport->status());
    }
    if (wrong.empty() && content != filled(6, kLong)) {
        wrong = "wrong bytes";
    }
    rank.barrier_polling([&] { own.worker->progress(); });
    return wrong;
}

} // namespace

TEST_CASE("ucx: over TCP a receiver that has told to be ready is not asked", "[ucx][ranks]") {
    const auto results =
        fork_ranks(2, 60s, [&](const ForkedRank& rank) { return told_ready(rank, kFabrics[0]); });
    CHECK(complaints(results) == "");
}

TEST_CASE("ucx: two groups, every rank posting in its own order", "[ucx][ranks]") {
    for (const Fabric& fabric : kFabrics) {
        for (const std::uint32_t seed : {1U, 2U, 3U}) {
            INFO(fabric.name << ", seed " << seed);
            const auto results =
                fork_ranks(2 + static_cast<int>(seed), 60s, [&](const ForkedRank& rank) {
                    return random_order(rank, fabric, seed);
                });
            CHECK(complaints(results) == "");
        }
    }
}

TEST_CASE("ucx: messages wait for a group that is created later", "[ucx][ranks]") {
    for (const Fabric& fabric : kFabrics) {
        INFO(fabric.name);
        const auto results =
            fork_ranks(3, 60s, [&](const ForkedRank& rank) { return late_group(rank, fabric); });
        CHECK(complaints(results) == "");
    }
}

TEST_CASE("ucx: a full window delays but never blocks what the receiver needs first",
          "[ucx][ranks]") {
    for (const Fabric& fabric : kFabrics) {
        INFO(fabric.name);
        const auto results =
            fork_ranks(2, 60s, [&](const ForkedRank& rank) { return full_window(rank, fabric); });
        CHECK(complaints(results) == "");
    }
}

TEST_CASE("ucx: credits come back, and the short lane opens where it is wanted", "[ucx][ranks]") {
    for (const Fabric& fabric : kFabrics) {
        INFO(fabric.name);
        const auto results = fork_ranks(
            2, 60s, [&](const ForkedRank& rank) { return stream_and_lane(rank, fabric); });
        CHECK(complaints(results) == "");
    }
}

TEST_CASE("ucx: messages of all sizes reach every rank", "[ucx][ranks]") {
    for (const Fabric& fabric : kFabrics) {
        for (const int size : {2, 3, 4}) {
            INFO(fabric.name << ", " << size << " ranks");
            const auto results = fork_ranks(
                size, 60s, [&](const ForkedRank& rank) { return all_sizes(rank, fabric); });
            CHECK(complaints(results) == "");
        }
    }
}
