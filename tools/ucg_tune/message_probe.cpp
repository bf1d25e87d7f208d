#include "tools/ucg_tune/message_probe.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "tools/ucg_tune/copy_choice.hpp"

namespace ucg::tools {

namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// The approximate time of one cell of a round in nanoseconds: long enough for the clock's cost not
/// to show, short enough for a round to end before the machine's state changes.
constexpr double kCellNs = 60000;

/// The lengths of messages through a ring to which LogGP is fitted.
constexpr std::array<std::uint64_t, 8> kMessageBytes = {8,        256,      1 << 10,   4 << 10,
                                                        16 << 10, 64 << 10, 256 << 10, 1 << 20};
/// The lengths that the buffers of a ring may have, and the message lengths by which they are
/// compared.
constexpr std::array<std::uint64_t, 4> kRingBytes = {256 << 10, 512 << 10, 1 << 20, 2 << 20};
constexpr std::array<std::uint64_t, 5> kRingMessageBytes = {16 << 10, 32 << 10, 64 << 10, 256 << 10,
                                                            1 << 20};
/// The depths that flag slots may have, and the lengths of shares by which they are compared.
constexpr std::array<std::uint32_t, 2> kFlagSlotDepths = {16, 64};
constexpr std::array<std::uint64_t, 4> kShareBytes = {1 << 10, 2 << 10, 4 << 10, 8 << 10};
/// The length for which messages that follow one another tell the rate of a ring.
constexpr std::uint64_t kRingRateBytes = 64 << 10;
/// Lengths at which ways of copying are compared; a threshold is one of them. The last one stands
/// for the longest that was timed and for all beyond.
constexpr std::array<std::uint64_t, 7> kMappedBytes = {2 << 10,  4 << 10,   8 << 10, 16 << 10,
                                                       64 << 10, 256 << 10, 1 << 20};
constexpr std::array<std::uint64_t, 7> kPrivateBytes = {8 << 10,   16 << 10, 32 << 10, 64 << 10,
                                                        256 << 10, 1 << 20,  4 << 20};
/// Where the kernel is slower at all of these, longer messages are not assumed to be faster, since
/// caches are too small for those as well.
constexpr std::array<std::uint64_t, 8> kKernelFromBytes = {
    8 << 10,   16 << 10, 32 << 10, 64 << 10,
    256 << 10, 1 << 20,  4 << 20,  cost::kHardlyEverCopiedOnce};
constexpr std::array<std::uint64_t, 3> kCooperativeBytes = {64 << 10, 256 << 10, 1 << 20};

/// The uses of messages, all equally frequent: a threshold holds for all of them. What was just
/// written lies in its sender's cache; what was not, and was sent before, also in the receiver's.
constexpr std::array kUses = {Series::one_way, Series::exchange, Series::one_way_written,
                              Series::exchange_written};
/// The uses that leave neither processor idle.
constexpr std::array kBusyUses = {Series::exchange, Series::exchange_written};
/// The uses by which lengths for collectives are chosen whose messages go one way. Ranks need not
/// wait for one another in these, so that messages follow one another; and what a program sends by
/// itself it has mostly just written.
constexpr std::array kOneWayUses = {Series::one_way_written, Series::stream};
constexpr std::array kCombinedUses = {Series::combined};
/// The uses that need rings to be fast even where the kernel copies all else.
constexpr std::array kRingUses = {Series::stream, Series::combined};
/// All that is timed of messages that the peer has not mapped.
constexpr std::array kPrivateUses = {Series::one_way,         Series::exchange,
                                     Series::one_way_written, Series::exchange_written,
                                     Series::stream,          Series::combined};

constexpr std::array kShareUses = {Series::shares};

/// A way of copying vectors, which is a lane of the crew.
struct Way {
    std::string name;
    transport::ShmOptions options;
    bool in_segment = false;
    std::span<const std::uint64_t> lengths;
    std::span<const Series> uses;
};

TimedMessages work_of(Series use) {
    const bool written = use == Series::one_way_written || use == Series::exchange_written;
    const bool exchange = use == Series::exchange || use == Series::exchange_written;
    const Pattern pattern = use == Series::stream     ? Pattern::stream
                            : use == Series::combined ? Pattern::combined
                            : use == Series::shares   ? Pattern::shares
                            : exchange                ? Pattern::exchange
                                                      : Pattern::one_way;
    return {.pattern = pattern, .written = written};
}

/// Returns how often a message of that length moves in one cell, from the least time that it takes.
std::uint32_t times_in_cell(std::uint64_t bytes, double message_ns) {
    constexpr double kBestPerByteNs = 1.0 / 32;
    const double least_ns = message_ns + kBestPerByteNs * static_cast<double>(bytes);
    return static_cast<std::uint32_t>(std::clamp(kCellNs / least_ns, 1.0, 500.0));
}

/// Returns options by which all messages go through rings.
transport::ShmOptions ring_options(std::uint64_t ring_bytes, bool own_processors) {
    transport::ShmOptions options;
    options.ring_bytes = ring_bytes;
    options.single_copy_bytes_min = kNever;
    options.mapped_copy_bytes_min = kNever;
    options.cooperative_copy_bytes_min = kNever;
    options.own_processors = own_processors;
    return options;
}

/// Fills all buffers of a lane's rings, which have no pages before, and continues until their
/// senders have found out which way of writing them is faster (shm::CopyPace, after two
/// comparisons).
void warm_up(Driver& driver, std::uint32_t lane, bool in_segment, std::uint64_t bytes,
             std::uint64_t ring_bytes) {
    constexpr std::uint64_t kPaceBytes = std::uint64_t{40} << 20;
    const std::uint64_t all = std::max(kPaceBytes, 2 * ring_bytes);
    driver.messages_ns({.lane = lane,
                        .pattern = Pattern::one_way,
                        .in_segment = in_segment,
                        .count = static_cast<std::uint32_t>(all / bytes),
                        .bytes = bytes});
}

/// Measures copies of messages between ranks that have a processor each, or that share one.
class CopyProbe {
  public:
    CopyProbe(ProbeRun& run, const std::vector<std::uint32_t>& cpus)
        : run_(run), cpus_(cpus), own_(cpus[0] != cpus[1]) {}

