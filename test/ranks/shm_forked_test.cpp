// The shared-memory transport between forked processes.
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "shm/shm.hpp"
#include "test/ranks/shm_pattern.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/support/seccomp.hpp"
#include "topo/topo.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using transport::Message;
using transport::MessageState;
using transport::ShmAddress;
using transport::ShmOptions;
using transport::ShmTransport;

/// A rank's heap and transport, connected to all other ranks.
struct Node {
    std::unique_ptr<shm::Heap> heap;
    std::unique_ptr<ShmTransport> transport;
    std::string error;

    Node(const test::ForkedRank& rank, const ShmOptions& options,
         std::uint64_t capacity = 1 << 28) {
        auto made = shm::Heap::create({capacity});
        if (!made) {
            error = made.status().message();
            rank.exchange({});
            return;
        }
        heap = std::move(*made);
        add_group(rank, options);
    }

    void add_group(const test::ForkedRank& rank, const ShmOptions& options) {
        std::vector<Rank> ranks(static_cast<std::size_t>(rank.size()));
        std::iota(ranks.begin(), ranks.end(), 0);
        auto created = ShmTransport::create(*heap, ranks, rank.rank(), options);
        ShmAddress mine = created ? (*created)->address() : ShmAddress();
        std::vector<ShmAddress> all;
        for (const std::string& text :
             rank.exchange({reinterpret_cast<const char*>(&mine), sizeof(mine)})) {
            ShmAddress address;
            std::memcpy(&address, text.data(), sizeof(address));
            all.push_back(address);
        }
        if (!created) {
            error = created.status().message();
            return;
        }
        transport = std::move(*created);
        error = transport->connect(all).message();
    }

    shm::Waiter waiter(const test::ForkedRank& rank) const {
        return shm::Waiter(static_cast<unsigned>(rank.size()),
                           static_cast<unsigned>(topo::usable_cpus().size()));
    }
};

void require_all_ok(const std::vector<test::RankResult>& results) {
    for (const auto& result : results) {
        INFO(result.output);
        CHECK(result.ok());
        CHECK_FALSE(result.timed_out);
    }
}

void run_pattern(const test::TrafficPattern& pattern, const ShmOptions& options) {
    CAPTURE(pattern.seed, pattern.rank_count);
    require_all_ok(test::fork_ranks(pattern.rank_count, 60s, [&](const test::ForkedRank& rank) {
        Node node(rank, options);
        if (!node.error.empty()) {
            return node.error;
        }
        test::PatternRank mine(pattern, rank.rank());
        std::string error = mine.run(*node.transport, node.waiter(rank));
        rank.barrier();
        return error;
    }));
}

} // namespace

TEST_CASE("transport/shm: random messages arrive whole", "[ranks][shm]") {
    test::TrafficPattern pattern;
    pattern.rank_count = GENERATE(2, 3, 4, 8);
    pattern.seed = GENERATE(1U, 2U, 3U);
    run_pattern(pattern, {});
}

TEST_CASE("transport/shm: long messages are cut into fragments", "[ranks][shm]") {
    test::TrafficPattern pattern;
    pattern.rank_count = GENERATE(2, 3, 4);
    pattern.seed = GENERATE(11U, 12U);
    pattern.sequences = 3;
    pattern.sizes = {0, 1, 40, 41, 64, 4096, (64 << 10) + 1, 1 << 20};
    ShmOptions options;
    options.single_copy_bytes_min = ~std::uint64_t{0};
    run_pattern(pattern, options);
}

TEST_CASE("transport/shm: long messages come by one copy, beside short ones", "[ranks][shm]") {
    test::TrafficPattern pattern;
    pattern.rank_count = GENERATE(2, 3, 4);
    pattern.seed = GENERATE(61U, 62U);
    pattern.sequences = 3;
    pattern.sizes = {0, 8, 41, 4095, 4096, (64 << 10) + 1, 3 << 20};
    pattern.receive_in_order = GENERATE(false, true);
    ShmOptions options;
    options.single_copy_bytes_min = 4096;
    run_pattern(pattern, options);
}

TEST_CASE("transport/shm: ranks that make their rings when they first have messages",
          "[ranks][shm]") {
    test::TrafficPattern pattern;
    pattern.rank_count = GENERATE(2, 3, 8, 24);
    pattern.seed = GENERATE(81U, 82U);
    pattern.sequences = 4;
    pattern.sizes = {0, 8, 41, 4096, 40000};
    ShmOptions options;
    options.rings_at_first = pattern.rank_count == 24 ? options.rings_at_first : GENERATE(0U, 1U);
    options.single_copy_bytes_min = GENERATE(std::uint64_t{20000}, ~std::uint64_t{0});
    run_pattern(pattern, options);
}

TEST_CASE("transport/shm: where the kernel refuses to read a peer, messages are copied twice",
          "[ranks][shm]") {
    test::TrafficPattern pattern;
    pattern.seed = 71;
    pattern.sequences = 3;
    pattern.rank_count = 3;
    pattern.sizes = {8, 4096, 100000};
    ShmOptions options;
    options.single_copy_bytes_min = 4096;
    require_all_ok(test::fork_ranks(3, 60s, [&](const test::ForkedRank& rank) -> std::string {
        if (rank.rank() == 1 && !test::refuse_process_vm_readv()) {
            return "no seccomp filter could be set";
        }
        Node node(rank, options);
        if (!node.error.empty()) {
            return node.error;
        }
        if (rank.rank() == 1 && node.transport->single_copy_peers() != 0) {
            return "the kernel should have refused";
        }
        test::PatternRank mine(pattern, rank.rank());
        std::string error = mine.run(*node.transport, node.waiter(rank));
        rank.barrier();
        return error;
    }));
}

