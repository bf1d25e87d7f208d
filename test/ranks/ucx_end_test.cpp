// How things end: workers that close in any order, with and without a fence, and peers that die. An
// ordinary end may print nothing, and no end may hang.
#include <random>
#include <thread>

#include "test/ranks/ucx_support.hpp"
#include "test/support/catch.hpp"

using namespace ucg;
using namespace ucg::test;

namespace {

enum class Ending {
    fence,       ///< As an MPI library ends: disconnect, fence, destroy.
    deaf_fence,  ///< The same, but a rank that has disconnected no longer makes progress.
    destructor,  ///< Every rank just destroys its worker.
    first_early, ///< Rank 0 ends at once, the others 300 ms later; meanwhile they make progress.
    last_early,  ///< The same with the last rank in place of rank 0.
};

/// Each rank sends to its right neighbour only, so that most connections are needed in one
/// direction.
std::string ring(const ForkedRank& rank, UcxTransport& transport) {
    std::string wrong;
    for (std::uint32_t i = 0; i < 50 && wrong.empty(); ++i) {
        const std::uint64_t bytes = i % 5 == 0 ? 20000 : i;
        const Rank right = (rank.rank() + 1) % rank.size();
        const Rank left = (rank.rank() + rank.size() - 1) % rank.size();
        auto out = filled(i, bytes);
        std::vector<std::byte> in(bytes);
        Message pair[] = {message(Direction::send, right, out, i),
                          message(Direction::recv, left, in, i)};
        transport.post(pair);
        complete(transport, pair);
        wrong = check_done(pair, transport.status());
        if (wrong.empty() && in != out) {
            wrong = "wrong bytes";
        }
    }
    return wrong;
}

std::string end_as(const ForkedRank& rank, const Fabric& fabric, Ending ending) {
    UcxOptions options = options_for(fabric);
    options.close_timeout = 60s; // This is longer than the test may take, so no rank may need it.
    RankWorker own(rank, options);
    if (!own.worker) {
        return own.complaint;
    }
    auto transport = own.group(1, rank.rank());
    const std::string wrong = ring(rank, *transport);
    transport.reset();
    const bool fenced = ending == Ending::fence || ending == Ending::deaf_fence;
    if (fenced) {
        while (!own.worker->close_progress()) {
        }
        rank.barrier_polling([&] {
            if (ending == Ending::fence) {
                own.worker->progress();
            }
        });
    }
    const bool early = (ending == Ending::first_early && rank.rank() == 0) ||
                       (ending == Ending::last_early && rank.rank() == rank.size() - 1);
    if ((ending == Ending::first_early || ending == Ending::last_early) && !early) {
        const auto until = std::chrono::steady_clock::now() + 300ms;
        while (std::chrono::steady_clock::now() < until) {
            own.worker->progress();
        }
    }
    own.worker.reset();
    return wrong;
}

/// The data of a sender that has gone is still there for a receive that is posted afterwards.
std::string sender_gone(const ForkedRank& rank, const Fabric& fabric) {
    RankWorker own(rank, options_for(fabric));
    if (!own.worker) {
        return own.complaint;
    }
    auto transport = own.group(1, rank.rank());
    std::vector<std::vector<std::byte>> buffers;
    std::vector<Message> messages;
    for (std::uint32_t i = 0; i < 20; ++i) {
        buffers.push_back(rank.rank() == 0 ? filled(i, i * 50) : std::vector<std::byte>(i * 50));
        messages.push_back(message(rank.rank() == 0 ? Direction::send : Direction::recv,
                                   1 - rank.rank(), buffers.back(), i));
    }
    std::string wrong;
    if (rank.rank() == 0) {
        transport->post(messages);
        complete(*transport, messages);
        wrong = check_done(messages, transport->status());
        transport.reset();
        own.worker.reset();
        return wrong;
    }
    const auto until = std::chrono::steady_clock::now() + 500ms;
    while (std::chrono::steady_clock::now() < until) {
        own.worker->progress();
    }
    transport->post(messages);
    complete(*transport, messages);
    wrong = check_done(messages, transport->status());
    for (std::uint32_t i = 0; i < 20 && wrong.empty(); ++i) {
        wrong = buffers[i] == filled(i, i * 50) ? "" : "wrong bytes";
    }
    return wrong;
}

/// The last rank dies while the others wait for it; with `sending` they also send to it.
std::string killed(const ForkedRank& rank, const Fabric& fabric, bool sending) {
    RankWorker own(rank, options_for(fabric));
    if (!own.worker) {
        return own.complaint;
    }
    auto transport = own.group(1, rank.rank());
    const std::string wrong = ring(rank, *transport);
    const Rank victim = rank.size() - 1;
    if (!wrong.empty() || rank.rank() == victim) {
        kill(getpid(), SIGKILL);
    }
    std::vector<std::byte> in(1 << 20);
    std::vector<std::byte> out(1 << 20);
    std::vector<Message> messages = {message(Direction::recv, victim, in, 1000)};
    if (sending) {
        messages.push_back(message(Direction::send, victim, out, 1000));
        messages.push_back(message(Direction::send, victim, {out.data(), 8}, 1000, 1));
    }
    transport->post(messages);
    if (!complete(*transport, messages, 15s)) {
        return "a message to a dead peer neither failed nor ended";
    }
    if (messages[0].state != MessageState::failed || transport->status().ok()) {
        return "the death of a peer was not reported";
    }
    // Messages among the living ranks still arrive.
    if (rank.size() == 3) {
        std::vector<std::byte> word(64);
        Message last = message(rank.rank() == 0 ? Direction::send : Direction::recv,
                               1 - rank.rank(), word, 2000);
        transport->post({&last, 1});
        if (!complete(*transport, {&last, 1}, 10s) || last.state != MessageState::done) {
            return "the living could not speak";
        }
    }
    return {};
}

/// Every rank exchanges a word with every other rank.
std::vector<Message> words_with_all(const ForkedRank& rank, std::span<std::uint64_t> words,
                                    std::uint32_t sequence) {
    std::vector<Message> messages;
    for (Rank peer = 0; peer < rank.size(); ++peer) {
        const auto pair = words.subspan(2 * static_cast<std::size_t>(peer), 2);
        if (peer != rank.rank()) {
            messages.push_back(
                message(Direction::send, peer, std::as_writable_bytes(pair.first(1)), sequence));
            messages.push_back(
                message(Direction::recv, peer, std::as_writable_bytes(pair.last(1)), sequence));
        }
    }
    return messages;
}

/// The last rank ends `turns` turns after its first messages, at whatever step its short lanes are
/// then. The other ranks have more messages for it and for one another.
std::string end_while_connecting(const ForkedRank& rank, const Fabric& fabric, unsigned turns,
                                 bool dies) {
    RankWorker own(rank, options_for(fabric));
    if (!own.worker) {
        return own.complaint;
    }
    auto transport = own.group(1, rank.rank());
    const Rank last = rank.size() - 1;
    std::vector<std::uint64_t> words(2 * static_cast<std::size_t>(rank.size()), 7);
    std::vector<Message> messages = words_with_all(rank, words, 1);
    transport->post(messages);
    if (!complete(*transport, messages, 15s)) {
        return "the first messages did not end: " + own.worker->describe();
    }
    if (rank.rank() == last) {
        for (unsigned i = 0; i < turns; ++i) {
            transport->progress();
        }
        if (dies) {
            // A rank that connects meanwhile gets a socket: UCX 1.13 aborts (tcp_ep.c:478) when a
            // connection that it has made is reset before it has sent the first bytes.
            std::this_thread::sleep_for(100ms);
            kill(getpid(), SIGKILL);
        }
        return {};
    }
    messages = words_with_all(rank, words, 2);
    transport->post(messages);
    if (!complete(*transport, messages, 15s)) {
        return "a message to a peer that has ended neither failed nor ended: " +
               own.worker->describe();
    }
    for (const Message& each : messages) {
        if (each.peer != last && each.state != MessageState::done) {
            return "the others could not speak: " + own.worker->describe();
        }
    }
    return {};
}

} // namespace