    Status measure() {
        choose_ways();
        CrewOptions crew = {.cpus = cpus_, .deadline = {}};
        std::vector<std::string> names;
        for (const Way& way : ways_) {
            crew.lanes.push_back(way.options);
            names.push_back(way.name);
            crew.message_bytes = std::max(crew.message_bytes, run_.longest(way.lengths.back()));
        }
        Status status = run_.rounds(
            name(), crew,
            [&](Driver& driver, std::uint32_t round) {
                for (std::uint32_t lane = 0; lane < ways_.size(); ++lane) {
                    time_way(driver, round, lane);
                }
                return Status();
            },
            names);
        if (!status.ok()) {
            return status;
        }
        if (own_ && !run_.steady(name())) {
            run_.note("{}: lines took longer than before, as if the CPUs were farther apart; not "
                      "measured",
                      name());
            return {};
        }
        own_ ? learn() : learn_oversubscribed();
        return {};
    }

  private:
    std::string name() const { return own_ ? "copies" : "copies by one CPU"; }
    std::string named(std::string_view way) const {
        return fmt::format("{}{}", own_ ? "" : "one CPU: ", way);
    }
    static std::string flag_slots(std::uint32_t depth) {
        return fmt::format("flag slots, {} shares", depth);
    }
    static std::string rings(std::uint64_t bytes) { return "rings, " + topo::format_bytes(bytes); }

    void choose_ways() {
        if (own_) {
            add("in segments: rings", true, kMappedBytes, ring_options(256 << 10, own_));
            add("in segments: alone", true, kMappedBytes, ring_options(256 << 10, own_))
                .mapped_copy_bytes_min = 1;
            add("in segments: both", true, kCooperativeBytes, ring_options(256 << 10, own_))
                .mapped_copy_bytes_min = 1;
            ways_.back().options.cooperative_copy_bytes_min = 1;
            for (const std::uint32_t depth : kFlagSlotDepths) {
                add(flag_slots(depth), false, kShareBytes, ring_options(256 << 10, own_))
                    .flag_slot_depth = depth;
                ways_.back().uses = kShareUses;
            }
        }
        if (run_.options().quick) {
            return; // The others decide about longer messages.
        }
        for (const std::uint64_t bytes : kRingBytes) {
            add(rings(bytes), false,
                bytes == kRingBytes.front() ? std::span<const std::uint64_t>(kPrivateBytes)
                                            : kRingMessageBytes,
                ring_options(bytes, own_));
        }
        if (run_.model().cma.permitted) {
            // With the help of senders, as wherever single copies are made.
            transport::ShmOptions options = ring_options(kRingBytes.front(), own_);
            options.single_copy_bytes_min = 1;
            options.cooperative_copy_bytes_min = 1;
            add("by the kernel", false, kPrivateBytes, options);
        }
    }

    transport::ShmOptions& add(std::string_view name, bool in_segment,
                               std::span<const std::uint64_t> lengths,
                               const transport::ShmOptions& options) {
        ways_.push_back({named(name), options, in_segment, lengths,
                         in_segment ? std::span<const Series>(kUses) : kPrivateUses});
        return ways_.back().options;
    }

