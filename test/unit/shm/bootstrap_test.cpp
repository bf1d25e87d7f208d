// How processes without a heap make their heaps together in one segment.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "shm/door.hpp"
#include "shm/heap.hpp"
#include "test/support/catch.hpp"
#include "test/support/fork_ranks.hpp"
#include "test/support/seccomp.hpp"
#include "test/unit/shm/heap_support.hpp"

namespace {

using namespace ucg;
using namespace std::chrono_literals;
using shm::Door;
using shm::Heap;
using shm::HeapWish;
using test::exchange_values;
using test::require_all_ok;
using test::take_address_space_away;

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

HeapWish wish_at(const Door& door, std::uint64_t bytes) {
    return {door.token(), door.key(), bytes, ~std::uint64_t{0}};
}

/// Makes the heap of a rank that meets all others, with a part of 1 MiB and a page for each rank.
Result<std::unique_ptr<Heap>> meet_all(const test::ForkedRank& rank) {
    Door door = Door::open().value();
    const std::uint64_t own = kMebi + static_cast<std::uint64_t>(rank.rank()) * shm::page_bytes();
    const auto wishes = exchange_values(rank, wish_at(door, own));
    return Heap::join({}, std::move(door), wishes, static_cast<std::size_t>(rank.rank()), 60s);
}

std::size_t lines_of_maps(const char* word) {
    std::size_t count = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        count += line.find(word) != std::string::npos ? 1 : 0;
    }
    return count;
}

