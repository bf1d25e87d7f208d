// A crew: processes that are bound to CPUs and share node heaps. The first one, the driver, runs a
// script, and the others do what it tells them. Everything that happens between cores is measured
// by a crew.
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

/// What a sample measures.
enum class Series : std::uint8_t {
    line,        ///< A cache line changes hands, one way.
    read,        ///< Copying what another core wrote to own memory.
    contended,   ///< Like read, but by several cores at once; the last one's time.
    copy,        ///< Copying within own memory.
    overwrite,   ///< Copying over what another core has read, by ordinary stores.
    streaming,   ///< Like overwrite, but by stores past the caches.
    reduce,      ///< Summing vectors of doubles.
    cma,         ///< process_vm_readv of bytes that were read before.
    cma_written, ///< process_vm_readv of bytes that their owner has just written.
    cma_lookup,  ///< process_vm_readv of one byte of so many, whose pages it finds all.
    futex,       ///< From a futex wake until the sleeper runs.
    one_way,     ///< A message of the library, as all that follow: Pattern.
    exchange,
    stream,
    combined,
    shares,
    burst,
    one_way_written, ///< one_way of bytes just written (TimedMessages::written).
    exchange_written,
};

/// One measurement. `count` is the number of readers or of operands.
struct Sample {
    Series series = Series::line;
    std::uint32_t count = 1;
    std::uint32_t round = 0;
    std::uint64_t bytes = 0;
    double ns = 0;
    std::uint32_t lane = 0; ///< For messages: the index in CrewOptions::lanes.
};

struct Board;

/// What the driver's script can do. Times are in nanoseconds.
class Driver {
  public:
    /// `pair` is null where no messages are sent.
    Driver(Board& board, std::vector<std::byte*> memory, std::uint64_t memory_bytes, unsigned cpus,
           MessagePair* pair);

    unsigned members() const { return static_cast<unsigned>(memory_.size()); }
    std::uint64_t memory_bytes() const { return memory_bytes_; } ///< Bytes of each member's memory.
    std::byte* memory(unsigned member) const { return memory_[member]; }

    void record(const Sample& sample);

    /// Returns the time in which a cache line passes from one member to the other, half of the mean
    /// of `round_trips` round trips between the driver and member 1. Where both share a CPU it is
    /// the time of a switch between them.
    double line_ns(unsigned round_trips);
    /// Returns the time from waking member 1, which sleeps on a futex, until it has answered by a
    /// cache line: the mean of `wakes` wakes.
    double futex_ns(unsigned wakes);
    /// Member 1 writes `blocks` blocks of `bytes` of its own memory, or reads as many of the
    /// driver's; they begin `stride` bytes apart.
    void peer_writes(std::uint64_t bytes, std::uint64_t stride, std::uint64_t blocks);
    void peer_reads_mine(std::uint64_t bytes, std::uint64_t stride, std::uint64_t blocks);
    /// Members 1 to `readers` copy the first `bytes` of the driver's memory at once. Returns the
    /// slowest one's time.
    double contended_read_ns(unsigned readers, std::uint64_t bytes);
    /// Copies from member 1's memory by process_vm_readv, and returns the time. Fails as the kernel
    /// says.
    Result<double> cma_ns(std::byte* target, std::uint64_t bytes);
    /// Like cma_ns(), but copies one byte: the kernel finds the pages of all `bytes` before that.
    Result<double> cma_lookup_ns(std::uint64_t bytes);
    /// Exchanges messages between the driver and member 1, and returns the time of one. REQUIRES:
    /// CrewOptions::lanes has the lane of `work`.
    double messages_ns(const TimedMessages& work);
    void dismiss();

  private:
    friend class Member;
    Result<double> cma_ns(std::byte* target, std::uint64_t copied, std::uint64_t bytes);
    enum class Task : std::uint32_t { line, futex, write, read, contend, messages, leave };
    struct Order {
        Task task = Task::line;
        std::uint32_t count = 0;
        std::uint64_t bytes = 0;
        std::uint64_t stride = 0;
        std::uint64_t blocks = 0;
        TimedMessages messages = {};
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
    std::uint64_t memory_bytes = 0;  ///< Bytes that each member leases from its heap.
    Clock::time_point deadline;      ///< After it, and some grace, the crew is killed.
    /// The options of the transports between the first two members, kLanesMax at most. Their
    /// buffers have `message_bytes` bytes.
    std::vector<transport::ShmOptions> lanes = {};
    std::uint64_t message_bytes = 0;
};
inline constexpr std::size_t kLanesMax = 10;

/// Forks the crew, has the driver run `script`, and returns what it recorded. Fails when a member
/// fails, with its reason, or takes too long. REQUIRES: the caller has no other threads.
Result<std::vector<Sample>> run_crew(const CrewOptions& options,
                                     const std::function<Status(Driver&)>& script);

} // namespace ucg::tools