    void time_way(Driver& driver, std::uint32_t round, std::uint32_t lane) {
        const Way& way = ways_[lane];
        if (round == 0 && way.uses.front() != Series::shares) {
            warm_up(driver, lane, way.in_segment,
                    std::min(way.lengths.back(), run_.longest(256 << 10)), way.options.ring_bytes);
        }
        for (const std::uint64_t bytes : way.lengths) {
            for (const Series use : way.uses) {
                if (bytes <= run_.longest(bytes)) {
                    time(driver, round, lane, use, bytes);
                }
            }
        }
    }

    void time(Driver& driver, std::uint32_t round, std::uint32_t lane, Series use,
              std::uint64_t bytes) {
        TimedMessages work = work_of(use);
        work.lane = lane;
        work.in_segment = ways_[lane].in_segment;
        work.bytes = bytes;
        work.count = times_in_cell(bytes, own_ ? 1000 : 4000);
        driver.record({use, 1, round, bytes, driver.messages_ns(work), lane});
    }

    TimesByLength times_of(const std::string& way, std::span<const Series> uses) const {
        std::vector<TimesByLength> of_uses;
        for (const Series use : uses) {
            TimesByLength& one = of_uses.emplace_back();
            for (const FitPoint& point : run_.points(way, use)) {
                one[static_cast<std::uint64_t>(point.x)] = point.y;
            }
        }
        return mean_of(of_uses);
    }

    TimesByLength times(std::string_view way) const { return times_of(named(way), kUses); }

    /// Returns the times where ranks share processors. Such ranks have peers on their own CPU and
    /// on others, whose time slices end as well: there the work of both ends counts, and so the
    /// uses that keep both CPUs busy.
    TimesByLength oversubscribed_times(const std::string& way) const {
        const TimesByLength across = times_of(way, kBusyUses);
        const TimesByLength here = times(way);
        return across.empty() ? here : mean_of(std::array{here, across});
    }

    void derived(std::string_view table, std::string_view key) {
        run_.result().figures[fmt::format("{}.{}", table, key)] = {Origin::derived, 0};
    }

    /// Returns the length of the buffers of a ring that serves these uses well.
    std::uint64_t best_ring(std::span<const Series> uses) const {
        std::vector<TimesByLength> ways;
        for (const std::uint64_t bytes : kRingBytes) {
            TimesByLength& one = ways.emplace_back();
            const TimesByLength all = times_of(named(rings(bytes)), uses);
            for (const std::uint64_t length : kRingMessageBytes) { // All were timed at these.
                if (const auto ns = all.find(length); ns != all.end()) {
                    one.insert(*ns);
                }
            }
        }
        return kRingBytes[good_enough(ways)];
    }

    void learn() {
        cost::MemoryModel& memory = run_.model();
        const TimesByLength alone = times("in segments: alone");
        memory.copies.mapped_bytes_min =
            turning_point(times("in segments: rings"), alone, kMappedBytes);
        derived("memory.copies", "mapped_bytes_min");
        learn_flag_slots();
        if (run_.options().quick) {
            return;
        }
        memory.cooperative.bytes_min =
            turning_point(alone, times("in segments: both"), kCooperativeBytes);
        memory.cooperative.measured = true;
        derived("memory.cooperative_copies", "bytes_min");
        if (memory.cma.permitted) {
            memory.cma.bytes_min = kernel_from(kRingBytes.front(), kUses);
            derived("memory.cma", "bytes_min");
        }
        learn_rings();
    }

    /// Returns the length from which on messages of these uses are not slower by the kernel than
    /// through such rings.
    std::uint64_t kernel_from(std::uint64_t ring_bytes, std::span<const Series> uses) const {
        return turning_point(times_of(named(rings(ring_bytes)), uses),
                             times_of(named("by the kernel"), uses), kKernelFromBytes);
    }

    void learn_flag_slots() {
        std::vector<TimesByLength> depths;
        depths.reserve(kFlagSlotDepths.size());
        for (const std::uint32_t depth : kFlagSlotDepths) {
            depths.push_back(times_of(flag_slots(depth), kShareUses));
        }
        run_.model().flag_slots = {.depth = kFlagSlotDepths[good_enough(depths)], .measured = true};
        derived("memory.flag_slots", "depth");
    }

