// A crew: processes bound to CPUs that share node heaps, of which the first, the driver, runs a
// script and the others do what it tells them. Everything that is measured between cores is.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "shm/shm.hpp"
#include "tools/ucg_tune/message_pair.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

using Clock = std::chrono::steady_clock;

/// What was measured.
enum class Series : std::uint8_t {
    line,        ///< A cache line changes hands, one way.
    read,        ///< Copying what another core wrote to memory of one's own.
    contended,   ///< The same by several at once; the last one's time.
    copy,        ///< Copying within memory of one's own.
    overwrite,   ///< Copying to what another core read, by ordinary stores.
    streaming,   ///< The same past the caches.
    reduce,      ///< Summing vectors of doubles.
    cma,         ///< process_vm_readv of what was read before.
    cma_written, ///< The same of what its owner has just written.
    futex,       ///< From a futex wake until the sleeper runs.
    one_way,     ///< Messages of the library, as the next ones: Pattern.
    exchange,
    stream,
    burst,
    one_way_written, ///< The same of what its sender has just written (MessageWork::written).
    exchange_written,
};

/// One measurement. `count`: readers or operands.
struct Sample {
    Series series = Series::line;
    std::uint32_t count = 1;
    std::uint32_t round = 0;
    std::uint64_t bytes = 0;
    double ns = 0;
    std::uint32_t lane = 0; ///< Of messages: CrewOptions::lanes.
};

struct Board;

/// What the driver's script may do. Times are in nanoseconds.
class Driver {
  public:
    /// `pair`: null where no messages are sent.
    Driver(Board& board, std::vector<std::byte*> memory, std::uint64_t memory_bytes, unsigned cpus,
           MessagePair* pair);

    unsigned members() const { return static_cast<unsigned>(memory_.size()); }
    std::uint64_t memory_bytes() const { return memory_bytes_; } ///< Of each member.
    std::byte* memory(unsigned member) const { return memory_[member]; }

    void record(const Sample& sample);

    /// One way of a cache line that member 1 sends back, the mean of so many round trips. Where
    /// both share a CPU: a switch between them.
    double line_ns(unsigned round_trips);
    /// From waking member 1, which sleeps on a futex, until it has answered by a cache line; the
    /// mean of so many.
    double futex_ns(unsigned wakes);
    /// Member 1 writes, or reads, `blocks` blocks of `bytes`, `stride` apart: its own memory,
    /// or the driver's.
    void peer_writes(std::uint64_t bytes, std::uint64_t stride, std::uint64_t blocks);
    void peer_reads_mine(std::uint64_t bytes, std::uint64_t stride, std::uint64_t blocks);
    /// Members 1 to `readers` copy the first `bytes` of the driver's memory at once.
    double contended_read_ns(unsigned readers, std::uint64_t bytes);
    /// process_vm_readv from member 1's memory. Fails as the kernel says.
    Result<double> cma_ns(std::byte* target, std::uint64_t bytes);
    /// Messages between the driver and member 1. REQUIRES: CrewOptions::lanes has that lane.
    double messages_ns(const MessageWork& work);
    void dismiss();

  private:
    friend class Member;
    enum class Task : std::uint32_t { line, futex, write, read, contend, messages, leave };
    struct Order {
        Task task = Task::line;
        std::uint32_t count = 0;
        std::uint64_t bytes = 0;
        std::uint64_t stride = 0;
        std::uint64_t blocks = 0;
        MessageWork messages = {};
    };
    friend struct Board;

    void give(const Order& order);
    void await(unsigned member);

    Board& board_;
    std::vector<std::byte*> memory_;
    std::uint64_t memory_bytes_;
    MessagePair* pair_;
    shm::Waiter waiter_;
    std::uint64_t turn_ = 0;
    std::uint64_t line_ = 0;
};

struct CrewOptions {
    std::vector<std::uint32_t> cpus; ///< One for each member; the driver's first.
    std::uint64_t memory_bytes = 0;  ///< Leased by each member from its heap.
    Clock::time_point deadline;      ///< After it, and some grace, the crew is killed.
    /// Transports between the first two members, kLanesMax at most; messages of `message_bytes`.
    std::vector<transport::ShmOptions> lanes = {};
    std::uint64_t message_bytes = 0;
};
inline constexpr std::size_t kLanesMax = 8;

/// Forks the crew, has the driver run `script`, and returns what it recorded. The caller has no
/// other threads. Fails when a member does: its reason, or that it took too long.
Result<std::vector<Sample>> run_crew(const CrewOptions& options,
                                     const std::function<Status(Driver&)>& script);

} // namespace ucg::tools
