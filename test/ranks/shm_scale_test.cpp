// What a group of many processes of one host costs in all: pages of their heaps, page tables, and
// the time until they know one another. It prints what it finds.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vector>

#include "shm/shm.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using transport::ShmAddress;
using transport::ShmTransport;

/// What the processes tell of themselves.
struct Cost {
    std::atomic<std::uint64_t> table_bytes;
    std::atomic<std::uint64_t> page_bytes;
    std::atomic<std::uint64_t> connect_us; ///< The longest.
};

std::uint64_t page_table_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmPTE:")) {
            return std::stoull(line.substr(6)) * 1024;
        }
    }
    return 0;
}

/// Of the own heap's file, whoever has written them.
std::uint64_t heap_bytes() {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code ended;
        const std::string target = std::filesystem::read_symlink(entry.path(), ended);
        struct stat info = {};
        if (target.starts_with("/memfd:ucg") && ::stat(entry.path().c_str(), &info) == 0) {
            bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
        }
    }
    return bytes;
}

std::vector<ShmAddress> exchange(const test::ForkedRank& rank, const ShmAddress& mine) {
    std::vector<ShmAddress> all;
    for (const std::string& text :
         rank.exchange({reinterpret_cast<const char*>(&mine), sizeof(mine)})) {
        ShmAddress address;
        if (text.size() == sizeof(address)) {
            std::memcpy(&address, text.data(), sizeof(address));
            all.push_back(address);
        }
    }
    return all;
}

/// A barrier by the boards, and a message around the ring of ranks.
bool talk(ShmTransport& transport, const test::ForkedRank& rank) {
    const transport::BoardTurn turn = {0, 0, 0};
    if (!transport.board()->share(turn, nullptr, 0)) {
        return false;
    }
    for (Rank peer = 0; peer < rank.size(); ++peer) {
        while (peer != rank.rank() && transport.board()->shared(turn, peer, 0) == nullptr) {
            ::sched_yield();
        }
    }
    transport.board()->finish(1);
    Rank sent = rank.rank();
    Rank received = kNoRank;
    std::vector<transport::Message> messages(2);
    messages[0].peer = (rank.rank() + 1) % rank.size();
    messages[0].data = reinterpret_cast<std::byte*>(&sent);
    messages[1].peer = (rank.rank() + rank.size() - 1) % rank.size();
    messages[1].data = reinterpret_cast<std::byte*>(&received);
    messages[1].direction = transport::Direction::recv;
    for (transport::Message& message : messages) {
        message.bytes = sizeof(Rank);
        message.sequence = 1;
    }
    transport.post(messages);
    while (messages[1].state == transport::MessageState::posted) {
        transport.progress();
        ::sched_yield();
    }
    return received == messages[1].peer;
}

std::string run_rank(const test::ForkedRank& rank, Cost& cost) {
    auto heap = shm::Heap::create({});
    if (!heap.ok()) {
        return std::string(heap.status().message());
    }
    const auto ranks = [&] {
        std::vector<Rank> all;
        for (Rank i = 0; i < rank.size(); ++i) {
            all.push_back(i);
        }
        return all;
    }();
    const std::uint64_t tables_before = page_table_bytes();
    auto made = ShmTransport::create(**heap, ranks, rank.rank(), {});
    if (!made.ok()) {
        return std::string(made.status().message());
    }
    ShmTransport& transport = **made;
    const std::vector<ShmAddress> addresses = exchange(rank, transport.address());
    const auto start = std::chrono::steady_clock::now();
    const Status status = transport.connect(addresses);
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - start);
    if (!status.ok()) {
        return std::string(status.message());
    }
    rank.barrier();
    transport.establish();
    const bool right = talk(transport, rank);
    rank.barrier();
    std::uint64_t longest = cost.connect_us;
    const auto mine = static_cast<std::uint64_t>(took.count());
    while (longest < mine && !cost.connect_us.compare_exchange_weak(longest, mine)) {
    }
    cost.table_bytes += page_table_bytes() - tables_before;
    cost.page_bytes += heap_bytes();
    rank.barrier();
    made->reset();
    return right ? "" : "a message that was not sent";
}

} // namespace

TEST_CASE("transport/shm: what many processes cost together", "[ranks][shm]") {
    const int size = GENERATE(64, 256);
    auto* cost = static_cast<Cost*>(
        ::mmap(nullptr, sizeof(Cost), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REQUIRE(cost != MAP_FAILED);
    const auto results = test::fork_ranks(
        size, 120s, [&](const test::ForkedRank& rank) { return run_rank(rank, *cost); });
    for (const auto& result : results) {
        INFO(result.output);
        REQUIRE(result.ok());
    }
    const std::uint64_t total = cost->page_bytes + cost->table_bytes;
    std::printf("%d ranks: connected after %.1f ms, %.1f MiB of pages, %.1f MiB of page tables\n",
                size, static_cast<double>(cost->connect_us) / 1e3,
                static_cast<double>(cost->page_bytes) / (1 << 20),
                static_cast<double>(cost->table_bytes) / (1 << 20));
    CHECK(total <= std::uint64_t{256} << 20);
    ::munmap(cost, sizeof(Cost));
}
