#include "tools/ucg_tune/crew.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <linux/futex.h>
#include <sched.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucg::tools {

namespace {

/// The most members. A contention crew has one for each core of a node; larger nodes use this many.
constexpr unsigned kMembersMax = 256;
/// Room for 9 series of at most a dozen sizes in some hundred rounds.
constexpr std::size_t kSamplesMax = 1 << 15;
/// The time for which a crew may exceed its deadline, for the current round on a busy machine.
constexpr std::chrono::seconds kGrace(60);
constexpr std::chrono::seconds kAttachTimeout(10);
/// After this time a process that goes to sleep is asleep, and its CPU idle.
constexpr useconds_t kFallAsleepUs = 200;

double since_ns(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
    return ::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

Status bind_to(std::uint32_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return ::sched_setaffinity(0, sizeof(set), &set) == 0
               ? Status()
               : failure(Code::io_error, "cannot bind a process to CPU {}: {}", cpu,
                         std::strerror(errno));
}

} // namespace

/// What a member shows to the others. Only the member itself writes it.
struct alignas(2 * kCacheLine) Post {
    std::atomic<std::uint64_t> done; ///< Orders carried out, plus 1 for having joined.
    double elapsed_ns;
    pid_t process;
    shm::HeapAddress heap;
    std::uint64_t offset; ///< Offset of its lease in its heap.
    std::uintptr_t base;  ///< Address of its lease in its own address space.
    std::array<transport::ShmAddress, kLanesMax> lanes;
    std::array<char, 256> failure;
};

struct Board {
    alignas(2 * kCacheLine) std::atomic<std::uint64_t> line;
    alignas(2 * kCacheLine) std::atomic<std::uint32_t> futex;
    alignas(2 * kCacheLine) std::atomic<std::uint64_t> turn;
    Driver::Order order; ///< Written before `turn`.
    std::array<Post, kMembersMax> posts;
    std::uint64_t sample_count;
    std::array<Sample, kSamplesMax> samples;
};

namespace {

void await_value(shm::Waiter& waiter, const std::atomic<std::uint64_t>& word, std::uint64_t value) {
    waiter.reset();
    while (word.load(std::memory_order_acquire) < value) {
        waiter.idle();
    }
}

/// Sleeps on the futex until the word has this value.
void sleep_until(std::atomic<std::uint32_t>& word, std::uint32_t value) {
    for (;;) {
        const std::uint32_t seen = word.load(std::memory_order_acquire);
        if (seen == value) {
            return;
        }
        futex(word, FUTEX_WAIT, seen);
    }
}

} // namespace

Driver::Driver(Board& board, std::vector<std::byte*> memory, std::uint64_t memory_bytes,
               unsigned cpus, MessagePair* pair)
    : board_(board), memory_(std::move(memory)), memory_bytes_(memory_bytes), pair_(pair),
      waiter_(members(), cpus) {}

void Driver::record(const Sample& sample) {
    if (board_.sample_count < kSamplesMax) { // More samples would not change a median.
        board_.samples[board_.sample_count++] = sample;
    }
}

void Driver::give(const Order& order) {
    for (unsigned member = 1; member < members(); ++member) {
        await(member); // All have read the previous order.
    }
    board_.order = order;
    board_.turn.store(++turn_, std::memory_order_release);
}

void Driver::await(unsigned member) {
    await_value(waiter_, board_.posts[member].done, turn_ + 1);
}

double Driver::line_ns(unsigned round_trips) {
    give({.task = Task::line, .count = round_trips + 1});
    Clock::time_point start;
    for (unsigned i = 0; i <= round_trips; ++i) {
        if (i == 1) { // The first trip found the peer elsewhere.
            start = Clock::now();
        }
        board_.line.store(++line_, std::memory_order_release);
        await_value(waiter_, board_.line, ++line_);
    }
    const double ns = since_ns(start) / (2.0 * round_trips);
    await(1);
    return ns;
}

double Driver::futex_ns(unsigned wakes) {
    board_.futex.store(0, std::memory_order_relaxed);
    give({.task = Task::futex, .count = wakes});
    double sum_ns = 0;
    for (std::uint32_t i = 1; i <= wakes; ++i) {
        ::usleep(kFallAsleepUs);
        const Clock::time_point start = Clock::now();
        board_.futex.store(i, std::memory_order_release);
        futex(board_.futex, FUTEX_WAKE, 1);
        await_value(waiter_, board_.line, ++line_);
        sum_ns += since_ns(start);
    }
    await(1);
    return sum_ns / wakes;
}

void Driver::peer_writes(std::uint64_t bytes, std::uint64_t stride, std::uint64_t blocks) {
    give({.task = Task::write, .bytes = bytes, .stride = stride, .blocks = blocks});
    await(1);
}

void Driver::peer_reads_mine(std::uint64_t bytes, std::uint64_t stride, std::uint64_t blocks) {
    give({.task = Task::read, .bytes = bytes, .stride = stride, .blocks = blocks});
    await(1);
}

double Driver::contended_read_ns(unsigned readers, std::uint64_t bytes) {
    std::memset(memory_[0], static_cast<int>(turn_ & 0xff), bytes);
    give({.task = Task::contend, .count = readers, .bytes = bytes});
    double last_ns = 0;
    for (unsigned member = 1; member < members(); ++member) {
        await(member);
        last_ns = std::max(last_ns, member <= readers ? board_.posts[member].elapsed_ns : 0);
    }
    return last_ns;
}

Result<double> Driver::cma_ns(std::byte* target, std::uint64_t bytes) {
    return cma_ns(target, bytes, bytes);
}

Result<double> Driver::cma_lookup_ns(std::uint64_t bytes) {
    std::byte target = {};
    return cma_ns(&target, 1, bytes);
}

Result<double> Driver::cma_ns(std::byte* target, std::uint64_t copied, std::uint64_t bytes) {
    const iovec local = {target, copied};
    const Post& peer = board_.posts[1];
    const iovec remote = {reinterpret_cast<void*>(peer.base), bytes};
    const Clock::time_point start = Clock::now();
    const ssize_t moved = ::process_vm_readv(peer.process, &local, 1, &remote, 1, 0);
    const double ns = since_ns(start);
    if (moved != static_cast<ssize_t>(copied)) {
        return failure(Code::unsupported, "process_vm_readv: {}", std::strerror(errno));
    }
    return ns;
}

double Driver::messages_ns(const TimedMessages& work) {
    UCG_ASSERT(pair_ != nullptr && work.lane < pair_->lane_count());
    give({.task = Task::messages, .messages = work});
    const double ns = pair_->run(work);
    await(1);
    return ns;
}

void Driver::dismiss() {
    give({.task = Task::leave});
}

/// Any process of a crew. It meets the others, then drives them or obeys.
class Member {
  public:
    Member(Board& board, unsigned index, const CrewOptions& options)
        : board_(board), index_(index), count_(static_cast<unsigned>(options.cpus.size())),
          options_(options), waiter_(count_, cpu_count()) {}

