// What a turn costs where ranks outnumber processors: a yielding barrier of forked processes, by
// one counter and one flag that all poll, between whose calls each process touches a number of its
// own pages. A switch between processes evicts their translations and cache lines, so that a
// library's barrier, which reads its own data and those of the MPI around it, cannot be as cheap as
// the bare one.
//
// Prints, for each number of pages, the median of the rounds, and its ratio to the barrier without
// any pages.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "perf/micro/bench_options.hpp"
#include "ucg_coll/base/base.hpp"

namespace {

using namespace ucg;

constexpr std::size_t kPageBytes = 4096;
constexpr std::array<unsigned, 7> kPages = {0, 4, 8, 16, 32, 48, 64};

struct Board {
    alignas(2 * kCacheLine) std::atomic<unsigned> arrived;
    alignas(2 * kCacheLine) std::atomic<unsigned> turn;
};

struct Options {
    unsigned ranks = 8;
    unsigned rounds = 0; ///< 0: the option was not given.
    unsigned barriers = 2000;
};

/// A plain yielding barrier.
void meet(Board& board, unsigned ranks) {
    const unsigned turn = board.turn.load(std::memory_order_relaxed);
    if (board.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) {
        board.arrived.store(0, std::memory_order_relaxed);
        board.turn.store(turn + 1, std::memory_order_release);
        return;
    }
    while (board.turn.load(std::memory_order_acquire) == turn) {
        ::sched_yield();
    }
}

void* new_memory(std::size_t bytes, int sharing) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("turn_bench: mmap");
        std::exit(1);
    }
    return memory;
}

/// Touches one line of each page, at another offset in each, as objects of a heap lie.
void touch(std::byte* memory, unsigned pages) {
    for (unsigned page = 0; page < pages; ++page) {
        const std::size_t line = page * 7 % (kPageBytes / kCacheLine);
        auto* word = reinterpret_cast<volatile std::uint64_t*>(memory + page * kPageBytes +
                                                               line * kCacheLine);
        *word = *word + 1;
    }
}

double median_us(const Options& options, Board& board, std::byte* memory, unsigned pages) {
    std::vector<double> times;
    for (unsigned round = 0; round < options.rounds; ++round) {
        meet(board, options.ranks);
        const auto start = std::chrono::steady_clock::now();
        for (unsigned i = 0; i < options.barriers; ++i) {
            touch(memory, pages);
            meet(board, options.ranks);
        }
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - start;
        times.push_back(took.count() / options.barriers);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

void take_part(const Options& options, Board& board, bool prints) {
    auto* memory = static_cast<std::byte*>(new_memory(kPages.back() * kPageBytes, MAP_PRIVATE));
    double bare_us = 0;
    for (const unsigned pages : kPages) {
        const double us = median_us(options, board, memory, pages);
        bare_us = pages == 0 ? us : bare_us;
        if (prints) {
            std::printf("%5u %9.2f %9.2f\n", pages, us, us / bare_us);
            std::fflush(stdout);
        }
    }
}

constexpr std::string_view kUsage =
    "usage: turn_bench [--smoke] [--ranks N] [--rounds N]\n"
    "A yielding barrier where ranks outnumber processors.\n"
    "  --smoke      a few barriers, to see that it runs\n"
    "  --ranks N    processes (8)\n"
    "  --rounds N   rounds of which the median is taken (9; with --smoke 1)\n";

} // namespace

int main(int argc, char** argv) {
    Options options;
    bool smoke = false;
    if (const auto status = perf::read_options(
            argc, argv, kUsage, {{"--smoke", smoke}},
            {{"--rounds", options.rounds, 1 << 20}, {"--ranks", options.ranks, 4096}})) {
        return *status;
    }
    options.rounds = options.rounds != 0 ? options.rounds : smoke ? 1 : 9;
    options.barriers = smoke ? 10 : options.barriers;
    auto* board = static_cast<Board*>(new_memory(sizeof(Board), MAP_SHARED));
    std::printf("# %u ranks\n# pages        us   of bare\n", options.ranks);
    std::fflush(stdout);
    std::vector<pid_t> children;
    for (unsigned rank = 1; rank < options.ranks; ++rank) {
        const pid_t child = ::fork();
        if (child < 0) {
            std::perror("turn_bench: fork");
            for (const pid_t other : children) {
                ::kill(other, SIGKILL);
            }
            return 1;
        }
        if (child == 0) {
            take_part(options, *board, false);
            ::_exit(0);
        }
        children.push_back(child);
    }
    take_part(options, *board, true);
    int failed = 0;
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        failed += status != 0 ? 1 : 0;
    }
    return failed == 0 ? 0 : 1;
}
