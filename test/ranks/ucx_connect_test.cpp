// Connections that cannot be made at once: the network refuses some, as a kernel does that has no
// route or whose table of neighbours is full.
#include <cerrno>
#include <dlfcn.h>
#include <sys/socket.h>

#include "test/ranks/ucx_support.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

namespace {

/// How many of this process's next connections find no route.
int refusals = 0;

} // namespace

/// Replaces the C library's function, also for UCX's sockets.
extern "C" __attribute__((visibility("default"))) int connect(int socket, const sockaddr* address,
                                                              socklen_t length) {
    if (address->sa_family == AF_INET && refusals > 0) {
        --refusals;
        errno = EHOSTUNREACH;
        return -1;
    }
    static const auto next = reinterpret_cast<decltype(&::connect)>(::dlsym(RTLD_NEXT, "connect"));
    return next(socket, address, length);
}

using namespace ucg;
using namespace ucg::test;

namespace {

/// All ranks send short and long messages to all others.
std::string exchange_all(const ForkedRank& rank, UcxTransport& transport) {
    std::string wrong;
    for (std::uint32_t i = 0; i < 6 && wrong.empty(); ++i) {
        const std::uint64_t bytes = i % 3 == 2 ? 300000 : i * 100;
        std::vector<std::vector<std::byte>> buffers;
        std::vector<Message> messages;
        for (Rank peer = 0; peer < rank.size(); ++peer) {
            if (peer != rank.rank()) {
                buffers.push_back(filled(rank.rank() * 100 + i, bytes));
                messages.push_back(message(Direction::send, peer, buffers.back(), i));
                buffers.emplace_back(bytes);
                messages.push_back(message(Direction::recv, peer, buffers.back(), i));
            }
        }
        transport.post(messages);
        complete(transport, messages, 20s);
        wrong = check_done(messages, transport.status());
        for (std::size_t m = 1; m < messages.size() && wrong.empty(); m += 2) {
            const auto source = static_cast<std::uint64_t>(messages[m].peer);
            wrong = buffers[m] == filled(source * 100 + i, bytes) ? "" : "wrong bytes";
        }
    }
    return wrong;
}

/// Rank 1 has told rank 0 with a word that it has taken rank 0's first message. So rank 0 may send
/// as much as the window holds, which is two of these messages, before rank 1 is ready.
std::string fill_window(const ForkedRank& rank, UcxTransport& group, std::uint64_t bytes) {
    const bool sends = rank.rank() == 0;
    const Direction forth = sends ? Direction::send : Direction::recv;
    const Direction back = sends ? Direction::recv : Direction::send;
    std::vector<std::byte> data = sends ? filled(1, bytes) : std::vector<std::byte>(bytes);
    std::vector<std::byte> more = data;
    std::vector<std::byte> word(8);
    Message first = message(forth, 1 - rank.rank(), data, 1);
    Message answer = message(back, 1 - rank.rank(), word, 2);
    group.post({&first, 1});
    complete(group, {&first, 1}, 40s);
    group.post({&answer, 1});
    complete(group, {&answer, 1});
    Message two[] = {message(forth, 1 - rank.rank(), data, 3),
                     message(forth, 1 - rank.rank(), more, 4)};
    std::string wrong;
    if (sends) {
        group.post(two);
        wrong = complete(group, two, 10s) ? "" : "a message waited that the window has room for";
    }
    rank.barrier_polling([&] { group.progress(); });
    if (!sends) {
        group.post(two);
    }
    complete(group, two);
    wrong += check_done({&first, 1}, group.status()) + check_done(two, group.status());
    return wrong.empty() && (data != filled(1, bytes) || more != data) ? "wrong bytes" : wrong;
}

} // namespace

TEST_CASE("transport/ucx: what a connection gives back unsent takes its credit once", "[ucx]") {
    constexpr std::uint64_t kBytes = 8000;
    const int count = GENERATE(1, 2, 4, 7);
    CAPTURE(count);
    UcxOptions options = options_for(kFabrics[0]);
    options.window_bytes = 2 * transport::ucx::credit_cost(kBytes);
    const auto results = fork_ranks(2, 100s, [&](const ForkedRank& rank) -> std::string {
        RankWorker own(rank, options);
        if (!own.worker) {
            return own.complaint;
        }
        auto group = own.group(1, rank.rank());
        refusals = rank.rank() == 1 ? count : 0;
        const std::string wrong = fill_window(rank, *group, kBytes);
        rank.barrier_polling([&] { own.worker->progress(); });
        group.reset();
        return wrong;
    });
    for (const RankResult& result : results) { // UCX itself logs each refusal.
        INFO(result.output);
        CHECK(result.ok());
    }
}

TEST_CASE("transport/ucx: time that passes between two tries ends no connection", "[ucx]") {
    UcxOptions options = options_for(kFabrics[0]);
    options.connect_timeout = 0ms; // It is over at the second try.
    const auto results = fork_ranks(2, 100s, [&](const ForkedRank& rank) -> std::string {
        RankWorker own(rank, options);
        if (!own.worker) {
            return own.complaint;
        }
        auto transport = own.group(1, rank.rank());
        refusals = rank.rank() == 0 ? 4 : 0;
        std::string wrong = exchange_all(rank, *transport);
        rank.barrier_polling([&] { own.worker->progress(); });
        transport.reset();
        return wrong;
    });
    for (const RankResult& result : results) { // UCX itself logs each refusal.
        INFO(result.output);
        CHECK(result.ok());
    }
}

TEST_CASE("transport/ucx: a connection that cannot be made is tried again", "[ucx]") {
    const Fabric fabric = GENERATE(kFabrics[0], kFabrics[1], kFabrics[2]);
    const int first = GENERATE(0, 1, 2); // Connections are refused from this rank on.
    const int count = GENERATE(1, 2, 4, 7);
    INFO(fabric.name << ", " << count << " from rank " << first << " on");
    const auto results = fork_ranks(3, 100s, [&](const ForkedRank& rank) -> std::string {
        RankWorker own(rank, options_for(fabric));
        if (!own.worker) {
            return own.complaint;
        }
        auto transport = own.group(1, rank.rank());
        refusals = rank.rank() >= first ? count : 0;
        std::string wrong = exchange_all(rank, *transport);
        rank.barrier_polling([&] { own.worker->progress(); });
        transport.reset();
        return wrong.empty() && refusals == count && count > 0 && rank.rank() >= first
                   ? "no connection was refused"
                   : wrong;
    });
    for (const RankResult& result : results) { // UCX itself logs each refusal.
        INFO(result.output);
        CHECK(result.ok());
    }
}