    Status run(const std::function<Status(Driver&)>& script) {
        if (Status status = join(); !status.ok()) {
            return status;
        }
        if (index_ > 0) {
            obey();
            return {};
        }
        Driver driver(board_, memory_, options_.memory_bytes, cpu_count(), pair_.get());
        Status status = script(driver);
        driver.dismiss();
        return status;
    }

  private:
    Post& mine() { return board_.posts[index_]; }

    unsigned cpu_count() const {
        return static_cast<unsigned>(
            std::set<std::uint32_t>(options_.cpus.begin(), options_.cpus.end()).size());
    }

    Status join() {
        if (Status status = bind_to(options_.cpus[index_]); !status.ok()) {
            return status;
        }
        Result<std::unique_ptr<shm::Heap>> heap = shm::Heap::create({});
        if (!heap.ok()) {
            return heap.status();
        }
        heap_ = std::move(*heap);
        Result<shm::Lease> lease = heap_->lease(std::max<std::uint64_t>(options_.memory_bytes, 1));
        if (!lease.ok()) {
            return lease.status();
        }
        lease_ = std::move(*lease);
        if (Status status = make_pair(); !status.ok()) {
            return status;
        }
        mine().process = ::getpid();
        mine().heap = heap_->address();
        mine().offset = lease_.offset();
        mine().base = reinterpret_cast<std::uintptr_t>(lease_.data());
        mine().done.store(1, std::memory_order_release);
        std::vector<shm::HeapAddress> peers;
        for (unsigned i = 0; i < count_; ++i) {
            await_value(waiter_, board_.posts[i].done, 1);
            peers.push_back(board_.posts[i].heap);
        }
        if (Status status = heap_->attach(peers, kAttachTimeout); !status.ok()) {
            return status;
        }
        for (unsigned i = 0; i < count_; ++i) {
            memory_.push_back(heap_->base_of(peers[i].token) + board_.posts[i].offset);
        }
        return connect_pair();
    }

