// What a cache line costs that two processes use by turns, by plain loads, stores and atomic
// operations: on shared memory it is the wire.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "perf/perftest/breakdown/sample.hpp"
#include "perf/perftest/runtime.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::perftest::breakdown {

/// Lines that both processes of a run see: made before they are forked.
class Lines {
  public:
    static Result<std::unique_ptr<Lines>> create();
    ~Lines();
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    /// Half a round trip of one line that two processes write by turns, looking at it without rest.
    static constexpr const char* kOneLine = "One line to and fro, half a round trip";
    /// Half a round trip by a line in each direction, as messages travel; who waits for the peer's
    /// does what a transport does between two looks.
    static constexpr const char* kTwoLines = "A line in each direction, half a round trip";
    /// Half a round trip of what UCX's FIFOs are made of, one in each direction: who sends claims a
    /// place by the head and writes the next element of a ring, who receives waits for the element
    /// and reads the head. No line is at rest when it is needed.
    static constexpr const char* kFifo = "A FIFO's head and element each way, half a round trip";
    /// Loading what the peer wrote a while ago.
    static constexpr const char* kRead = "Line that the peer wrote: load";
    /// Loading and then changing, by one atomic operation, what the peer loaded a while ago.
    static constexpr const char* kClaim = "Line that the peer read: load, compare and swap";
    /// The same of a line that nobody else uses.
    static constexpr const char* kOwnClaim = "Line of one's own: load, compare and swap";

    /// Measures all of them `samples` times; `between` two looks at what comes by lines in each
    /// direction. Collective of two; the second rank helps.
    void measure(Rank rank, std::size_t samples, Stopwatch& stopwatch, Rounds& rounds,
                 const std::function<void()>& between);

    /// Both ranks return at the same time, as nearly as one line tells.
    void meet(Rank rank);

    /// The same, at one time by the processors' clock, which runs alike on those of a machine: no
    /// line's way lies between them then.
    void start_together(Rank rank);

    /// Numbers that both ranks read and write between two meetings.
    static constexpr std::size_t kNumbers = 64;
    std::atomic<std::uint64_t>& number(std::size_t index) { return shared_->numbers[index]; }

  private:
    /// Two lines apart, for what prefetches neighbours.
    static constexpr std::size_t kApart = 2 * kCacheLine;
    /// As UCX's, by default: so many elements, each apart from the next.
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
        Fifo fifos[2]; ///< By who receives.
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
    std::uint64_t claimed_ = 0; ///< Messages by the FIFOs, each way.
    std::uint64_t meetings_ = 0;
};

} // namespace ucg::perftest::breakdown
