#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "shm/heap.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/support/seccomp.hpp"
#include "test/unit/shm/heap_support.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using shm::Heap;
using shm::HeapAddress;
using shm::Lease;
using test::exchange;
using test::require_all_ok;

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

std::unique_ptr<Heap> make_heap(std::uint64_t capacity) {
    auto heap = Heap::create({capacity});
    REQUIRE(heap.ok());
    return std::move(*heap);
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/self/fd")) {
        ++count;
    }
    return count;
}

} // namespace

TEST_CASE("shm/heap: leases are zeroed, aligned, apart, and come back", "[shm]") {
    const auto heap = make_heap(kMebi);
    {
        const auto first = heap->lease(1);
        const auto second = heap->lease(shm::page_bytes() + 1);
        REQUIRE(first.ok());
        REQUIRE(second.ok());
        CHECK(first->bytes() == shm::page_bytes());
        CHECK(second->bytes() == 2 * shm::page_bytes());
        CHECK(second->offset() >= first->offset() + first->bytes());
        CHECK(reinterpret_cast<std::uintptr_t>(second->data()) % shm::page_bytes() == 0);
        CHECK(heap->free_bytes() == kMebi - 3 * shm::page_bytes());
        std::memset(second->data(), 0xff, second->bytes());
    }
    CHECK(heap->free_bytes() == kMebi);
    const auto again = heap->lease(4 * shm::page_bytes());
    REQUIRE(again.ok());
    for (std::uint64_t i = 0; i < again->bytes(); ++i) {
        REQUIRE(again->data()[i] == std::byte{0});
    }
}

namespace {

using Marks = std::array<std::atomic<shm::LeftMark>, 2>;

void retire(Heap& heap, Lease lease, shm::Leavers leavers) {
    heap.retire({std::move(lease)}, std::move(leavers));
}

} // namespace

TEST_CASE("shm/heap: retired memory stays as it is until all have left", "[shm]") {
    const auto heap = make_heap(kMebi);
    std::byte* data = nullptr;
    Marks marks = {};
    {
        auto lease = heap->lease(shm::page_bytes());
        REQUIRE(lease.ok());
        data = lease->data();
        data[7] = std::byte{42};
        retire(*heap, std::move(*lease), {marks.data(), 2});
    }
    marks[1] = shm::LeftMark::left;
    {
        const auto other = heap->lease(shm::page_bytes());
        REQUIRE(other.ok());
        CHECK(other->data() != data);
        CHECK(heap->free_bytes() == kMebi - 2 * shm::page_bytes());
        CHECK(data[7] == std::byte{42});
    }
    marks[0] = shm::LeftMark::left;
    CHECK(heap->free_bytes() == kMebi);
}

namespace {

/// How many pages of a range exist, mapped or not.
std::size_t pages_there(const std::byte* data, std::uint64_t bytes) {
    std::vector<unsigned char> pages(bytes / shm::page_bytes());
    REQUIRE(::mincore(const_cast<std::byte*>(data), bytes, pages.data()) == 0);
    return static_cast<std::size_t>(std::count_if(
        pages.begin(), pages.end(), [](unsigned char page) { return page % 2 == 1; }));
}

} // namespace

TEST_CASE("shm/heap: what is reserved gets its pages when they are asked for", "[shm]") {
    if (!shm::backs_pages()) {
        return; // Otherwise the range has its pages from the beginning.
    }
    const std::uint64_t page = shm::page_bytes();
    const auto heap = make_heap(kMebi);
    auto lease = heap->reserve(32 * page, 2 * page);
    REQUIRE(lease.ok());
    CHECK(pages_there(lease->data(), lease->bytes()) == 2);
    REQUIRE(lease->back(page).ok());
    REQUIRE(lease->back(3 * page + 1).ok());
    CHECK(pages_there(lease->data(), lease->bytes()) == 4);
    REQUIRE(heap->back(lease->data() + 20 * page - 1, 2).ok());
    CHECK(pages_there(lease->data(), lease->bytes()) == 6);
    const std::byte* data = lease->data();
    *lease = Lease();
    CHECK(pages_there(data, 32 * page) == 0);
}