    Status make_pair() {
        if (options_.lanes.empty() || index_ > 1) {
            return {};
        }
        auto pair = MessagePair::create(*heap_, static_cast<Rank>(index_), options_.lanes,
                                        options_.message_bytes, cpu_count());
        if (!pair.ok()) {
            return pair.status();
        }
        pair_ = std::move(*pair);
        for (std::size_t lane = 0; lane < pair_->lane_count(); ++lane) {
            mine().lanes[lane] = pair_->address(lane);
        }
        return {};
    }

    Status connect_pair() {
        Status status;
        for (std::size_t lane = 0; pair_ && status.ok() && lane < pair_->lane_count(); ++lane) {
            const std::array<transport::ShmAddress, 2> both = {board_.posts[0].lanes[lane],
                                                               board_.posts[1].lanes[lane]};
            status = pair_->connect(lane, both);
        }
        return status;
    }

    void obey() {
        for (std::uint64_t turn = 1;; ++turn) {
            await_value(waiter_, board_.turn, turn);
            const Driver::Order order = board_.order;
            if (order.task == Driver::Task::leave) {
                return;
            }
            carry_out(order);
            mine().done.store(turn + 1, std::memory_order_release);
        }
    }

    void carry_out(const Driver::Order& order) {
        switch (order.task) {
        case Driver::Task::line: return index_ == 1 ? echo_line(order.count) : void();
        case Driver::Task::futex: return index_ == 1 ? answer_wakes(order.count) : void();
        case Driver::Task::write:
            return index_ == 1
                       ? each_block(order, [](std::byte* at,
                                              std::uint64_t bytes) { std::memset(at, 1, bytes); })
                       : void();
        case Driver::Task::read: return index_ == 1 ? read_blocks(order) : void();
        case Driver::Task::contend: return index_ <= order.count ? copy_shared(order) : void();
        case Driver::Task::messages:
            return pair_ ? static_cast<void>(pair_->run(order.messages)) : void();
        case Driver::Task::leave: return;
        }
    }

    void echo_line(unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            await_value(waiter_, board_.line, ++line_);
            board_.line.store(++line_, std::memory_order_release);
        }
    }

    void answer_wakes(unsigned count) {
        for (std::uint32_t i = 1; i <= count; ++i) {
            sleep_until(board_.futex, i);
            board_.line.store(++line_, std::memory_order_release);
        }
    }

    template <typename Action>
    void each_block(const Driver::Order& order, Action action) {
        for (std::uint64_t block = 0; block < order.blocks; ++block) {
            action(lease_.data() + block * order.stride, order.bytes);
        }
    }

    /// Loads the driver's lines into this core's cache, so that both caches share them.
    void read_blocks(const Driver::Order& order) {
        std::uint64_t sum = 0;
        for (std::uint64_t block = 0; block < order.blocks; ++block) {
            const std::byte* at = memory_[0] + block * order.stride;
            for (std::uint64_t i = 0; i < order.bytes; i += kCacheLine) {
                sum += static_cast<std::uint64_t>(at[i]);
            }
        }
        asm volatile("" : : "r"(sum)); // The compiler drops unused reads.
    }

