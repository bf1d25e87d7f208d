// Who makes a process's node heap, who has memory of it, and when it goes.
#include <array>
#include <chrono>
#include <memory>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/node_memory.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::capi {
namespace {

/// The memory of one process.
struct Process {
    ProcessSleep sleep{true};
    NodeMemory memory{{.capacity_bytes = std::uint64_t{64} << 20}, true, sleep, true};
};

TEST_CASE("capi: memory of the program's is leased in the node heap and given back", "[capi]") {
    Process process;
    const auto alone = process.sleep.sleeper();
    CHECK(process.memory.heap_at_hand() == nullptr);
    REQUIRE(process.memory.make_heap().ok());
    CHECK(process.memory.heap_at_hand() != nullptr);
    CHECK(process.sleep.sleeper() != alone); // Peers can ring.
    const Result<std::byte*> first = process.memory.allocate(100);
    const Result<std::byte*> second = process.memory.allocate(100);
    REQUIRE((first.ok() && second.ok()));
    CHECK(process.memory.heap_at_hand()->locate(*first, 100));
    CHECK(*first != *second);
    CHECK_FALSE(process.memory.release(*first + 1));
    CHECK(process.memory.release(*first));
    CHECK_FALSE(process.memory.release(*first));
    CHECK(process.memory.heap_at_hand() != nullptr);
}

TEST_CASE("capi: a heap that was given up goes when nothing is leased there", "[capi]") {
    Process process;
    const auto alone = process.sleep.sleeper();
    REQUIRE(process.memory.make_heap().ok());
    const shm::Token token = process.memory.heap_at_hand()->address().token;
    const Result<std::byte*> data = process.memory.allocate(100);
    REQUIRE(data.ok());
    process.memory.drop_unused();
    CHECK(process.memory.usable());
    process.memory.give_up();
    CHECK_FALSE(process.memory.usable());
    CHECK(process.memory.heap_of(token).status().code() == Code::io_error);
    process.memory.drop_unused();
    CHECK(process.memory.heap_at_hand() != nullptr);
    CHECK(process.memory.release(*data));
    CHECK(process.memory.heap_at_hand() == nullptr);
    CHECK(process.sleep.sleeper() == alone);
}

TEST_CASE("capi: without permission no memory is shared", "[capi]") {
    ProcessSleep sleep(true);
    const NodeMemory memory({}, false, sleep, true);
    CHECK_FALSE(memory.usable());
}

TEST_CASE("capi: one group at a time may make the heap that it wished for", "[capi]") {
    Process process;
    const NodeMemory::HeapOrWish first = process.memory.heap_or_wish(false);
    const NodeMemory::HeapOrWish second = process.memory.heap_or_wish(false);
    REQUIRE((first.wish && second.wish));
    CHECK(first.heap == nullptr);
    CHECK(first.wish->token == second.wish->token);
    CHECK_FALSE(process.memory.claim(shm::Token()));
    CHECK(process.memory.claim(first.wish->token));
    CHECK_FALSE(process.memory.claim(second.wish->token));
    CHECK_FALSE(process.memory.heap_or_wish(true).wish);
    CHECK(process.memory.make_heap().code() == Code::busy);
    process.memory.release_claim();

    REQUIRE(process.memory.heap_or_wish(true).wish); // This claims it, too.
    CHECK_FALSE(process.memory.claim(first.wish->token));
    const Result<shm::Heap*> heap = process.memory.heap_of(first.wish->token);
    REQUIRE(heap.ok());
    CHECK((*heap)->address().token == first.wish->token);
    process.memory.release_claim();
    CHECK_FALSE(process.memory.claim(first.wish->token)); // It is made.
    CHECK(process.memory.heap_or_wish(true).heap == *heap);
    CHECK(process.memory.heap_of(shm::Token()).status().code() == Code::io_error);
}

TEST_CASE("capi: a process that alone wishes for a heap joins nobody", "[capi]") {
    Process process;
    const auto deadline = std::chrono::steady_clock::now();
    const NodeMemory::HeapOrWish own = process.memory.heap_or_wish(true);
    REQUIRE(own.wish);
    std::array<shm::HeapWish, 2> wishes = {shm::HeapWish(), *own.wish};
    CHECK(process.memory.join(wishes, 1, deadline) == nullptr);
    CHECK(process.memory.join(wishes, 0, deadline) == nullptr);
    wishes[0] = wishes[1];
    const std::unique_ptr<shm::HeapJoin> join = process.memory.join(wishes, 1, deadline);
    REQUIRE(join != nullptr);
    process.memory.release_claim();
    CHECK_FALSE(process.memory.claim(own.wish->token)); // It was tried.
}

TEST_CASE("capi: a join that failed ends the sharing of memory, unless a peer was gone", "[capi]") {
    Process process;
    CHECK_FALSE(process.memory.take_joined(Status(Code::unreachable, "gone")).ok());
    CHECK(process.memory.usable());
    CHECK_FALSE(process.memory.take_joined(Status(Code::out_of_memory, "none")).ok());
    CHECK_FALSE(process.memory.usable());
}

TEST_CASE("capi: many groups have small rings, few have larger ones in larger heaps", "[capi]") {
    const std::uint64_t few = transport::ShmOptions().ring_bytes;
    Process process;
    CHECK(process.memory.ring_bytes(false) >= few);
    CHECK(process.memory.ring_bytes(true) <= few);
    CHECK(process.memory.ring_bytes(true) >= std::uint64_t{16} << 10);
    ProcessSleep sleep(true);
    NodeMemory large({.capacity_bytes = 128 * few}, true, sleep, true);
    CHECK(large.ring_bytes(false) == 2 * few);
}

} // namespace
} // namespace ucg::capi