TEST_CASE("shm/heap: pages that cannot be had are told, and are not taken for had", "[shm]") {
    if (!shm::backs_pages()) {
        return;
    }
    constexpr std::uint32_t kPopulateWrite = 23; // MADV_POPULATE_WRITE, newer than some headers.
    require_all_ok(test::fork_ranks(1, 30s, [](const test::ForkedRank&) -> std::string {
        const std::uint64_t page = shm::page_bytes();
        const auto heap = make_heap(kMebi);
        auto lease = heap->reserve(32 * page, page);
        if (!lease.ok() || !test::refuse_advice(kPopulateWrite, ENOMEM)) {
            return lease.ok() ? "" : "no lease";
        }
        for (int again = 0; again < 2; ++again) {
            if (lease->back(2 * page).code() != Code::out_of_memory) {
                return "no error";
            }
        }
        return lease->back(page).ok() ? "" : "what it has is gone";
    }));
}

TEST_CASE("shm/heap: retired memory serves the next of its kind, as zeros", "[shm]") {
    if (!shm::backs_pages()) {
        return;
    }
    const std::uint64_t page = shm::page_bytes();
    const auto heap = make_heap(kMebi);
    const bool pages_added = GENERATE(false, true);
    const Marks marks = {shm::LeftMark::left,
                         pages_added ? shm::LeftMark::left_pages : shm::LeftMark::left};
    std::byte* data = nullptr;
    {
        auto lease = heap->reserve(8 * page, 2 * page);
        REQUIRE(lease.ok());
        data = lease->data();
        std::memset(data, 0xff, 2 * page);
        if (pages_added) {
            REQUIRE(heap->back(data + 5 * page, page).ok());
            std::memset(data + 5 * page, 0xff, page);
        }
        retire(*heap, std::move(*lease), {marks.data(), 2});
    }
    CHECK(heap->free_bytes() == kMebi);
    CHECK(pages_there(data, 8 * page) == 2);
    const auto again = heap->reserve(8 * page, 2 * page);
    REQUIRE(again.ok());
    CHECK(again->data() == data);
    CHECK(std::all_of(data, data + 2 * page, [](std::byte byte) { return byte == std::byte{0}; }));
    const auto other = heap->reserve(kMebi - 8 * page, 0);
    CHECK(other.ok()); // Ranges that are kept for reuse give way.
}

TEST_CASE("shm/heap: retired memory that gives way is zeros, whoever has written there", "[shm]") {
    if (!shm::backs_pages()) {
        return;
    }
    const std::uint64_t page = shm::page_bytes();
    const auto heap = make_heap(kMebi);
    auto lease = heap->reserve(8 * page, GENERATE(0U, 2U) * page);
    REQUIRE(lease.ok());
    REQUIRE(heap->back(lease->data() + 5 * page, page).ok());
    std::memset(lease->data() + 5 * page, 0xff, page);
    retire(*heap, std::move(*lease), {}); // The heap is not told that the lease has another page.
    const auto other = heap->reserve(kMebi, 0);
    REQUIRE(other.ok());
    CHECK(pages_there(other->data(), kMebi) == 0);
}

TEST_CASE("shm/heap: little is kept of much that was retired", "[shm]") {
    const auto heap = make_heap(64 * kMebi);
    const std::byte* data = heap->lease(32 * kMebi)->data();
    std::vector<Lease> leases;
    for (int i = 0; i < 40; ++i) {
        auto lease = heap->reserve(kMebi / 2, kMebi / 4);
        REQUIRE(lease.ok());
        leases.push_back(std::move(*lease));
    }
    for (Lease& lease : leases) {
        retire(*heap, std::move(lease), {});
    }
    CHECK(heap->free_bytes() == 64 * kMebi);
    CHECK(pages_there(data, 32 * kMebi) <= kMebi / shm::page_bytes());
}

TEST_CASE("shm/heap: what was retired long ago and no lease wants gives way to what is retired now",
          "[shm]") {
    if (!shm::backs_pages()) {
        return;
    }
    const std::uint64_t page = shm::page_bytes();
    const auto heap = make_heap(64 * kMebi);
    const std::uint64_t backed = GENERATE(0U, 1U, 32U) * page;
    std::vector<Lease> unwanted;
    for (int i = 0; i < 40; ++i) {
        auto lease = heap->reserve(64 * page, backed);
        REQUIRE(lease.ok());
        unwanted.push_back(std::move(*lease));
    }
    auto lease = heap->reserve(8 * page, 2 * page);
    REQUIRE(lease.ok());
    const std::byte* const data = lease->data();
    for (Lease& other : unwanted) {
        retire(*heap, std::move(other), {});
    }
    retire(*heap, std::move(*lease), {});
    CHECK(pages_there(data, 8 * page) == 2);
    CHECK(heap->free_bytes() == 64 * kMebi);
    const auto again = heap->reserve(8 * page, 2 * page);
    REQUIRE(again.ok());
    CHECK(again->data() == data);
}

