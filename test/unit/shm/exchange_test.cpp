// How processes get one another's heaps: many at once, with strangers among them, and some that
// leave.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "shm/heap.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/unit/shm/heap_support.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using shm::Heap;
using shm::HeapAddress;
using test::exchange;
using test::require_all_ok;

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

/// The system does not count root's descriptors in flight, so the process becomes another user.
bool become_ordinary_user() {
    return ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0);
}

bool limit_descriptors(rlim_t number) {
    const rlimit limit = {number, number};
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

struct Mapping {
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    bool accessible = false;
    bool heap = false;
};

std::vector<Mapping> mappings() {
    std::vector<Mapping> all;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        char* at = nullptr;
        const std::uintptr_t first = std::strtoull(line.c_str(), &at, 16);
        const std::uintptr_t end = std::strtoull(at + 1, &at, 16);
        const bool accessible = std::string(at, 5) != " ---p";
        all.push_back({first, end, accessible, line.find("memfd:ucg") != std::string::npos});
    }
    return all;
}

std::size_t mapped_heaps() {
    std::size_t count = 0;
    for (const Mapping& mapping : mappings()) {
        count += mapping.heap ? 1 : 0;
    }
    return count;
}

/// A child of a rank that holds copies of all the rank's descriptors; the destructor ends it.
struct Bystander {
    pid_t child = ::fork();

    Bystander() {
        if (child == 0) {
            ::pause();
            ::_exit(0);
        }
    }
    ~Bystander() {
        if (child > 0) { // kill(-1) would end every process of the user.
            ::kill(child, SIGKILL);
            ::waitpid(child, nullptr, 0);
        }
    }
    Bystander(const Bystander&) = delete;
    Bystander& operator=(const Bystander&) = delete;
};

} // namespace

TEST_CASE("shm/exchange: many processes of an ordinary user meet", "[shm]") {
    // A user may have as many descriptors in flight as a process may have open.
    require_all_ok(test::fork_ranks(40, 60s, [](const test::ForkedRank& rank) -> std::string {
        if (!become_ordinary_user() || !limit_descriptors(128)) {
            return "cannot become an ordinary user";
        }
        auto heap = Heap::create({kMebi});
        if (!heap) {
            return std::string(heap.status().message());
        }
        const auto all = exchange(rank, (*heap)->address());
        const Status status = (*heap)->attach(all, 20s);
        rank.barrier();
        return std::string(status.message());
    }));
}

TEST_CASE("shm/exchange: who knows no more than the socket's name gets nothing", "[shm]") {
    require_all_ok(test::fork_ranks(3, 30s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto all = exchange(rank, (*heap)->address());
        std::string wrong;
        // It serves the processes that call while it waits for the last one.
        if (rank.rank() == 0) {
            const std::vector<HeapAddress> absent = {all[0], all[2]};
            static_cast<void>((*heap)->attach(absent, 600ms));
            wrong = (*heap)->base_of(all[1].token) != nullptr ? "maps what a stranger sent" : "";
        } else if (rank.rank() == 1) {
            HeapAddress name;
            name.token = all[0].token;
            name.capacity_bytes = all[0].capacity_bytes;
            const std::vector<HeapAddress> victim = {name};
            wrong = (*heap)->attach(victim, 300ms).ok() ? "a stranger gets a heap" : "";
        }
        rank.barrier();
        return wrong;
    }));
}

TEST_CASE("shm/exchange: who has no descriptor left to call with is told so", "[shm]") {
    require_all_ok(test::fork_ranks(2, 20s, [](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto all = exchange(rank, (*heap)->address());
        const int next = ::dup(STDERR_FILENO);
        ::close(next);
        if (!limit_descriptors(static_cast<rlim_t>(next))) {
            return "cannot be limited";
        }
        const Status status = (*heap)->attach(all, 300ms);
        rank.barrier();
        const bool is_told = status.message().find("Too many open files") != std::string::npos;
        return is_told || status.code() == Code::timed_out ? "" : std::string(status.message());
    }));
}

#if !defined(UCG_TEST_SANITIZED) // Sanitizers need descriptors to look at memory.
TEST_CASE("shm/exchange: a door that has no descriptor left to open with says so", "[shm]") {
    require_all_ok(test::fork_ranks(1, 20s, [](const test::ForkedRank&) -> std::string {
        if (!limit_descriptors(0)) {
            return "cannot be limited";
        }
        const auto door = shm::Door::open();
        return door.status().message().find("socket failed: Too many open files") !=
                       std::string::npos
                   ? ""
                   : std::string(door.status().message());
    }));
}
#endif