TEST_CASE("ucx: workers end silently in any order", "[ucx][ranks]") {
    for (const Fabric& fabric : kFabrics) {
        for (const Ending ending : {Ending::fence, Ending::deaf_fence, Ending::destructor,
                                    Ending::first_early, Ending::last_early}) {
            for (const int size : {2, 3}) {
                INFO(fabric.name << ", ending " << static_cast<int>(ending) << ", " << size
                                 << " ranks");
                const auto results = fork_ranks(size, 30s, [&](const ForkedRank& rank) {
                    return end_as(rank, fabric, ending);
                });
                CHECK(complaints(results) == "");
            }
        }
    }
}

TEST_CASE("ucx: data outlives its sender", "[ucx][ranks]") {
    for (const Fabric& fabric : kFabrics) {
        INFO(fabric.name);
        const auto results =
            fork_ranks(2, 30s, [&](const ForkedRank& rank) { return sender_gone(rank, fabric); });
        CHECK(complaints(results) == "");
    }
}

TEST_CASE("ucx: a peer that is killed fails its messages and no others", "[ucx][ranks]") {
    for (const bool short_lane : {false, true}) {
        for (const bool sending : {false, true}) {
            INFO("short lane " << short_lane << ", sending " << sending);
            const Fabric fabric{"tcp", "tcp", short_lane};
            const auto results = fork_ranks(
                3, 60s, [&](const ForkedRank& rank) { return killed(rank, fabric, sending); });
            CHECK(results[2].signal == SIGKILL);
            CHECK(results[2].output == "");
            for (int rank = 0; rank < 2; ++rank) {
                INFO(results[static_cast<std::size_t>(rank)].output);
                CHECK(results[static_cast<std::size_t>(rank)].ok());
            }
        }
    }
}

TEST_CASE("ucx: a peer that ends while it is being connected to holds nobody up", "[ucx][ranks]") {
    constexpr unsigned seed = 20;
    std::mt19937 random(seed);
    for (int round = 0; round < 24; ++round) {
        const Fabric& fabric = kFabrics[1 + random() % 2];
        const bool dies = random() % 2 == 0;
        const unsigned turns = random() % (1U << random() % 8);
        INFO(fabric.name << ", " << turns << " turns, dies " << dies << ", seed " << seed);
        const auto results = fork_ranks(3, 40s, [&](const ForkedRank& rank) {
            return end_while_connecting(rank, fabric, turns, dies);
        });
        for (std::size_t rank = 0; rank < results.size(); ++rank) {
            INFO("rank " << rank << ": " << results[rank].output);
            CHECK((results[rank].ok() || (rank == 2 && dies)));
        }
    }
}
