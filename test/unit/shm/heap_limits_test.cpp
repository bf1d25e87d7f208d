// Heaps where the limits of the process leave less room than is wanted.
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shm/heap.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/unit/shm/heap_support.hpp"

#if !defined(UCG_TEST_SANITIZED) // Sanitizers need the address space themselves.
namespace {

using namespace ucg;
using namespace std::chrono_literals;
using shm::Heap;
using test::exchange;
using test::require_all_ok;
using test::take_address_space_away;

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

// What a rank says when it cannot try what the test is about.
constexpr const char* kNoMountNamespace = "NOT TRIED: the system allows no mount namespace";
constexpr const char* kNotLocked = "NOT TRIED: the limit on locked memory refuses mlockall";

/// Like require_all_ok() for one rank, except that a case that was not tried is named and is no
/// failure.
void require_ok_or_not_tried(const std::vector<test::RankResult>& results) {
    for (const char* reason : {kNoMountNamespace, kNotLocked}) {
        if (results.front().output.find(reason) != std::string::npos) {
            WARN(reason);
            return;
        }
    }
    require_all_ok(results);
}

/// Limits this process to 1 GiB of memory, of which 64 MiB are left. False where the system allows
/// no mount namespace.
bool live_in_scarce_memory() {
    const char text[] = "MemTotal: 1048576 kB\nMemAvailable: 65536 kB\n";
    std::string path = "/tmp/meminfo-XXXXXX";
    const int file = ::mkstemp(path.data());
    const bool lives =
        ::write(file, text, sizeof(text) - 1) > 0 &&
        (::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mount(path.c_str(), "/proc/meminfo", nullptr, MS_BIND, nullptr) == 0;
    ::unlink(path.c_str());
    ::close(file);
    return lives;
}

} // namespace

TEST_CASE("shm/heap: a lease is a rank's part of what all of a host may take", "[shm]") {
    require_ok_or_not_tried(test::fork_ranks(1, 30s, [](const test::ForkedRank&) -> std::string {
        if (!live_in_scarce_memory()) {
            return kNoMountNamespace;
        }
        const auto one = Heap::create({.capacity_bytes = 64 * kMebi});
        const auto of_eight = Heap::create({.capacity_bytes = 64 * kMebi, .lessees = 8});
        if (!one || !(*one)->lease(32 * kMebi).ok() || !of_eight ||
            !(*of_eight)->lease(4 * kMebi).ok()) {
            return "refuses what would fit";
        }
        const auto too_much = (*of_eight)->lease(4 * kMebi + shm::page_bytes());
        return too_much.status().code() == Code::out_of_memory ? "" : "takes more than its part";
    }));
}

TEST_CASE("shm/heap: what a program locks in memory does not fill the holes", "[shm]") {
    require_ok_or_not_tried(test::fork_ranks(1, 30s, [](const test::ForkedRank&) -> std::string {
        if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
            return kNotLocked;
        }
        const auto heap = Heap::create({.capacity_bytes = 256 * kMebi});
        if (!heap.ok()) {
            return "no heap: " + std::string(heap.status().message());
        }
        auto lease = (*heap)->lease(kMebi);
        if (!lease.ok()) {
            return "no lease: " + std::string(lease.status().message());
        }
        std::ifstream usage("/proc/self/statm");
        std::uint64_t size = 0;
        std::uint64_t resident = 0;
        std::uint64_t shared = 0;
        usage >> size >> resident >> shared;
        return shared * shm::page_bytes() < 128 * kMebi
                   ? ""
                   : std::to_string(shared * shm::page_bytes() / kMebi) + " MiB are shared";
    }));
}

TEST_CASE("shm/heap: the address space limit is respected", "[shm]") {
    require_all_ok(test::fork_ranks(1, 10s, [](const test::ForkedRank&) -> std::string {
        const rlimit limit = {512 * kMebi, 512 * kMebi};
        if (::setrlimit(RLIMIT_AS, &limit) != 0) {
            return "setrlimit failed";
        }
        const auto heap = Heap::create({1024 * kMebi});
        return heap.ok() && (*heap)->lease(kMebi).ok() ? "" : "no heap";
    }));
}
TEST_CASE("shm/heap: who cannot map a peer does not keep the others waiting", "[shm]") {
    // The time-out is longer than the test may take: only the withdrawal can end the attempts.
    const int poor = GENERATE(0, 1, 2);
    require_all_ok(test::fork_ranks(3, 30s, [poor](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({64 * kMebi});
        const auto all = exchange(rank, (*heap)->address());
        if (rank.rank() == poor && !take_address_space_away()) {
            return "setrlimit failed";
        }
        const Status status = (*heap)->attach(all, 300s);
        // Some of the other ranks may have all heaps before the poor rank is found out.
        if (rank.rank() == poor ? status.code() != Code::out_of_memory
                                : !status.ok() && status.code() != Code::unreachable) {
            return "status " + std::string(status.message());
        }
        if (!status.ok()) {
            (*heap)->withdraw();
        }
        rank.barrier();
        return !status.ok() && (*heap)->attach(all, 300s).code() != Code::unreachable
                   ? "attached after the withdrawal"
                   : "";
    }));
}

TEST_CASE("shm/heap: heaps of a host fit into the address space together", "[shm]") {
    require_all_ok(test::fork_ranks(4, 30s, [](const test::ForkedRank& rank) -> std::string {
        rlimit limit = {};
        std::ifstream usage("/proc/self/statm");
        usage >> limit.rlim_cur;
        limit.rlim_cur = limit.rlim_cur * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + 64 * kMebi;
        limit.rlim_max = limit.rlim_cur;
        if (::setrlimit(RLIMIT_AS, &limit) != 0) {
            return "setrlimit failed";
        }
        auto heap = Heap::create({.capacity_bytes = 1024 * kMebi, .mappings = 4});
        if (!heap) {
            return std::string(heap.status().message());
        }
        const auto all = exchange(rank, (*heap)->address());
        const Status status = (*heap)->attach(all, 10s);
        rank.barrier();
        return std::string(status.message());
    }));
}

TEST_CASE("shm/heap: the limit that leaves no room is named", "[shm]") {
    const auto results = test::fork_ranks(2, 30s, [](const test::ForkedRank& rank) -> std::string {
        const rlimit limit = {100, 100};
        const bool files = rank.rank() == 0;
        if (files ? ::setrlimit(RLIMIT_FSIZE, &limit) != 0 : !take_address_space_away()) {
            return "setrlimit failed";
        }
        const auto heap = Heap::create({64 * kMebi});
        const std::string text(heap.status().message());
        return text.find(files ? "ulimit -f" : "ulimit -v") != std::string::npos ? "" : text;
    });
    CHECK(results[0].output.empty());
    CHECK(results[1].output.empty());
}
#endif