    /// Learns how long the buffers of rings should be for the messages that go through them: where
    /// the kernel soon copies what is exchanged, those that go one way.
    void learn_rings() {
        cost::CopyModel& copies = run_.model().copies;
        cost::CmaModel& cma = run_.model().cma;
        const bool carry_exchanges = !cma.permitted || cma.bytes_min > kRingMessageBytes.front();
        copies.ring_bytes = carry_exchanges ? best_ring(kPrivateUses) : best_ring(kRingUses);
        copies.measured = true;
        derived("memory.copies", "ring_bytes");
        const TimesByLength stream = times_of(rings(copies.ring_bytes), std::array{Series::stream});
        if (const auto ns = stream.find(kRingRateBytes); ns != stream.end()) {
            copies.ring_per_byte_ns = ns->second / static_cast<double>(kRingRateBytes);
            derived("memory.copies", "ring_per_byte_ns");
        }
        if (cma.permitted) {
            cma.one_way_bytes_min = kernel_from(copies.ring_bytes, kOneWayUses);
            cma.combined_bytes_min = kernel_from(copies.ring_bytes, kCombinedUses);
            derived("memory.cma", "one_way_bytes_min");
            derived("memory.cma", "combined_bytes_min");
        }
    }

    void learn_oversubscribed() {
        if (run_.options().quick) {
            return;
        }
        cost::CopyModel& copies = run_.model().copies;
        copies.oversubscribed_ring_bytes = best_ring(kUses);
        copies.oversubscribed_measured = true;
        derived("memory.copies", "oversubscribed_ring_bytes");
        if (run_.model().cma.permitted && run_.steady("copies")) {
            copies.oversubscribed_cma_bytes_min =
                turning_point(oversubscribed_times(rings(kRingBytes.front())),
                              oversubscribed_times("by the kernel"), kKernelFromBytes);
            copies.oversubscribed_combined_bytes_min =
                kernel_from(kRingBytes.front(), kCombinedUses);
            derived("memory.copies", "oversubscribed_cma_bytes_min");
            derived("memory.copies", "oversubscribed_combined_bytes_min");
        }
    }

    ProbeRun& run_;
    const std::vector<std::uint32_t>& cpus_;
    bool own_;
    std::vector<Way> ways_;
};

} // namespace

Status measure_copies(ProbeRun& run, const std::vector<std::uint32_t>& cpus) {
    return CopyProbe(run, cpus).measure();
}

Status measure_messages(ProbeRun& run, topo::Distance distance,
                        const std::vector<std::uint32_t>& cpus) {
    const std::string where = fmt::format("{}, messages", topo::name(distance));
    CrewOptions crew = {.cpus = {cpus[0], cpus[1]}, .deadline = {}};
    crew.lanes = {ring_options(run.model().copies.ring_bytes, true)};
    crew.message_bytes = run.longest(kMessageBytes.back());
    Status status = run.rounds(
        where, crew,
        [&](Driver& driver, std::uint32_t round) {
            if (round == 0) {
                warm_up(driver, 0, false, run.longest(256 << 10), crew.lanes[0].ring_bytes);
            }
            for (const std::uint64_t bytes : kMessageBytes) {
                if (bytes <= crew.message_bytes) {
                    const TimedMessages work = {.count = times_in_cell(bytes, 200), .bytes = bytes};
                    driver.record({Series::one_way, 1, round, bytes, driver.messages_ns(work)});
                }
            }
            const std::uint64_t bytes = kMessageBytes.front();
            driver.record(
                {Series::stream, 1, round, bytes,
                 driver.messages_ns({.pattern = Pattern::stream, .count = 500, .bytes = bytes})});
            driver.record(
                {Series::burst, 1, round, bytes,
                 driver.messages_ns({.pattern = Pattern::burst, .count = 20, .bytes = bytes})});
            return Status();
        },
        std::array{where});
    if (!status.ok()) {
        return status;
    }
    if (!run.steady(where)) {
        run.note(
            "{}: lines took longer than before, as if the CPUs were farther apart; not measured",
            where);
        return {};
    }
    const std::string table = fmt::format("levels.{}", topo::name(distance));
    const std::vector<FitPoint> times = run.points(where, Series::one_way);
    cost::LogGp costs;
    const Quartiles& shortest = run.shortest(where, Series::one_way);
    run.fitted(table, "latency_ns", spread(shortest));
    costs.gap_ns = run.learn(where, Series::stream, table, "gap_ns");
    costs.overhead_ns = run.learn(where, Series::burst, table, "overhead_ns");
    costs.latency_ns = std::max(0.0, shortest.median - 2 * costs.overhead_ns);
    costs.gap_per_byte_ns =
        run.learn_slope(std::span(times).subspan(1), shortest.median, table, "gap_per_byte_ns");
    run.result().levels[static_cast<std::size_t>(distance)] = costs;
    return {};
}

} // namespace ucg::tools
