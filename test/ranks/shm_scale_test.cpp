// What a group of many processes of one host costs in all, once each has read a little of what all
// others let it read: pages of their heaps, page tables, and the time until they have met. The test
// prints the figures.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "shm/shm.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "ucg_coll/transport/shm/footprint.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using transport::ShmAddress;
using transport::ShmTransport;

/// The figures that the processes report.
struct Cost {
    std::atomic<std::uint64_t> table_bytes;
    std::atomic<std::uint64_t> page_bytes;
    /// These are taken once each pair has exchanged messages.
    std::atomic<std::uint64_t> pairs_table_bytes;
    std::atomic<std::uint64_t> pairs_page_bytes;
    /// The times at which the last rank had got that far. What comes before began_ns is the test's
    /// own exchange.
    std::atomic<std::int64_t> began_ns;
    std::atomic<std::int64_t> met_ns;
    std::atomic<std::int64_t> exchanged_ns;
    std::atomic<std::int64_t> connected_ns;
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

/// The memory of the file that holds all heaps, whichever process has written it.
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

template <typename T>
std::vector<T> exchange(const test::ForkedRank& rank, const T& mine) {
    std::vector<T> all;
    for (const std::string& text :
         rank.exchange({reinterpret_cast<const char*>(&mine), sizeof(mine)})) {
        T value;
        if (text.size() == sizeof(value)) {
            std::memcpy(&value, text.data(), sizeof(value));
            all.push_back(value);
        }
    }
    return all;
}

void note_latest(std::atomic<std::int64_t>& latest_ns) {
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / 1ns;
    std::int64_t latest = latest_ns;
    while (latest < now && !latest_ns.compare_exchange_weak(latest, now)) {
    }
}

transport::ShmOptions scale_options() {
    transport::ShmOptions options;
    options.staging_bytes = std::uint64_t{1} << 20; // This is the default of each rank.
    return options;
}

/// Runs a barrier by flag slots, and passes a message around the ring of ranks.
bool talk(ShmTransport& transport, const test::ForkedRank& rank) {
    const transport::FlagSlotSequence sequence = {0, 0, 0};
    if (!transport.flag_slots()->share(sequence, nullptr, 0)) {
        return false;
    }
    for (Rank peer = 0; peer < rank.size(); ++peer) {
        while (peer != rank.rank() &&
               transport.flag_slots()->shared(sequence, peer, 0) == nullptr) {
            ::sched_yield();
        }
    }
    transport.flag_slots()->finish(1);
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

constexpr std::uint64_t kBlockBytes = 256; // This is more than fits into a line.

/// Every rank sends a message to every other rank.
bool exchange_all(ShmTransport& transport, const test::ForkedRank& rank) {
    const auto size = static_cast<std::size_t>(rank.size());
    std::vector<std::byte> sent(kBlockBytes, static_cast<std::byte>(rank.rank()));
    std::vector<std::byte> received(size * kBlockBytes);
    std::vector<transport::Message> messages;
    for (Rank i = 1; i < rank.size(); ++i) {
        const Rank to = (rank.rank() + i) % rank.size();
        const Rank from = (rank.rank() + rank.size() - i) % rank.size();
        transport::Message message;
        message.bytes = kBlockBytes;
        message.sequence = 3;
        message.peer = to;
        message.data = sent.data();
        messages.push_back(message);
        message.peer = from;
        message.data = received.data() + static_cast<std::size_t>(from) * kBlockBytes;
        message.direction = transport::Direction::recv;
        messages.push_back(message);
    }
    transport.post(messages);
    const auto is_posted = [](const transport::Message& message) {
        return message.state == transport::MessageState::posted;
    };
    while (std::any_of(messages.begin(), messages.end(), is_posted)) {
        transport.progress();
        ::sched_yield();
    }
    return std::all_of(messages.begin(), messages.end(), [](const transport::Message& message) {
        return message.direction == transport::Direction::send ||
               message.data[kBlockBytes - 1] == static_cast<std::byte>(message.peer);
    });
}

/// Every rank reads what all others let it read, as in an alltoall of short blocks.
bool read_all(ShmTransport& transport, const test::ForkedRank& rank) {
    constexpr std::uint32_t kSequence = 2;
    const std::span<std::byte> own = transport.staging();
    transport::SharedBuffers buffers = {};
    buffers[static_cast<std::size_t>(graph::BufferKind::input)] = {own.data(), true};
    if (own.empty() || !transport.expose(kSequence, buffers, sizeof(Rank))) {
        return false;
    }
    const Rank mine = rank.rank();
    std::memcpy(own.data(), &mine, sizeof(mine));
    rank.barrier();
    bool right = true;
    for (Rank peer = 0; peer < rank.size(); ++peer) {
        Rank read = mine;
        if (peer != mine) {
            std::memcpy(&read,
                        transport.peer_buffer(peer, graph::BufferKind::input, kSequence).data,
                        sizeof(read));
        }
        right = right && read == peer;
    }
    rank.barrier();
    return right;
}

/// Makes the heap in the way of ranks that meet for the first time.
Result<std::unique_ptr<shm::Heap>> make_heap(const test::ForkedRank& rank, Cost& cost) {
    auto door = shm::Door::open();
    if (!door.ok()) {
        return door.status();
    }
    const auto wish = shm::Heap::wish({}, *door);
    if (!wish.ok()) {
        return wish.status();
    }
    const std::vector<shm::HeapWish> wishes = exchange(rank, *wish);
    note_latest(cost.began_ns);
    auto heap =
        shm::Heap::join({}, std::move(*door), wishes, static_cast<std::size_t>(rank.rank()), 60s);
    note_latest(cost.met_ns);
    return heap;
}

/// The system does not count root's descriptors in flight, so the process becomes another user.
/// After that it may look at its own descriptors only if it makes itself dumpable.
bool become_ordinary_user() {
    return ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0 &&
                                ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

std::string run_rank(const test::ForkedRank& rank, Cost& cost) {
    if (!become_ordinary_user()) {
        return "cannot become an ordinary user";
    }
    const std::uint64_t tables_before = page_table_bytes();
    auto heap = make_heap(rank, cost);
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
    auto made = ShmTransport::create(**heap, ranks, rank.rank(), scale_options());
    if (!made.ok()) {
        return std::string(made.status().message());
    }
    ShmTransport& transport = **made;
    const std::vector<ShmAddress> addresses = exchange(rank, transport.address());
    note_latest(cost.exchanged_ns);
    const Status status = transport.connect(addresses);
    note_latest(cost.connected_ns);
    if (!status.ok()) {
        return std::string(status.message());
    }
    rank.barrier();
    transport.establish();
    const bool right = talk(transport, rank) && read_all(transport, rank);
    rank.barrier();
    cost.table_bytes += page_table_bytes() - tables_before;
    cost.page_bytes += rank.rank() == 0 ? heap_bytes() : 0;
    rank.barrier();
    const bool exchanged = exchange_all(transport, rank);
    rank.barrier();
    cost.pairs_table_bytes += page_table_bytes() - tables_before;
    cost.pairs_page_bytes += rank.rank() == 0 ? heap_bytes() : 0;
    rank.barrier();
    made->reset();
    return right && exchanged ? "" : "a message that was not sent";
}

} // namespace

TEST_CASE("transport/shm: what many processes cost together", "[ranks][shm]") {
    const int size = GENERATE(64, 128, 256);
    if (!test::can_fork(size)) {
        WARN("this system allows no " << size << " processes");
        return;
    }
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
    std::printf("%d ranks: met after %.1f ms, connected after %.1f ms more, %.1f MiB of pages, "
                "%.1f MiB of page tables; %.1f and %.1f MiB once each pair had messages\n",
                size, static_cast<double>(cost->met_ns - cost->began_ns) / 1e6,
                static_cast<double>(cost->connected_ns - cost->exchanged_ns) / 1e6,
                static_cast<double>(cost->page_bytes) / (1 << 20),
                static_cast<double>(cost->table_bytes) / (1 << 20),
                static_cast<double>(cost->pairs_page_bytes) / (1 << 20),
                static_cast<double>(cost->pairs_table_bytes) / (1 << 20));
    CHECK(total <= std::uint64_t{256} << 20);
    const transport::ShmFootprint stated =
        transport::footprint(static_cast<std::uint32_t>(size), scale_options());
    CHECK(cost->pairs_page_bytes - cost->page_bytes <= stated.pairs_bytes);
    CHECK(cost->pairs_table_bytes - cost->table_bytes <= stated.pairs_table_bytes);
    ::munmap(cost, sizeof(Cost));
}
