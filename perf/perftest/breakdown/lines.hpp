// The cost of a cache line that two processes use alternately, by plain loads, stores and atomic
// operations. On shared memory such a line is the wire.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "perf/perftest/breakdown/sample.hpp"
#include "perf/perftest/runtime.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::perftest::breakdown {

/// Cache lines that both processes of a run can access, made before the processes are forked.
class Lines {
  public:
    static Result<std::unique_ptr<Lines>> create();
    ~Lines();
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    /// Half a round trip of one line that two processes write alternately and poll without a pause.
    static constexpr const char* kOneLine = "One line to and fro, half a round trip";
    /// Half a round trip by a line in each direction, as messages travel. A process that waits for
    /// the peer does between two polls what a transport does there.
    static constexpr const char* kTwoLines = "A line in each direction, half a round trip";
    /// Half a round trip by structures like UCX's FIFOs, one in each direction. The sender claims a
    /// place by the head and writes the next element of a ring; the receiver waits for the element
    /// and reads the head. Every line that is needed has just been written by the other process.
    static constexpr const char* kFifo = "A FIFO's head and element each way, half a round trip";
    /// Loading a line that the peer wrote a while ago.
    static constexpr const char* kRead = "Line that the peer wrote: load";
    /// Loading a line that the peer loaded a while ago, and then changing it by one atomic
    /// operation.
    static constexpr const char* kClaim = "Line that the peer read: load, compare and swap";
    /// Like kClaim, for a line that nobody else uses.
    static constexpr const char* kOwnClaim = "Line of one's own: load, compare and swap";

    /// Measures all of these `samples` times. `between` is called between two polls where there is
    /// a line or a FIFO in each direction. Collective of two; the second rank helps.
    void measure(Rank rank, std::size_t samples, Stopwatch& stopwatch, Rounds& rounds,
                 const std::function<void()>& between);

    /// Returns on both ranks at the same time, as nearly as one cache line can tell.
    void meet(Rank rank);

    /// Returns on both ranks at the same time by the processors' clock, which is common to the
    /// processors of a machine, so that the transfer of a line does not lie between the returns.
    void start_together(Rank rank);

    /// Numbers that both ranks read and write between two meetings.
    static constexpr std::size_t kNumbers = 64;
    std::atomic<std::uint64_t>& number(std::size_t index) { return shared_->numbers[index]; }

  private:
    /// Two lines, since some processors prefetch the neighbouring line.
    static constexpr std::size_t kApart = 2 * kCacheLine;
    /// A FIFO like UCX's default one, with as many elements, each on lines of its own.
    struct Fifo {
        struct Element {
            alignas(kApart) std::atomic<std::uint64_t> number;
        };
        alignas(kApart) std::atomic<std::uint64_t> head;
        Element elements[64];
    };
    struct Shared {
        alignas(kApart) std::atomic<std::uint64_t> line;
        alignas(kApart) std::atomic<std::uint64_t> back;
        Fifo fifos[2]; ///< By the receiving rank.
        alignas(kApart) std::atomic<std::uint64_t> subject;
        alignas(kApart) std::atomic<std::uint64_t> arrived[2];
        alignas(kApart) std::atomic<std::uint64_t> start;
        alignas(kApart) std::atomic<std::uint64_t> numbers[kNumbers];
    };
    enum class Touch { read, claim };

    explicit Lines(Shared* shared) : shared_(shared) {}
    double one_line_ns(Rank rank, std::size_t samples);
    double two_lines_ns(Rank rank, std::size_t samples, const std::function<void()>& between);
    double fifo_ns(Rank rank, std::size_t samples, const std::function<void()>& between);
    double touched_ns(Rank rank, Touch touch, std::size_t samples, Stopwatch& stopwatch);
    double own_claim_ns(std::size_t samples, Stopwatch& stopwatch);

    Shared* shared_;
    std::uint64_t turn_ = 0;
    std::uint64_t claimed_ = 0; ///< Messages sent through the FIFOs, each way.
    std::uint64_t meetings_ = 0;
};

} // namespace ucg::perftest::breakdown