TEST_CASE("shm/heap: a heap may end before what it has retired", "[shm]") {
    const Marks never = {};
    const auto heap = make_heap(kMebi);
    auto lease = heap->lease(1);
    REQUIRE(lease.ok());
    retire(*heap, std::move(*lease), {never.data(), 1});
    CHECK(heap->free_bytes() == kMebi - shm::page_bytes());
    const auto refused = heap->lease(kMebi);
    CHECK_THAT(std::string(refused.status().message()),
               ContainsSubstring("peers still use " + std::to_string(shm::page_bytes())));
}

TEST_CASE("shm/heap: a moved lease is returned once", "[shm]") {
    const auto heap = make_heap(kMebi);
    {
        auto lease = heap->lease(kMebi / 2);
        REQUIRE(lease.ok());
        Lease moved = std::move(*lease);
        CHECK(moved.data() != nullptr);
        auto other = heap->lease(kMebi / 2);
        REQUIRE(other.ok());
        moved = std::move(*other);
    }
    CHECK(heap->free_bytes() == kMebi);
}

TEST_CASE("shm/heap: exhaustion is a status", "[shm]") {
    const auto heap = make_heap(kMebi);
    const auto all = heap->lease(kMebi);
    REQUIRE(all.ok());
    CHECK(heap->lease(1).status().code() == Code::out_of_memory);
    CHECK(heap->lease(2 * kMebi).status().code() == Code::out_of_memory);
    CHECK(heap->lease(~std::uint64_t{0}).status().code() == Code::out_of_memory);
    CHECK(heap->lease(0).status().code() == Code::invalid_argument);
}

TEST_CASE("shm/heap: fragments do not add up, and the message says so", "[shm]") {
    const auto heap = make_heap(4 * shm::page_bytes());
    std::vector<Lease> leases;
    for (int i = 0; i < 4; ++i) {
        auto lease = heap->lease(1);
        REQUIRE(lease.ok());
        leases.push_back(std::move(*lease));
    }
    leases[0] = Lease();
    leases[2] = Lease();
    const auto two = heap->lease(2 * shm::page_bytes());
    CHECK(two.status().code() == Code::out_of_memory);
    leases[1] = Lease();
    CHECK(heap->lease(3 * shm::page_bytes()).ok());
}

TEST_CASE("shm/heap: no room at all is a status", "[shm]") {
    CHECK(Heap::create({0}).status().code() == Code::out_of_memory);
    CHECK(Heap::create({100}).status().code() == Code::out_of_memory);
    CHECK(make_heap(shm::page_bytes())->capacity_bytes() == shm::page_bytes());
}

TEST_CASE("shm/heap: a huge wish is reduced to a share of the memory", "[shm]") {
    const auto heap = make_heap(std::uint64_t{1} << 50);
    CHECK(heap->capacity_bytes() < std::uint64_t{1} << 46);
    CHECK(heap->lease(kMebi).ok());
}

TEST_CASE("shm/heap: the file size limit is respected and not hit", "[shm]") {
    require_all_ok(test::fork_ranks(1, 10s, [](const test::ForkedRank&) -> std::string {
        const rlimit limit = {64 << 10, 64 << 10};
        if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            return "setrlimit failed";
        }
        // If it exceeded the limit, SIGXFSZ would end the process.
        const auto heap = Heap::create({kMebi});
        return heap.ok() && (*heap)->capacity_bytes() == (64 << 10) ? "" : "wrong capacity";
    }));
}

TEST_CASE("shm/heap: places are found in the own segment only", "[shm]") {
    const auto heap = make_heap(kMebi);
    const auto lease = heap->lease(8192);
    REQUIRE(lease.ok());
    const auto place = heap->locate(lease->data() + 10, 100);
    REQUIRE(place);
    CHECK(place->offset == lease->offset() + 10);
    CHECK(heap->base_of(place->token) + place->offset == lease->data() + 10);
    std::byte own{};
    CHECK_FALSE(heap->locate(&own, 1));
    CHECK_FALSE(heap->locate(lease->data(), 2 * kMebi));
    CHECK(heap->base_of(shm::Token{}) == nullptr);
}

TEST_CASE("shm/heap: nothing stays open", "[shm]") {
    // The descriptors that a process opens only once are open now.
    static_cast<void>(make_heap(kMebi));
    const std::size_t before = open_descriptors();
    {
        const auto heap = make_heap(kMebi);
        const auto lease = heap->lease(1);
        CHECK(open_descriptors() > before);
    }
    CHECK(open_descriptors() == before);
}