/// A counter that forked processes share.
std::atomic<unsigned>* shared_counter() {
    void* const page = ::mmap(nullptr, sizeof(std::atomic<unsigned>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? nullptr : new (page) std::atomic<unsigned>(0);
}

std::atomic<unsigned>* signals_come = nullptr;

void await_news(int socket) {
    pollfd watched = {socket, POLLIN, 0};
    ::poll(&watched, 1, 20000);
}

/// Interrupts a process again and again until it has hung up. The handler has SA_RESTART, as
/// profilers' handlers do, but that does not restart poll(2).
bool hangs_up_for_signals(pid_t process, int caller) {
    constexpr unsigned kSignals = 200;
    bool hung_up = false;
    for (unsigned i = 1; i <= kSignals && !hung_up; ++i) {
        if (::kill(process, SIGUSR1) != 0) {
            return true;
        }
        while (signals_come->load() < i) {
            ::sched_yield();
        }
        hung_up = shm::Letter::receive(caller).kind != shm::Letter::Kind::nothing_yet;
    }
    return hung_up;
}

/// Calls as a member does, and hangs up when its letter is there, without reading it.
bool call_in_vain(const Door& door, const HeapWish& giver) {
    const shm::Descriptor socket = shm::new_socket();
    shm::Greeting greeting;
    greeting.to = giver.key;
    greeting.from.token = door.token();
    greeting.from.key = door.key();
    if (!shm::connect_to(socket.get(), giver.token) ||
        shm::send_letter(socket.get(), greeting, -1) != shm::Sent::yes) {
        return false;
    }
    await_news(socket.get());
    return true;
}

/// The system does not count root's descriptors in flight, so the process becomes another user.
bool become_limited_user() {
    const rlimit limit = {64, 64};
    return (::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0)) &&
           ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

} // namespace

TEST_CASE("shm/bootstrap: many processes of an ordinary user share one segment", "[shm]") {
    constexpr int kRanks = 100;
    if (!test::can_fork(kRanks)) {
        WARN("this system allows no " << kRanks << " processes");
        return;
    }
    require_all_ok(test::fork_ranks(kRanks, 60s, [](const test::ForkedRank& rank) -> std::string {
        if (!become_limited_user()) {
            return "cannot become an ordinary user";
        }
        auto heap = meet_all(rank);
        if (!heap) {
            return std::string(heap.status().message());
        }
        auto lease = (*heap)->lease((*heap)->capacity_bytes());
        if (!lease || (*heap)->lease(1).ok()) {
            return "not the part that it wished for";
        }
        std::memset(lease->data(), rank.rank(), lease->bytes());
        struct Place {
            shm::HeapAddress address;
            std::uint64_t offset;
            std::uint64_t bytes;
        };
        const auto places =
            exchange_values(rank, Place{(*heap)->address(), lease->offset(), lease->bytes()});
        for (std::size_t i = 0; i < places.size(); ++i) {
            const std::byte* at = (*heap)->base_of(places[i].address.token);
            if (at == nullptr || at[places[i].offset] != std::byte(i) ||
                at[places[i].offset + places[i].bytes - 1] != std::byte(i)) {
                return "not what rank " + std::to_string(i) + " wrote";
            }
        }
        rank.barrier();
        return lines_of_maps("memfd:ucg") > 6 ? "more than one segment is mapped" : "";
    }));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("shm/bootstrap: who cannot map the segment does not keep the others waiting", "[shm]") {
    // The time-out is longer than the test may take.
    const int poor = GENERATE(0, 1, 2);
    require_all_ok(test::fork_ranks(3, 30s, [poor](const test::ForkedRank& rank) -> std::string {
        Door door = Door::open().value();
        const auto wishes = exchange_values(rank, wish_at(door, 64 * kMebi));
        if (rank.rank() == poor && !take_address_space_away()) {
            return "setrlimit failed";
        }
        const auto heap =
            Heap::join({}, std::move(door), wishes, static_cast<std::size_t>(rank.rank()), 300s);
        const Code code = heap.ok() ? Code::ok : heap.status().code();
        const Code expected = rank.rank() == poor ? Code::out_of_memory
                              : poor == 0         ? Code::unreachable
                                                  : Code::ok;
        rank.barrier();
        return code == expected ? "" : "status " + std::string(heap.status().message());
    }));
}
#endif

TEST_CASE("shm/bootstrap: who has no memory for the bells does not keep the others waiting",
          "[shm]") {
    constexpr std::uint32_t kPopulateWrite = 23; // MADV_POPULATE_WRITE, newer than some headers.
    require_all_ok(test::fork_ranks(2, 30s, [](const test::ForkedRank& rank) -> std::string {
        Door door = Door::open().value();
        const auto wishes = exchange_values(rank, wish_at(door, kMebi));
        const bool poor = rank.rank() == 0;
        if (poor && !test::refuse_advice(kPopulateWrite, ENOMEM)) {
            return "cannot be refused";
        }
        const auto heap =
            Heap::join({}, std::move(door), wishes, static_cast<std::size_t>(rank.rank()), 300s);
        const Code expected = poor ? Code::out_of_memory : Code::unreachable;
        rank.barrier();
        return heap.status().code() == expected ? "" : std::string(heap.status().message());
    }));
}

TEST_CASE("shm/bootstrap: parts are as large as the first one's limit of files permits", "[shm]") {
    const rlim_t most = GENERATE(rlim_t{32} << 20, rlim_t{4096});
    require_all_ok(test::fork_ranks(3, 30s, [most](const test::ForkedRank& rank) -> std::string {
        const rlimit limit = {most, most};
        if (rank.rank() == 0 && ::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            return "setrlimit failed";
        }
        Door door = Door::open().value();
        const auto wishes = exchange_values(rank, Heap::wish({16 * kMebi}, door).value());
        const auto heap =
            Heap::join({}, std::move(door), wishes, static_cast<std::size_t>(rank.rank()), 20s);
        rank.barrier();
        if (most == 4096) {
            const std::string text(heap.status().message());
            return text.find("ulimit -f") != std::string::npos ? "" : text;
        }
        return heap.ok() && (*heap)->capacity_bytes() > 2 * kMebi ? "" : "no heap";
    }));
}

TEST_CASE("shm/bootstrap: who is gone does not keep the others waiting", "[shm]") {
    const int victim = GENERATE(0, 1, 2);
    const auto results =
        test::fork_ranks(3, 30s, [victim](const test::ForkedRank& rank) -> std::string {
            Door door = Door::open().value();
            const auto wishes = exchange_values(rank, wish_at(door, kMebi));
            if (rank.rank() == victim) {
                ::raise(SIGKILL);
            }
            const auto heap = Heap::join({}, std::move(door), wishes,
                                         static_cast<std::size_t>(rank.rank()), 300s);
            // A process that has got the segment does not wait for the others.
            const bool may_have = victim != 0 && rank.rank() != 0;
            return (heap.ok() && may_have) || heap.status().code() == Code::unreachable
                       ? ""
                       : "status " + std::string(heap.status().message());
        });
    for (int rank = 0; rank < 3; ++rank) {
        INFO(results[static_cast<std::size_t>(rank)].output);
        CHECK(results[static_cast<std::size_t>(rank)].ok() == (rank != victim));
    }
}

TEST_CASE("shm/bootstrap: who knows no more than the socket's name gets nothing", "[shm]") {
    require_all_ok(test::fork_ranks(3, 30s, [](const test::ForkedRank& rank) -> std::string {
        Door door = Door::open().value();
        auto wishes = exchange_values(rank, wish_at(door, kMebi));
        const bool stranger = rank.rank() == 2;
        wishes.pop_back();
        if (stranger) {
            wishes[0].key = {};
            wishes[1] = wish_at(door, kMebi);
        }
        const std::size_t self = stranger ? 1 : static_cast<std::size_t>(rank.rank());
        if (rank.rank() == 1) {
            // This time lets the stranger be heard first; the test passes either way.
            ::usleep(50000);
        }
        const auto heap = Heap::join({}, std::move(door), wishes, self, stranger ? 200ms : 20s);
        rank.barrier();
        return heap.ok() == !stranger ? "" : "status " + std::string(heap.status().message());
    }));
}

TEST_CASE("shm/bootstrap: who is interrupted by signals does not hang up", "[shm]") {
    signals_come = shared_counter();
    REQUIRE(signals_come != nullptr);
    require_all_ok(test::fork_ranks(2, 30s, [](const test::ForkedRank& rank) -> std::string {
        struct sigaction counts = {};
        counts.sa_handler = [](int) { signals_come->fetch_add(1); };
        counts.sa_flags = SA_RESTART;
        if (::sigaction(SIGUSR1, &counts, nullptr) != 0) {
            return "no handler";
        }
        Door door = Door::open().value();
        const auto wishes = exchange_values(rank, wish_at(door, kMebi));
        const auto processes = exchange_values(rank, ::getpid());
        bool hung_up = false;
        if (rank.rank() == 0) {
            await_news(door.number());
            const shm::Descriptor caller = shm::next_caller(door.get());
            await_news(caller.number());
            if (shm::Letter::receive(caller.get()).kind != shm::Letter::Kind::greeting) {
                return "nobody has called";
            }
            hung_up = hangs_up_for_signals(processes[1], caller.get());
        } // Here it hangs up, so that the other process calls again.
        const auto heap =
            Heap::join({}, std::move(door), wishes, static_cast<std::size_t>(rank.rank()), 20s);
        rank.barrier();
        return hung_up ? "it has hung up" : heap.ok() ? "" : std::string(heap.status().message());
    }));
}

TEST_CASE("shm/bootstrap: who hung up without its letter is served again", "[shm]") {
    auto* const served = shared_counter(); // The bootstrap lasts until the third process comes.
    REQUIRE(served != nullptr);
    require_all_ok(test::fork_ranks(3, 30s, [served](const test::ForkedRank& rank) -> std::string {
        Door door = Door::open().value();
        const auto wishes = exchange_values(rank, wish_at(door, kMebi));
        if (rank.rank() == 1 && !call_in_vain(door, wishes[0])) {
            return "the giver was not reached";
        }
        while (rank.rank() == 2 && served->load() == 0) {
            ::usleep(1000);
        }
        const auto heap =
            Heap::join({}, std::move(door), wishes, static_cast<std::size_t>(rank.rank()), 20s);
        if (rank.rank() == 1) {
            served->store(1);
        }
        rank.barrier();
        return heap.ok() ? "" : std::string(heap.status().message());
    }));
}

TEST_CASE("shm/bootstrap: nobody can run from one part into the next", "[shm]") {
    require_all_ok(test::fork_ranks(3, 30s, [](const test::ForkedRank& rank) -> std::string {
        const auto heap = meet_all(rank);
        const auto lease = (*heap)->lease((*heap)->capacity_bytes());
        const auto first = reinterpret_cast<std::uintptr_t>(lease->data());
        std::ifstream maps("/proc/self/maps");
        bool before = false;
        bool behind = false;
        for (std::string line; std::getline(maps, line);) {
            char* at = nullptr;
            const std::uintptr_t begin = std::strtoull(line.c_str(), &at, 16);
            const std::uintptr_t end = std::strtoull(at + 1, &at, 16);
            const bool closed = std::string(at, 4) == " ---";
            before = before || (closed && end == first);
            behind = behind || (closed && begin == first + lease->bytes());
        }
        rank.barrier();
        return before && behind ? "" : "no guard";
    }));
}

TEST_CASE("shm/bootstrap: such heaps meet others that came to be alone", "[shm]") {
    require_all_ok(test::fork_ranks(5, 30s, [](const test::ForkedRank& rank) -> std::string {
        Door door = Door::open().value();
        const bool alone = rank.rank() > 2;
        auto wishes = exchange_values(rank, wish_at(door, kMebi));
        wishes.resize(3);
        auto heap = alone ? Heap::create({kMebi}, std::move(door))
                          : Heap::join({}, std::move(door), wishes,
                                       static_cast<std::size_t>(rank.rank()), 20s);
        if (!heap) {
            return std::string(heap.status().message());
        }
        const auto lease = (*heap)->lease(1);
        *lease->data() = std::byte(rank.rank() + 1);
        struct Place {
            shm::HeapAddress address;
            std::uint64_t offset;
        };
        const auto places = exchange_values(rank, Place{(*heap)->address(), lease->offset()});
        std::vector<shm::HeapAddress> addresses;
        for (const Place& place : places) {
            addresses.push_back(place.address);
        }
        if (const Status status = (*heap)->attach(addresses, 20s); !status.ok()) {
            return std::string(status.message());
        }
        for (std::size_t i = 0; i < places.size(); ++i) {
            if ((*heap)->base_of(places[i].address.token)[places[i].offset] != std::byte(i + 1)) {
                return "not what rank " + std::to_string(i) + " wrote";
            }
        }
        const bool once =
            alone || (*heap)->base_of(addresses[0].token) == (*heap)->base_of(addresses[2].token);
        rank.barrier();
        return once ? "" : "a segment is mapped twice";
    }));
}