TEST_CASE("transport/shm: a slow receiver holds senders back and loses nothing", "[ranks][shm]") {
    test::TrafficPattern pattern;
    pattern.rank_count = GENERATE(2, 4);
    pattern.seed = 31;
    pattern.sequences = 12;
    pattern.messages_per_pair = 6;
    pattern.sizes = {8, 4096, 20000};
    pattern.slow_receiver_us = 300;
    pattern.receive_in_order = GENERATE(false, true);
    ShmOptions options;
    options.depth = 4;
    options.slot_bytes_max = 1024;
    run_pattern(pattern, options);
}

TEST_CASE("transport/shm: many messages outstanding, signals between them", "[ranks][shm]") {
    test::TrafficPattern pattern;
    pattern.rank_count = GENERATE(2, 3, 8);
    pattern.seed = 41;
    pattern.sequences = 64;
    pattern.messages_per_pair = 20;
    pattern.sizes = {0, 1, 8, 40, 41, 64, 200};
    run_pattern(pattern, {});
}

TEST_CASE("transport/shm: the least rings work", "[ranks][shm]") {
    test::TrafficPattern pattern;
    pattern.rank_count = GENERATE(2, 4);
    pattern.seed = 51;
    ShmOptions options;
    options.depth = 2;
    options.slot_bytes_min = 64;
    options.slot_bytes_max = 64;
    options.single_copy_bytes_min = GENERATE(std::uint64_t{1}, ~std::uint64_t{0});
    run_pattern(pattern, options);
}

TEST_CASE("transport/shm: groups come and go on one heap", "[ranks][shm]") {
    ShmOptions options;
    options.rings_at_first = GENERATE(0U, 16U);
    require_all_ok(test::fork_ranks(3, 60s, [&](const test::ForkedRank& rank) -> std::string {
        // There is room for two groups at a time, so memory must be given back and be zero again.
        Node node(rank, options, 4 << 20);
        test::TrafficPattern pattern;
        pattern.rank_count = 3;
        pattern.sizes = {1, 41, 5000};
        for (std::uint64_t round = 0; round < 12; ++round) {
            if (!node.error.empty()) {
                return node.error;
            }
            pattern.seed = 60 + round;
            test::PatternRank mine(pattern, rank.rank());
            if (std::string error = mine.run(*node.transport, node.waiter(rank)); !error.empty()) {
                return error;
            }
            node.add_group(rank, options);
        }
        rank.barrier();
        return node.error;
    }));
}

TEST_CASE("transport/shm: memory of a group comes back though a rank of it was killed",
          "[ranks][shm]") {
    const auto results = test::fork_ranks(3, 30s, [](const test::ForkedRank& rank) -> std::string {
        Node node(rank, ShmOptions());
        if (!node.error.empty()) {
            return node.error;
        }
        node.transport->establish();
        rank.barrier();
        if (rank.rank() == 2) {
            ::kill(::getpid(), SIGKILL);
        }
        node.transport.reset();
        for (int looks = 0; !node.heap->unused(); ++looks) {
            if (looks == 2000) {
                return "memory is still leased";
            }
            std::this_thread::sleep_for(10ms); // Processes are asked about once in a second.
        }
        rank.barrier();
        return "";
    });
    CHECK(results[2].signal == SIGKILL);
    require_all_ok({results[0], results[1]});
}

TEST_CASE("transport/shm: a sender that dies while it writes a part of a message is found dead",
          "[ranks][shm]") {
    const auto results = test::fork_ranks(2, 20s, [](const test::ForkedRank& rank) -> std::string {
        Node node(rank, ShmOptions());
        if (!node.error.empty()) {
            return node.error;
        }
        if (node.transport->single_copy_peers() == 0) {
            return "the kernel refuses its copies";
        }
        rank.barrier(); // To a rank that is not connected yet, the message would go by the ring.
        std::vector<std::byte> data(1000003);
        Message message;
        message.data = data.data();
        message.bytes = data.size();
        message.peer = 1 - rank.rank();
        message.direction =
            rank.rank() == 0 ? transport::Direction::send : transport::Direction::recv;
        for (int turn = 0; turn < 2; ++turn) { // The receive is posted when the message has come.
            if (turn == rank.rank()) {
                node.transport->post({&message, 1});
            }
            rank.barrier();
        }
        if (rank.rank() == 0) { // It claims a piece and does not write it.
            if (test::die_at_process_vm_writev()) {
                node.transport->progress();
            }
            return "alive";
        }
        rank.barrier();
        while (message.state == MessageState::posted) {
            node.transport->progress();
        }
        const std::string status(node.transport->status().message());
        return status.find("has ended") != std::string::npos ? "" : status;
    });
    if (results[1].output.find("refuses its copies") != std::string::npos) {
        WARN("this kernel refuses process_vm_readv");
        return;
    }
    CHECK(results[0].signal == SIGSYS);
    require_all_ok({results[1]});
}

TEST_CASE("transport/shm: a rank without memory makes an error everywhere, not a hang",
          "[ranks][shm]") {
    const auto results = test::fork_ranks(3, 30s, [](const test::ForkedRank& rank) -> std::string {
        ShmOptions options;
        options.attach_timeout = 300ms;
        Node node(rank, options, rank.rank() == 1 ? 4096 : 1 << 26);
        rank.barrier();
        return node.error.empty() ? "connected without rank 1" : "";
    });
    require_all_ok(results);
}