TEST_CASE("shm/heap: forked processes read one another's leases", "[shm]") {
    const int size = GENERATE(2, 3, 8);
    require_all_ok(test::fork_ranks(size, 30s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        if (!heap) {
            return std::string(heap.status().message());
        }
        const auto lease = (*heap)->lease(100);
        lease->data()[7] = static_cast<std::byte>(rank.rank() + 1);
        const auto all = exchange(rank, (*heap)->address());
        const std::size_t before = open_descriptors();
        for (int again = 0; again < 2; ++again) { // The second time nothing is left to do.
            if (const Status status = (*heap)->attach(all, 10s); !status.ok()) {
                return std::string(status.message());
            }
        }
        if (open_descriptors() != before) {
            return "descriptors were left open";
        }
        for (std::size_t peer = 0; peer < all.size(); ++peer) {
            const std::byte* base = (*heap)->base_of(all[peer].token);
            if (base == nullptr || base[lease->offset() + 7] != static_cast<std::byte>(peer + 1)) {
                return "wrong memory of rank " + std::to_string(peer);
            }
        }
        rank.barrier();
        return "";
    }));
}

TEST_CASE("shm/heap: processes that come late are waited for, in any order", "[shm]") {
    require_all_ok(test::fork_ranks(4, 30s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto all = exchange(rank, (*heap)->address());
        ::usleep(static_cast<unsigned>((rank.rank() * 7) % 4) * 60000);
        const Status status = (*heap)->attach(all, 10s);
        rank.barrier();
        return std::string(status.message());
    }));
}

TEST_CASE("shm/heap: groups that cross do not block one another", "[shm]") {
    // Ranks attach to the pairs of a triangle in different orders: rank r first attaches to r + 1.
    require_all_ok(test::fork_ranks(3, 30s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto all = exchange(rank, (*heap)->address());
        for (int step = 1; step <= 2; ++step) {
            const auto peer = static_cast<std::size_t>((rank.rank() + step) % 3);
            const std::vector<HeapAddress> pair = {all[peer]};
            if (const Status status = (*heap)->attach(pair, 10s); !status.ok()) {
                return std::string(status.message());
            }
        }
        rank.barrier();
        return "";
    }));
}

TEST_CASE("shm/heap: a dead peer is an error and not a hang", "[shm]") {
    const auto results = test::fork_ranks(3, 30s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto all = exchange(rank, (*heap)->address());
        if (rank.rank() == 1) {
            ::kill(::getpid(), SIGKILL);
        }
        const Status status = (*heap)->attach(all, 2s);
        return status.code() == Code::unreachable || status.code() == Code::timed_out
                   ? ""
                   : "attached to a dead process";
    });
    CHECK(results[0].ok());
    CHECK(results[1].signal == SIGKILL);
    CHECK(results[2].ok());
}

TEST_CASE("shm/heap: a peer that does not come is an error after the time", "[shm]") {
    require_all_ok(test::fork_ranks(2, 30s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto all = exchange(rank, (*heap)->address());
        Code code = Code::timed_out;
        if (rank.rank() == 0) {
            code = (*heap)->attach(all, 200ms).code();
        }
        rank.barrier();
        return code == Code::timed_out ? "" : "no time out";
    }));
}

TEST_CASE("shm/heap: another user's process is refused", "[shm]") {
    if (::geteuid() != 0) {
        WARN("needs root to change the user");
        return;
    }
    require_all_ok(test::fork_ranks(2, 30s, [](const test::ForkedRank& rank) -> std::string {
        if (rank.rank() == 1 && ::setuid(65534) != 0) {
            return "setuid failed";
        }
        auto heap = Heap::create({kMebi});
        const auto all = exchange(rank, (*heap)->address());
        const Status status = (*heap)->attach(all, 500ms);
        rank.barrier();
        return status.code() == Code::unreachable || status.code() == Code::timed_out
                   ? ""
                   : "attached across users";
    }));
}

TEST_CASE("shm/heap: two heaps of one process share one mapping", "[shm]") {
    const auto first = make_heap(kMebi);
    const auto second = make_heap(kMebi);
    const std::vector<HeapAddress> all = {first->address(), second->address()};
    Status outcome; // Catch's assertions must stay in one thread.
    std::thread other([&] { outcome = second->attach(all, 10s); });
    CHECK(first->attach(all, 10s).ok());
    other.join();
    CHECK(outcome.ok());
    CHECK(first->base_of(all[1].token) == second->base_of(all[1].token));
    CHECK(second->base_of(all[0].token) == first->base_of(all[0].token));
}
