// What two processors can do at best: the copies and sums that collectives of two ranks consist of,
// without a collective around them, by two forked processes on a CPU each that meet at a spinning
// barrier before and after. Times of the collectives themselves are beside these in perf/measured.
//
//   pull, push, halves   rank 1 gets rank 0's vector: it copies, rank 0 does, or each one half
//   exchange, deliver    both copy their own block, and pull the other's or push it to the other
//                        (allgather)
//   trade                both copy one block, and push another one to the other (alltoall)
//   collect              rank 0 copies its own block while rank 1 pushes its block (gather)
//   sum, share           each sums one half of both vectors, and pulls the other half or pushes
//                        its own to the other (allreduce)
//
// `private`: through the kernel, as between buffers of malloc. `mapped`: by memcpy, as in a shared
// heap. Prints the median and the least of the rounds in microseconds. The bytes are not rewritten
// between rounds.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "perf/micro/bench_options.hpp"
#include "shm/peer_copy.hpp"
#include "shm/wait.hpp"
#include "topo/topo.hpp"

namespace {

using namespace ucg;

constexpr std::uint64_t kBytesMax = 4 << 20;
constexpr std::uint64_t kProcessBytes = 4 * kBytesMax;
constexpr std::array<std::uint64_t, 4> kSizes = {64 << 10, 256 << 10, 1 << 20, 4 << 20};

struct Settings {
    unsigned rounds = 0;                  ///< 0: the option was not given.
    std::uint64_t round_bytes = 32 << 20; ///< About as much for each task and size in each round.
};

/// The memory that both processes share from the start.
struct Board {
    alignas(kCacheLine) std::atomic<unsigned> arrived;
    alignas(kCacheLine) std::atomic<unsigned> generation;
    alignas(kCacheLine) std::array<shm::AccessTicket, 2> tickets;
    std::array<std::uint64_t, 2> memory;
};

void meet(Board& board) {
    const unsigned generation = board.generation.load(std::memory_order_acquire);
    if (board.arrived.fetch_add(1, std::memory_order_acq_rel) == 1) {
        board.arrived.store(0, std::memory_order_relaxed);
        board.generation.store(generation + 1, std::memory_order_release);
        return;
    }
    constexpr unsigned kPollsPerYield = 10000; // In case both are on one CPU.
    for (unsigned polls = 1; board.generation.load(std::memory_order_acquire) == generation;
         ++polls) {
        shm::cpu_pause();
        if (polls % kPollsPerYield == 0) {
            ::sched_yield();
        }
    }
}

std::byte* new_memory(std::uint64_t bytes, int sharing) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("limit_bench: mmap");
        std::exit(1);
    }
    return static_cast<std::byte*>(memory);
}

enum class Task : std::uint8_t {
    pull,
    push,
    halves,
    exchange,
    deliver,
    trade,
    collect,
    sum,
    share
};

struct Row {
    Task task;
    const char* name;
};
constexpr std::array<Row, 9> kRows = {{{Task::pull, "pull"},
                                       {Task::push, "push"},
                                       {Task::halves, "halves"},
                                       {Task::exchange, "exchange"},
                                       {Task::deliver, "deliver"},
                                       {Task::trade, "trade"},
                                       {Task::collect, "collect"},
                                       {Task::sum, "sum"},
                                       {Task::share, "share"}}};

/// One of the two processes. Its input and its output have two vectors each.
class Process {
  public:
    Process(Board& board, std::byte* segment, unsigned self, bool mapped)
        : board_(board), self_(self),
          memory_(mapped ? segment + self * kMemory : new_memory(kMemory, MAP_PRIVATE)) {
        std::memset(memory_, static_cast<int>(self), kMemory);
        board.tickets[self] = shm::own_access_ticket();
        board.memory[self] = reinterpret_cast<std::uintptr_t>(memory_);
        meet(board);
        reach_ = {segment, board.tickets[1 - self], &access_};
        theirs_ = {board.memory[1 - self], mapped ? (1 - self) * kMemory + 1 : 0};
    }

    void run(Task task, std::uint64_t bytes) const {
        const std::uint64_t half = bytes / 2;
        const bool receives = self_ == 1;
        switch (task) {
        case Task::pull: receives ? pull(0, output(), bytes) : idle(); break;
        case Task::push: receives ? idle() : push(memory_, 0, bytes); break;
        case Task::halves: receives ? pull(0, output(), half) : push(memory_, half, half); break;
        case Task::exchange:
            pull(0, output(), bytes);
            copy_own(bytes);
            break;
        case Task::deliver:
            push(memory_, 0, bytes);
            copy_own(bytes);
            break;
        case Task::trade:
            push(memory_ + bytes, 0, bytes);
            copy_own(bytes);
            break;
        case Task::collect: receives ? push(memory_, 0, bytes) : copy_own(bytes); break;
        case Task::sum:
            sum(self_ * half, half);
            meet(board_);
            pull_result(half - self_ * half, half);
            break;
        case Task::share:
            sum(self_ * half, half);
            push(output(), self_ * half, half);
            break;
        }
    }

    void meet_peer() const { meet(board_); }