    void copy_shared(const Driver::Order& order) {
        target_.resize(std::max<std::size_t>(target_.size(), order.bytes));
        const Clock::time_point start = Clock::now();
        std::memcpy(target_.data(), memory_[0], order.bytes);
        asm volatile("" ::: "memory");
        mine().elapsed_ns = since_ns(start);
    }

    Board& board_;
    unsigned index_;
    unsigned count_;
    const CrewOptions& options_;
    shm::Waiter waiter_;
    std::unique_ptr<shm::Heap> heap_;
    shm::Lease lease_;
    std::unique_ptr<MessagePair> pair_; ///< On the first two members, if they send messages.
    std::vector<std::byte> target_;
    std::vector<std::byte*> memory_;
    std::uint64_t line_ = 0;
};

namespace {

struct Unmap {
    void operator()(Board* board) const { ::munmap(board, sizeof(Board)); }
};

[[noreturn]] void run_member(Board& board, unsigned index, const CrewOptions& options,
                             const std::function<Status(Driver&)>& script, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int outcome = ::getppid() == parent ? 0 : 1; // The parent may have died before.
    if (outcome == 0) {
        Member member(board, index, options);
        Status status = member.run(script);
        if (!status.ok()) {
            const std::string text(status.message().substr(0, sizeof(Post::failure) - 1));
            std::memcpy(board.posts[index].failure.data(), text.c_str(), text.size() + 1);
            outcome = 1;
        }
    }
    // Descriptors and mappings end with the process; the parent's buffers must not be flushed here.
    ::_exit(outcome);
}

/// Waits for all members; kills those left when one fails or time is out. Returns the failure.
Status reap(std::vector<pid_t>& members, const Board& board, Clock::time_point end) {
    Status status;
    std::size_t left = members.size();
    while (left > 0) {
        const bool give_up = !status.ok() || Clock::now() > end;
        if (status.ok() && give_up) {
            status = failure(Code::timed_out, "a measurement did not end in time; is the machine "
                                              "busy with something else?");
        }
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (members[i] <= 0) {
                continue;
            }
            if (give_up) {
                ::kill(members[i], SIGKILL);
            }
            int outcome = 0;
            if (::waitpid(members[i], &outcome, give_up ? 0 : WNOHANG) != members[i]) {
                continue;
            }
            members[i] = 0;
            --left;
            if (outcome != 0 && status.ok()) {
                status = failure(Code::io_error, "{}",
                                 board.posts[i].failure[0] != '\0' ? board.posts[i].failure.data()
                                                                   : "a measuring process died");
            }
        }
        ::usleep(1000);
    }
    return status;
}

} // namespace

Result<std::vector<Sample>> run_crew(const CrewOptions& options,
                                     const std::function<Status(Driver&)>& script) {
    UCG_ASSERT(options.cpus.size() >= 2 && options.cpus.size() <= kMembersMax);
    UCG_ASSERT(options.lanes.size() <= kLanesMax);
    void* memory =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return failure(Code::out_of_memory, "cannot map {} bytes: {}", sizeof(Board),
                       std::strerror(errno));
    }
    const std::unique_ptr<Board, Unmap> board(static_cast<Board*>(memory)); // mmap() zeroes it.
    const pid_t parent = ::getpid();
    std::vector<pid_t> members;
    Status status;
    for (unsigned i = 0; i < options.cpus.size(); ++i) {
        const pid_t process = ::fork();
        if (process == 0) {
            run_member(*board, i, options, script, parent);
        }
        if (process < 0) {
            status = failure(Code::io_error, "cannot start a process: {}", std::strerror(errno));
            break;
        }
        members.push_back(process);
    }
    const Clock::time_point end = status.ok() ? options.deadline + kGrace : Clock::now();
    if (const Status reaped = reap(members, *board, end); status.ok()) {
        status = reaped;
    }
    if (!status.ok()) {
        return status;
    }
    return std::vector<Sample>(board->samples.begin(),
                               board->samples.begin() +
                                   static_cast<std::ptrdiff_t>(board->sample_count));
}

} // namespace ucg::tools
