#include "perf/perftest/collectives/board.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <set>
#include <unistd.h>
#include <vector>

#include "perf/perftest/collectives/host_identity.hpp"
#include "perf/perftest/statistics.hpp"
#include "perf/perftest/timer.hpp"
#include "topo/cpus.hpp"

namespace ucg::perftest {

namespace {

constexpr unsigned kPollsPerProgress = 1000;
constexpr unsigned kPollsPerYield = 10000; ///< In case two ranks are on one processor after all.
constexpr unsigned kTripsPerTime = 16;     ///< Readings of the clock would prolong a single trip.
constexpr unsigned kTripTimes = 128;
constexpr unsigned kClockTurns = 64;
/// The longest lead. A round trip can be measured far too long while other processes have the
/// processors, and with many ranks the lead would take longer than what is measured.
constexpr double kLeadMax = 20e-6;
constexpr double kLeadMaxPerRank = 0.1e-6;
constexpr int kCopyRounds = 15;
constexpr std::uint64_t kBlockMin = 4096;
constexpr std::uint64_t kBlockMax = 4 << 20;
constexpr std::uint64_t kBlocksInAll = 256 << 20; ///< Largest sum of all ranks' blocks.
constexpr std::uint64_t kRoundBytes = 256 << 10;  ///< Least bytes that a rank copies in a round.

/// Waits. Makes system calls only now and then where each rank has a processor.
class Poll {
  public:
    Poll(bool yields, const std::function<void()>& progress)
        : yields_(yields), progress_(progress) {}
    void idle() {
        ++polls_;
        if (progress_ && polls_ % kPollsPerProgress == 0) {
            progress_();
        }
        // There is no pause instruction: its time would become a part of what is measured.
        if (yields_ || polls_ % kPollsPerYield == 0) {
            ::sched_yield();
        }
    }

  private:
    bool yields_;
    const std::function<void()>& progress_;
    unsigned polls_ = 0;
};

const std::function<void()> kNoProgress;

/// The place where other processes of a host can open rank 0's file.
struct FilePlace {
    std::uint64_t host = 0;
    std::int64_t process = 0;
    std::int64_t descriptor = -1;
};

std::string bytes_of(const FilePlace& place) {
    return {reinterpret_cast<const char*>(&place), sizeof(place)};
}

FilePlace place_from(const std::string& bytes) {
    FilePlace place;
    std::memcpy(&place, bytes.data(), std::min(bytes.size(), sizeof(place)));
    return place;
}

/// Returns the number of processors that at least one rank may use, as the control group limits it.
unsigned cpu_count(const std::vector<std::string>& lists) {
    std::set<std::uint32_t> all;
    for (const std::string& list : lists) {
        for (const std::uint32_t cpu :
             topo::parse_ranges(list).value_or(std::vector<std::uint32_t>())) {
            all.insert(cpu);
        }
    }
    return topo::limit_cpu_count(all.size(), topo::cpu_quota(topo::read_file));
}

std::uint64_t block_max(Rank size) {
    return std::clamp(std::bit_floor(kBlocksInAll / static_cast<std::uint64_t>(size)), kBlockMin,
                      kBlockMax);
}

} // namespace

double start_lead(double round_trip, Rank size) {
    const auto ranks = static_cast<double>(size);
    return std::min(round_trip * ranks, kLeadMax + kLeadMaxPerRank * ranks);
}

/// The shared memory. Words of different purposes are on cache lines of their own, and each rank
/// has a line for a time and a block.
struct Board::Shared {
    alignas(kCacheLine) std::atomic<Rank> arrived;
    alignas(kCacheLine) std::atomic<unsigned> generation;
    std::atomic<Ticks> start; ///< Time at which this generation begins.
    alignas(kCacheLine) std::atomic<unsigned> ball;
    alignas(kCacheLine) std::array<std::atomic<Ticks>, 2> clocks;
    struct alignas(kCacheLine) Slot {
        double seconds;
    };

