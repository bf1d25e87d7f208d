// Connections that cannot be made at once: the network refuses some, as a kernel does that has no
// route or whose table of neighbours is full, or a host does not answer.
#include <cerrno>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>

#include "test/ranks/ucx_support.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

namespace {

/// How many of this process's next connections find no route.
int refusals = 0;

/// How long connecting takes until it fails, where that is not 0.
std::chrono::milliseconds silence{0};
int tries_in_silence = 0;

/// How often the kernel was told to repeat the first packet of a connection; 0: it was not told.
int repetitions = 0;

} // namespace

/// Replaces the C library's function, also for UCX's sockets.
extern "C" __attribute__((visibility("default"))) int connect(int socket, const sockaddr* address,
                                                              socklen_t length) {
    if (address->sa_family == AF_INET && silence.count() > 0) {
        ++tries_in_silence;
        std::this_thread::sleep_for(silence);
        errno = ETIMEDOUT;
        return -1;
    }
    if (address->sa_family == AF_INET && refusals > 0) {
        --refusals;
        errno = EHOSTUNREACH;
        return -1;
    }
    static const auto next = reinterpret_cast<decltype(&::connect)>(::dlsym(RTLD_NEXT, "connect"));
    return next(socket, address, length);
}

/// As above.
extern "C" __attribute__((visibility("default"))) int
setsockopt(int socket, int level, int name, const void* value, socklen_t length) {
    if (level == IPPROTO_TCP && name == TCP_SYNCNT) {
        repetitions = *static_cast<const int*>(value);
    }
    static const auto next =
        reinterpret_cast<decltype(&::setsockopt)>(::dlsym(RTLD_NEXT, "setsockopt"));
    return next(socket, level, name, value, length);
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

std::chrono::milliseconds since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begin);
}

/// Rank 0 sends to all others, of which none answers; every try takes 300 ms.
std::string send_into_silence(const ForkedRank& rank, RankWorker& own) {
    auto group = own.group(1, rank.rank());
    if (rank.rank() != 0) {
        rank.barrier();
        return {};
    }
    silence = 300ms;
    std::vector<std::byte> data(8);
    std::vector<Message> messages;
    for (Rank peer = 1; peer < rank.size(); ++peer) {
        messages.push_back(message(Direction::send, peer, data, 1));
    }
    const auto begin = std::chrono::steady_clock::now();
    group->post(messages);
    std::string wrong = since(begin) < 550ms ? "" : "posting took several tries; ";
    while (group->status().ok() && since(begin) < 10s) {
        const auto turn = std::chrono::steady_clock::now();
        group->progress();
        wrong += since(turn) < 550ms ? "" : "progress took several tries; ";
    }
    wrong += fmt::format("{}", since(begin) < 2200ms ? "" : "it took too long; ");
    group->abandon();
    const int tries = tries_in_silence;
    for (const auto after = std::chrono::steady_clock::now(); since(after) < 1s;) {
        own.worker->progress();
    }
    wrong += tries == tries_in_silence ? "" : "connections were tried that nobody needs; ";
    silence = 0ms;
    rank.barrier();
    return wrong;
}

} // namespace

TEST_CASE("transport/ucx: hosts that do not answer hold up the process for a bounded time",
          "[ucx]") {
    UcxOptions options = options_for(kFabrics[0]);
    options.connect_timeout = 1s;
    options.close_timeout = 100ms;
    const auto results = fork_ranks(4, 60s, [&](const ForkedRank& rank) -> std::string {
        RankWorker own(rank, options);
        return own.worker ? send_into_silence(rank, own) : own.complaint;
    });
    for (const RankResult& result : results) { // UCX itself logs each refusal.
        INFO(result.output);
        CHECK(result.ok());
    }
}

TEST_CASE("transport/ucx: the kernel gives up connecting within seconds", "[ucx]") {
    const bool by_user = GENERATE(false, true);
    CAPTURE(by_user);
    const auto results = fork_ranks(2, 60s, [&](const ForkedRank& rank) -> std::string {
        if (by_user) {
            ::setenv("UCX_TCP_SYN_CNT", "auto", 1); // UCX 1.13 cannot read numbers.
        }
        RankWorker own(rank, options_for(kFabrics[0]));
        if (!own.worker) {
            return own.complaint;
        }
        auto group = own.group(1, rank.rank());
        std::string wrong = exchange_all(rank, *group);
        rank.barrier_polling([&] { own.worker->progress(); });
        const bool left = (::getenv("UCX_TCP_SYN_CNT") != nullptr) == by_user;
        return wrong + (left ? "" : "the environment has changed; ") +
               (repetitions == (by_user ? 0 : 2) ? "" : fmt::format("{} SYNs", repetitions));
    });
    CHECK(complaints(results) == "");
}

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
    options.connect_timeout = 50ms; // It is over at the fourth try.
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