  private:
    /// The input, followed by the output, of two vectors each.
    static constexpr std::uint64_t kMemory = kProcessBytes;
    static constexpr std::uint64_t kOutput = kMemory / 2;

    static void idle() {}
    void copy_own(std::uint64_t bytes) const { std::memcpy(output() + bytes, memory_, bytes); }

    std::byte* output() const { return memory_ + kOutput; }

    void pull(std::uint64_t from, std::byte* to, std::uint64_t bytes) const {
        check(shm::pull(reach_, theirs_.at(from), to, bytes));
    }
    void pull_result(std::uint64_t at, std::uint64_t bytes) const {
        check(shm::pull(reach_, theirs_.at(kOutput + at), output() + at, bytes));
    }
    void push(const std::byte* vector, std::uint64_t at, std::uint64_t bytes) const {
        check(shm::push(reach_, theirs_.at(kOutput + at), vector + at, bytes));
    }
    /// Sums a part of both inputs. The peer's input is read in place if it is mapped, else pulled
    /// to the place behind the output.
    void sum(std::uint64_t at, std::uint64_t bytes) const {
        const std::byte* theirs =
            theirs_.place == 0 ? output() + kBytesMax : reach_.segment + (theirs_.place - 1) + at;
        if (theirs_.place == 0) {
            pull(at, output() + kBytesMax, bytes);
        }
        auto* target = reinterpret_cast<double*>(output() + at);
        const auto* a = reinterpret_cast<const double*>(memory_ + at);
        const auto* b = reinterpret_cast<const double*>(theirs);
        for (std::uint64_t i = 0; i < bytes / sizeof(double); ++i) {
            target[i] = a[i] + b[i];
        }
    }
    static void check(const Status& status) {
        if (!status.ok()) {
            const std::string_view message = status.message();
            std::fprintf(stderr, "limit_bench: %.*s\n", static_cast<int>(message.size()),
                         message.data());
            std::exit(1);
        }
    }

    Board& board_;
    unsigned self_;
    std::byte* memory_;
    shm::PeerAccess access_ = {true, true};
    shm::PeerReach reach_;
    shm::RemoteBytes theirs_;
};

double now_us() {
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Measures all rows; called by both processes. The one with `prints` prints.
void measure(const Process& process, bool prints, bool mapped, const Settings& settings) {
    for (const Row& row : kRows) {
        for (const std::uint64_t bytes : kSizes) {
            std::vector<double> times;
            const auto calls = static_cast<unsigned>(1 + settings.round_bytes / bytes);
            for (unsigned round = 0; round < settings.rounds; ++round) {
                process.meet_peer();
                const double start = now_us();
                for (unsigned call = 0; call < calls; ++call) {
                    process.run(row.task, bytes);
                    process.meet_peer();
                }
                times.push_back((now_us() - start) / calls);
            }
            std::sort(times.begin(), times.end());
            if (prints) {
                std::printf("%-8s %-9s %8llu %10.2f %10.2f\n", mapped ? "mapped" : "private",
                            row.name, static_cast<unsigned long long>(bytes),
                            times[times.size() / 2], times.front());
            }
        }
    }
}

void bind_to(unsigned index) {
    const std::vector<std::uint32_t> cpus = topo::usable_cpus();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[index % cpus.size()], &set);
    ::sched_setaffinity(0, sizeof(set), &set);
}

void take_part(Board& board, std::byte* segment, unsigned self, const Settings& settings) {
    bind_to(self);
    const Process mapped(board, segment, self, true);
    measure(mapped, self == 0, true, settings);
    const Process own(board, segment, self, false);
    if (!shm::can_read(board.tickets[1 - self]) || !shm::can_write(board.tickets[1 - self])) {
        std::fprintf(stderr, "limit_bench: the kernel refuses process_vm_readv\n");
        return;
    }
    measure(own, self == 0, false, settings);
}

constexpr std::string_view kUsage =
    "usage: limit_bench [--smoke] [--rounds N]\n"
    "What two processors can copy and sum at all.\n"
    "  --smoke      a call of each in a round, to see that it runs\n"
    "  --rounds N   rounds of which the median is taken (15; with --smoke 1)\n";

} // namespace

int main(int argc, char** argv) {
    Settings settings;
    bool smoke = false;
    if (const auto status = perf::read_options(argc, argv, kUsage, {{"--smoke", smoke}},
                                               {{"--rounds", settings.rounds, 1 << 20}})) {
        return *status;
    }
    settings.rounds = settings.rounds != 0 ? settings.rounds : smoke ? 1 : 15;
    // With other work on the processors, each call may wait for the end of time slices.
    settings.round_bytes = smoke ? 0 : settings.round_bytes;
    auto* board = reinterpret_cast<Board*>(new_memory(sizeof(Board), MAP_SHARED));
    std::byte* segment = new_memory(2 * kProcessBytes, MAP_SHARED);
    std::printf("# %-6s %-9s %8s %10s %10s\n", "memory", "what", "bytes", "median us", "least us");
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child < 0) {
        std::perror("limit_bench: fork");
        return 1;
    }
    take_part(*board, segment, child == 0 ? 1 : 0, settings);
    if (child == 0) {
        std::fflush(stdout);
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