    static std::uint64_t bytes(Rank size) {
        const auto ranks = static_cast<std::uint64_t>(size);
        return blocks_at(size) + ranks * block_max(size);
    }
    static std::uint64_t blocks_at(Rank size) {
        const auto ranks = static_cast<std::uint64_t>(size);
        return (sizeof(Shared) + ranks * sizeof(Slot) + kBlockMin - 1) / kBlockMin * kBlockMin;
    }
    Slot& slot(Rank rank) { return reinterpret_cast<Slot*>(this + 1)[rank]; }
    std::byte* block(Rank rank, Rank size) {
        return reinterpret_cast<std::byte*>(this) + blocks_at(size) +
               static_cast<std::uint64_t>(rank) * block_max(size);
    }
};

Result<std::unique_ptr<Board>> Board::create(Runtime& runtime) {
    const std::uint64_t bytes = Shared::bytes(runtime.size());
    const std::uint64_t host = host_identity();
    std::unique_ptr<shm::SharedSegment> segment;
    FilePlace place{host, ::getpid(), -1};
    if (runtime.rank() == 0) {
        Result<std::unique_ptr<shm::SharedSegment>> created = shm::SharedSegment::create(bytes);
        if (created.ok()) {
            segment = std::move(*created);
            place.descriptor = segment->descriptor();
        }
    }
    const Result<std::vector<std::string>> places = runtime.exchange(bytes_of(place));
    if (!places.ok()) {
        return places.status();
    }
    const FilePlace file = place_from(places->front());
    if (runtime.rank() > 0 && file.host == host && file.descriptor >= 0) {
        const std::string path = fmt::format("/proc/{}/fd/{}", file.process, file.descriptor);
        shm::Descriptor opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        if (opened.valid()) {
            Result<std::unique_ptr<shm::SharedSegment>> joined =
                shm::SharedSegment::join(std::move(opened), bytes);
            segment = joined.ok() ? std::move(*joined) : nullptr;
        }
    }
    // Each rank may be bound to a processor of its own; together they have the union of these.
    const bool has = segment != nullptr && host != 0;
    const Result<std::vector<std::string>> cpus =
        runtime.exchange(has ? topo::format_ranges(topo::usable_cpus()) : "");
    if (!cpus.ok()) {
        return cpus.status();
    }
    if (std::ranges::find(*cpus, "") != cpus->end()) {
        return std::unique_ptr<Board>();
    }
    const bool yields = static_cast<unsigned>(runtime.size()) > cpu_count(*cpus);
    return std::unique_ptr<Board>(new Board(runtime, std::move(segment), yields));
}

Board::Board(Runtime& runtime, std::unique_ptr<shm::SharedSegment> segment, bool yields)
    : rank_(runtime.rank()), size_(runtime.size()), yields_(yields), segment_(std::move(segment)),
      shared_(*reinterpret_cast<Shared*>(segment_->base())) {
    if (!yields_ && size_ > 1 && clocks_agree()) {
        const std::vector<double> times = round_trips();
        const double least = slowest(rank_ == 0 ? *std::ranges::min_element(times) : 0);
        lead_ = static_cast<Ticks>(start_lead(least, size_) * ticks_per_second());
    }
}

void Board::arrive(Ticks lead, const std::function<void()>& progress) {
    const unsigned generation = shared_.generation.load(std::memory_order_acquire);
    if (shared_.arrived.fetch_add(1, std::memory_order_acq_rel) == size_ - 1) {
        shared_.arrived.store(0, std::memory_order_relaxed);
        shared_.start.store(read_unordered() + lead, std::memory_order_relaxed);
        shared_.generation.store(generation + 1, std::memory_order_release);
        return;
    }
    Poll poll(yields_, progress);
    while (shared_.generation.load(std::memory_order_acquire) == generation) {
        poll.idle();
    }
}

void Board::barrier(const std::function<void()>& progress) {
    arrive(0, progress);
}

void Board::start_together(const std::function<void()>& progress) {
    arrive(lead_, progress);
    const Ticks start = shared_.start.load(std::memory_order_relaxed);
    while (lead_ > 0 && read_unordered() < start) {
    }
}

/// Returns whether the ranks' clocks are one. Rank 0 and each of the other ranks alternately pass
/// each other what their clocks say: it must be later than what was passed to them.
bool Board::clocks_agree() {
    bool agree = true;
    for (Rank peer = 1; peer < size_; ++peer) {
        for (unsigned turn = 0; turn < kClockTurns && (rank_ == 0 || rank_ == peer); ++turn) {
            auto& mine = shared_.clocks[rank_ == 0 ? 0 : 1];
            auto& theirs = shared_.clocks[rank_ == 0 ? 1 : 0];
            Ticks before = 0;
            if (rank_ == 0) {
                before = read_ordered();
                mine.store(before, std::memory_order_release);
            }
            Poll poll(yields_, kNoProgress);
            Ticks said = 0;
            while ((said = theirs.exchange(0, std::memory_order_acq_rel)) == 0) {
                poll.idle();
            }
            const Ticks now = read_ordered();
            agree = agree && said >= before && now >= said;
            if (rank_ != 0) {
                mine.store(now, std::memory_order_release);
            }
        }
        barrier();
    }
    return slowest(agree ? 0 : 1) == 0;
}

double Board::slowest(double seconds) {
    shared_.slot(rank_).seconds = seconds;
    barrier();
    double most = 0;
    for (Rank rank = 0; rank < size_; ++rank) {
        most = std::max(most, shared_.slot(rank).seconds);
    }
    barrier();
    return most;
}

double Board::round_trip() {
    if (size_ < 2) {
        return 0;
    }
    std::vector<double> times = round_trips();
    return slowest(rank_ == 0 ? percentile(times, 50) : 0);
}

std::vector<double> Board::round_trips() {
    std::vector<double> times;
    barrier();
    unsigned awaited = shared_.ball.load(std::memory_order_acquire) + (rank_ == 0 ? 2 : 1);
    barrier();
    for (unsigned time = 0; rank_ < 2 && time < kTripTimes; ++time) {
        const Ticks start = read_unordered();
        for (unsigned trip = 0; trip < kTripsPerTime; ++trip, awaited += 2) {
            if (rank_ == 0) {
                shared_.ball.store(awaited - 1, std::memory_order_release);
            }
            Poll poll(yields_, kNoProgress);
            while (shared_.ball.load(std::memory_order_acquire) != awaited) {
                poll.idle();
            }
            if (rank_ == 1) {
                shared_.ball.store(awaited + 1, std::memory_order_release);
            }
        }
        times.push_back(nanoseconds(read_unordered() - start) * 1e-9 / kTripsPerTime);
    }
    return times;
}

double Board::copy_rate(std::uint64_t bytes) {
    const std::uint64_t block = std::bit_ceil(std::clamp(bytes, kBlockMin, block_max(size_)));
    const std::byte* from = shared_.block((rank_ + 1) % size_, size_);
    std::vector<std::byte> to(block);
    std::memset(shared_.block(rank_, size_), rank_ + 1, block);
    const std::uint64_t copies = std::max<std::uint64_t>(1, kRoundBytes / block);
    std::vector<double> times;
    for (int round = -1; round < kCopyRounds; ++round) { // The first one fills the caches.
        barrier();
        const Ticks start = read_ordered();
        for (std::uint64_t copy = 0; copy < copies; ++copy) {
            std::memcpy(to.data(), from, block);
            __asm__ volatile("" : : "r"(to.data()) : "memory"); // Keeps each copy.
        }
        const double seconds = nanoseconds(read_ordered() - start) * 1e-9;
        if (round >= 0) {
            times.push_back(seconds);
        }
    }
    return static_cast<double>(copies * block) / slowest(percentile(times, 50));
}

std::vector<float> Board::slowest(const std::vector<float>& times) {
    const std::size_t chunk = block_max(size_) / sizeof(float);
    std::vector<float> most = times;
    for (std::size_t at = 0; at < times.size(); at += chunk) {
        const std::size_t count = std::min(chunk, times.size() - at);
        std::memcpy(shared_.block(rank_, size_), times.data() + at, count * sizeof(float));
        barrier();
        for (Rank rank = 0; rank < size_; ++rank) {
            const auto* theirs = reinterpret_cast<const float*>(shared_.block(rank, size_));
            std::transform(theirs, theirs + count, most.data() + at, most.data() + at,
                           [](float left, float right) { return std::max(left, right); });
        }
        barrier();
    }
    return most;
}

} // namespace ucg::perftest
