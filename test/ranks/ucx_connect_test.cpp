// Connections that cannot be made at once: the network refuses some, as a kernel does that has no
// route, or whose table of neighbours is full.
#include <cerrno>
#include <dlfcn.h>
#include <sys/socket.h>

#include "test/ranks/ucx_support.hpp"
#include "test/support/catch.hpp"

namespace {

/// How many of this process's next connections have no route.
int refusals = 0;

} // namespace

/// Stands before the C library's, for UCX's sockets too.
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

/// All send to all, short ones and long ones.
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

} // namespace

TEST_CASE("transport/ucx: a connection that cannot be made is tried again", "[ucx]") {
    const Fabric fabric = GENERATE(kFabrics[0], kFabrics[1], kFabrics[2]);
    const int first = GENERATE(0, 1, 2); // From this rank on they are refused.
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
    for (const RankResult& result : results) { // UCX itself tells of each refusal.
        INFO(result.output);
        CHECK(result.ok());
    }
}