TEST_CASE("shm/exchange: who withdraws wakes those who wait, though a child lives on", "[shm]") {
    const bool end = GENERATE(false, true); // Either the heap ends, or it only withdraws.
    require_all_ok(test::fork_ranks(2, 20s, [end](const test::ForkedRank& rank) -> std::string {
        auto heap = Heap::create({kMebi});
        const auto all = exchange(rank, (*heap)->address());
        Code code = Code::unreachable;
        if (rank.rank() == 0) {
            const Bystander child;
            rank.barrier();
            ::usleep(150000); // By then the other rank waits; the test passes either way.
            if (end) {
                heap->reset();
            } else {
                (*heap)->withdraw();
            }
            rank.barrier();
        } else {
            rank.barrier();
            code = (*heap)->attach(all, 300s).code();
            rank.barrier();
        }
        return code == Code::unreachable ? "" : "not refused";
    }));
}

TEST_CASE("shm/exchange: heaps of processes that have ended are unmapped", "[shm]") {
    constexpr int kGenerations = 6;
    require_all_ok(test::fork_ranks(2, 30s, [](const test::ForkedRank& rank) -> std::string {
        std::unique_ptr<Heap> mine;
        std::vector<HeapAddress> seen;
        std::shared_ptr<std::byte> held;
        for (int generation = 0; generation < kGenerations; ++generation) {
            if (rank.rank() == 1 || mine == nullptr) {
                mine.reset();
                mine = Heap::create({kMebi}).value();
            }
            const auto all = exchange(rank, mine->address());
            if (const Status status = mine->attach(all, 10s); !status.ok()) {
                return std::string(status.message());
            }
            seen.push_back(all[1]);
            if (generation == 0) {
                held = mine->hold(all[1].token);
                held.get()[7] = std::byte{42};
            }
            rank.barrier();
        }
        if (rank.rank() == 1) {
            return "";
        }
        // The three are its own, the held one, and the last one, which had not ended when it was
        // attached.
        if (mapped_heaps() != 3 || mine->base_of(seen[1].token) != nullptr ||
            mine->base_of(seen[0].token) != held.get() || held.get()[7] != std::byte{42}) {
            return std::to_string(mapped_heaps()) + " heaps are mapped";
        }
        return "";
    }));
}

TEST_CASE("shm/exchange: a forked child has nothing of the peers", "[shm]") {
    require_all_ok(test::fork_ranks(2, 30s, [](const test::ForkedRank& rank) -> std::string {
        const auto mine = Heap::create({kMebi});
        const auto lease = (*mine)->lease(kMebi / 4);
        const auto all = exchange(rank, (*mine)->address());
        if (const Status status = (*mine)->attach(all, 10s); !status.ok()) {
            return std::string(status.message());
        }
        std::memset(lease->data(), 3, lease->bytes());
        const auto is_mapped = [&](int of) {
            unsigned char in_memory = 0;
            std::byte* base = (*mine)->base_of(all[static_cast<std::size_t>(of)].token);
            return ::mincore(base, shm::page_bytes(), &in_memory) == 0;
        };
        const int peer = 1 - rank.rank();
        const pid_t child = ::fork();
        if (child == 0) {
            ::_exit(!is_mapped(peer) && is_mapped(rank.rank()) && lease->data()[1] == std::byte{3}
                        ? 0
                        : 1);
        }
        int status = -1;
        const bool right = ::waitpid(child, &status, 0) == child && status == 0;
        rank.barrier();
        return right && is_mapped(peer) ? "" : "the child maps its peer, or its parent does not";
    }));
}

TEST_CASE("shm/exchange: nobody can run from one segment into the next", "[shm]") {
    const auto first = Heap::create({kMebi});
    const auto second = Heap::create({kMebi});
    REQUIRE(first.ok());
    REQUIRE(second.ok());
    const auto all = mappings();
    for (std::size_t i = 1; i + 1 < all.size(); ++i) {
        if (all[i].heap) {
            CHECK((all[i - 1].end == all[i].first && !all[i - 1].accessible));
            CHECK((all[i + 1].first == all[i].end && !all[i + 1].accessible));
        }
    }
}
