// What a core file of a process holds of the heaps that the process has mapped, and that their
// pages are small.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "shm/heap.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/unit/shm/heap_support.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using shm::Heap;

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

/// Does VmFlags in smaps (proc(5)) say that of the page at `address`?
bool has_flag(const std::byte* address, const char* flag) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream smaps("/proc/self/smaps");
    bool here = false;
    for (std::string line; std::getline(smaps, line);) {
        char* dash = nullptr;
        const std::uintptr_t first = std::strtoull(line.c_str(), &dash, 16);
        if (*dash == '-') {
            here = wanted >= first && wanted < std::strtoull(dash + 1, nullptr, 16);
        } else if (here && line.rfind("VmFlags:", 0) == 0) {
            return line.find(flag) != std::string::npos;
        }
    }
    return false;
}

/// Is the page at `address` left out of core files?
bool left_out(const std::byte* address) {
    return has_flag(address, " dd");
}

} // namespace

TEST_CASE("shm/core: core files hold what is leased, and no holes", "[shm]") {
    auto heap = Heap::create({8 * kMebi});
    REQUIRE(heap.ok());
    const std::byte* base = (*heap)->base_of((*heap)->address().token);
    CHECK(left_out(base));
    CHECK(left_out(base + 8 * kMebi - 1));
    {
        const auto first = (*heap)->lease(2 * shm::page_bytes());
        auto second = (*heap)->lease(kMebi);
        REQUIRE(first.ok());
        REQUIRE(second.ok());
        CHECK_FALSE(left_out(first->data()));
        CHECK_FALSE(left_out(second->data()));
        CHECK_FALSE(left_out(second->data() + second->bytes() - 1));
        CHECK(left_out(second->data() + second->bytes()));
        const std::byte* returned = second->data();
        *second = shm::Lease();
        CHECK(left_out(returned));
        CHECK_FALSE(left_out(first->data()));
    }
    CHECK(left_out(base));
}

TEST_CASE("shm/core: core files hold nothing of the peers", "[shm]") {
    test::require_all_ok(test::fork_ranks(2, 30s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto lease = (*heap)->lease(1);
        const auto all = test::exchange(rank, (*heap)->address());
        if (const Status status = (*heap)->attach(all, 10s); !status.ok()) {
            return std::string(status.message());
        }
        const auto& peer = all[static_cast<std::size_t>(1 - rank.rank())];
        const bool right = left_out((*heap)->base_of(peer.token) + lease->offset());
        rank.barrier();
        return right ? "" : "a core file would hold the peer's lease";
    }));
}

TEST_CASE("shm/core: no heap has huge pages, whatever the system gives to shared memory", "[shm]") {
    if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
        return;
    }
    test::require_all_ok(test::fork_ranks(2, 30s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto all = test::exchange(rank, (*heap)->address());
        const Status status = (*heap)->attach(all, 10s);
        rank.barrier();
        for (const shm::HeapAddress& each : all) {
            if (!status.ok() || !has_flag((*heap)->base_of(each.token), " nh")) {
                return "huge pages are not refused";
            }
        }
        return "";
    }));
}
