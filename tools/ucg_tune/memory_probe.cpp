#include "tools/ucg_tune/memory_probe.hpp"

#include <algorithm>
#include <unistd.h>

#include "shm/budget.hpp"
#include "shm/copy.hpp"
#include "tools/ucg_tune/memory_work.hpp"
#include "tools/ucg_tune/message_probe.hpp"
#include "tools/ucg_tune/probe_run.hpp"

namespace ucg::tools {

namespace {

/// More than the largest last-level caches of servers. A round of it takes about a second.
constexpr std::uint64_t kWorkingSetMax = std::uint64_t{2} << 30;
constexpr std::uint64_t kQuickBytesMax = 2 << 20;

constexpr std::array<std::uint64_t, 7> kReadBytes = {256,      1 << 10,   4 << 10, 16 << 10,
                                                     64 << 10, 256 << 10, 1 << 20};
constexpr std::array<std::uint64_t, 3> kContendedBytes = {4 << 10, 64 << 10, 1 << 20};
constexpr std::array<std::uint64_t, 4> kCmaBytes = {64, 16 << 10, 128 << 10, 1 << 20};
/// Work within one cache, and the number of bytes that a core touches there.
struct CacheWork {
    cost::Cache cache;
    std::uint64_t bytes;
};

class Probe {
  public:
    Probe(const topo::Machine& machine, const std::vector<std::uint32_t>& cpus,
          const cost::MemoryModel& model, const ProbeOptions& options)
        : machine_(machine), cpus_(cpus), neighbours_(neighbours_of(machine, cpus)),
          // Levels, contention, messages; copies of messages, with a CPU each and on one; caches,
          // the last one's usable part, the kernel's copy, wake-ups on one CPU and across.
          run_(options, 3 * neighbours_.size() + 2 + cost::kCacheCount + 1 + 3) {
        run_.model() = model;
        usual_line_ns_ = model.levels[static_cast<std::size_t>(topo::Distance::cache)].latency_ns;
    }

    Result<ProbeResult> run() {
        forget_marks();
        Status status;
        const auto then = [&](auto&& phase) { status = status.ok() ? phase() : status; };
        for (const CpusAtDistance& neighbours : neighbours_) {
            then([&] { return measure_level(neighbours); });
            then([&] { return measure_contention(neighbours); });
        }
        then([&] { return measure_caches(); });
        then([&] { return measure_cma(); });
        then([&] { return measure_own_copies(); });
        then([&] { return measure_oversubscribed_copies(); });
        for (const CpusAtDistance& neighbours : neighbours_) {
            then([&] { return measure_messages_to(neighbours); });
        }
        then([&] { return measure_switch(); });
        then([&] { return measure_wake_across(); });
        fit_defaults();
        return status.ok() ? Result<ProbeResult>(std::move(run_.result())) : status;
    }

  private:
    cost::MemoryModel& model() { return run_.model(); }

    static CrewOptions on(std::vector<std::uint32_t> cpus, std::uint64_t memory_bytes) {
        return {.cpus = std::move(cpus), .memory_bytes = memory_bytes, .deadline = {}};
    }

    /// Clears the marks of what was measured before, perhaps elsewhere.
    void forget_marks() {
        for (cost::MemoryLevel& level : model().levels) {
            level.measured = level.contention_measured = false;
        }
        for (cost::CacheRates& rates : model().caches) {
            rates.measured = false;
        }
        model().cma.measured = model().cooperative.measured = false;
        model().copies.measured = model().copies.oversubscribed_measured = false;
        model().wake.measured = model().wake.across_measured = false;
    }

    /// Adjusts levels that were not measured to those that were: a farther one is not faster, and a
    /// link that serves some readers at full speed by default does so at any speed.
    void fit_defaults() {
        cost::MemoryLevel nearer; // The farthest measured level so far.
        for (std::size_t i = 0; i < cost::kMemoryLevelCount; ++i) {
            const cost::MemoryLevel& standard = cost::default_memory_model().levels[i];
            cost::MemoryLevel& level = model().levels[i];
            if (level.measured) {
                nearer = level;
            } else {
                level.latency_ns = std::max(level.latency_ns, nearer.latency_ns);
                level.per_byte_ns = std::max(level.per_byte_ns, nearer.per_byte_ns);
            }
            if (!level.contention_measured) {
                level.contended_per_byte_ns =
                    level.per_byte_ns * standard.contended_per_byte_ns / standard.per_byte_ns;
            }
        }
        note_missing_levels();
    }

    void note_missing_levels() {
        for (std::size_t i = 0; i < cost::kMemoryLevelCount; ++i) {
            const auto distance = static_cast<topo::Distance>(i);
            if (std::none_of(neighbours_.begin(), neighbours_.end(),
                             [&](const CpusAtDistance& n) { return n.distance == distance; })) {
                run_.note(
                    "{}: no two CPUs that this process may use are so far apart; not measured",
                    topo::name(distance));
            }
        }
    }

    Status measure_own_copies() {
        const std::vector<std::uint32_t> cpus = pair();
        if (cpus[0] != cpus[1]) {
            const Result<bool> skipped = skips("copies", cpus);
            return !skipped.ok() || *skipped ? skipped.status() : measure_copies(run_, cpus);
        }
        run_.skip();
        run_.note("copies: those of ranks with a CPU each need a second CPU; not measured");
        return {};
    }

    Status measure_messages_to(const CpusAtDistance& neighbours) {
        const std::string what = fmt::format("{}, messages", topo::name(neighbours.distance));
        const Result<bool> skipped = skips(what, neighbours.cpus);
        return !skipped.ok() || *skipped
                   ? skipped.status()
                   : measure_messages(run_, neighbours.distance, neighbours.cpus);
    }

    /// Returns whether a line between CPUs that share a cache, as the system says, takes several
    /// times its usual time. The host of a virtual machine has then put the CPUs apart, for seconds
    /// or hours, and figures for reading the other's lines would be wrong for the rest of the time.
    Result<bool> apart(const std::string& what, const std::vector<std::uint32_t>& cpus) {
        constexpr double kSeveralTimes = 3;
        const bool share_cache = std::any_of(
            neighbours_.begin(), neighbours_.end(), [&](const CpusAtDistance& neighbours) {
                return neighbours.distance == topo::Distance::cache &&
                       neighbours.cpus[0] == cpus[0];
            });
        if (!share_cache) {
            return false;
        }
        const Result<double> line_ns = run_.line_between({cpus[0], cpus[1]});
        if (!line_ns.ok()) {
            return line_ns.status();
        }
        if (*line_ns <= kSeveralTimes * usual_line_ns_) {
            return false;
        }
        run_.note(
            "{}: a line between CPUs that share a cache took {:.0f} ns, {:.0f} by the costs that "
            "are built in: they are farther apart than that at the moment; not measured",
            what, *line_ns, usual_line_ns_);
        return true;
    }

    /// Skips the phase of that name if the CPUs are apart(). Returns whether it did.
    Result<bool> skips(const std::string& what, const std::vector<std::uint32_t>& cpus) {
        Result<bool> skipped = apart(what, cpus);
        if (skipped.ok() && *skipped) {
            run_.skip_disturbed(what);
        }
        return skipped;
    }

    Status measure_oversubscribed_copies() {
        if (run_.options().quick) { // All lengths are long.
            run_.skip();
            return {};
        }
        return measure_copies(run_, {cpus_[0], cpus_[0]});
    }

    /// Returns two CPUs whose caches are near, or one CPU twice.
    std::vector<std::uint32_t> pair() const {
        for (const CpusAtDistance& neighbours : neighbours_) {
            if (neighbours.distance != topo::Distance::core) {
                return {neighbours.cpus[0], neighbours.cpus[1]};
            }
        }
        return neighbours_.empty()
                   ? std::vector<std::uint32_t>{cpus_[0], cpus_[0]}
                   : std::vector<std::uint32_t>{neighbours_[0].cpus[0], neighbours_[0].cpus[1]};
    }

    Status measure_level(const CpusAtDistance& neighbours) {
        const std::string where(topo::name(neighbours.distance));
        if (const Result<bool> skipped = skips(where, neighbours.cpus); !skipped.ok() || *skipped) {
            return skipped.status();
        }
        std::uint64_t memory_bytes = 0;
        for (const std::uint64_t bytes : kReadBytes) {
            memory_bytes = std::max(memory_bytes, CopyBlocks(bytes).span());
        }
        std::vector<std::byte> target(memory_bytes, std::byte{1});
        Status status =
            run_.rounds(where, on({neighbours.cpus[0], neighbours.cpus[1]}, memory_bytes),
                        [&](Driver& driver, std::uint32_t round) {
                            for (const std::uint64_t bytes : kReadBytes) {
                                if (bytes <= run_.longest(bytes)) {
                                    const CopyBlocks blocks(bytes);
                                    driver.peer_writes(blocks.bytes, blocks.stride, blocks.count);
                                    driver.record({Series::read, 1, round, bytes,
                                                   copy_blocks(target.data(), driver.memory(1),
                                                               blocks, copy_cached)});
                                }
                            }
                            return Status();
                        });
        if (!status.ok()) {
            return status;
        }
        cost::MemoryLevel& level = model().levels[static_cast<std::size_t>(neighbours.distance)];
        const std::string table = "memory.levels." + where;
        level.latency_ns = run_.learn(where, Series::line, table, "latency_ns");
        // CopyBlocks follow one another, so that a processor requests one while it copies another:
        // their times do not include the latency.
        level.per_byte_ns =
            run_.learn_slope(run_.points(where, Series::read), 0, table, "per_byte_ns");
        level.measured = true;
        return {};
    }

    Status measure_contention(const CpusAtDistance& neighbours) {
        const std::string level_name(topo::name(neighbours.distance));
        const std::string where = level_name + " contended";
        const auto readers = static_cast<unsigned>(neighbours.cpus.size()) - 1;
        if (readers < 2) {
            run_.skip();
            run_.note("{}: contention needs two CPUs at this distance from a third; not measured",
                      level_name);
            return {};
        }
        Status status =
            run_.rounds(where, on(neighbours.cpus, kContendedBytes.back()),
                        [&](Driver& driver, std::uint32_t round) {
                            for (const std::uint64_t bytes : kContendedBytes) {
                                if (bytes <= run_.longest(bytes)) {
                                    driver.record({Series::contended, readers, round, bytes,
                                                   driver.contended_read_ns(readers, bytes)});
                                }
                            }
                            return Status();
                        });
        if (!status.ok()) {
            return status;
        }
        cost::MemoryLevel& level = model().levels[static_cast<std::size_t>(neighbours.distance)];
        // With few readers, a link that is not full would look too narrow.
        level.contended_per_byte_ns =
            run_.learn_slope(run_.points(where, Series::contended, readers), level.latency_ns,
                             "memory.levels." + level_name, "contended_per_byte_ns", readers);
        level.contention_measured = true;
        return {};
    }

    static std::string table_of(cost::Cache cache) {
        return fmt::format("memory.caches.{}", cost::name(cache));
    }

    std::uint64_t& capacity(cost::Cache cache) {
        return model().caches[static_cast<std::size_t>(cache)].capacity_bytes;
    }

    void learn_capacities() {
        const auto told = [&](cost::Cache cache, std::uint64_t bytes) {
            if (bytes > 0) {
                capacity(cache) = bytes;
                run_.told(table_of(cache), "capacity_bytes");
            }
        };
        told(cost::Cache::l1,
             static_cast<std::uint64_t>(std::max(::sysconf(_SC_LEVEL1_DCACHE_SIZE), 0L)));
        told(cost::Cache::l2, machine_.l2_bytes());
        told(cost::Cache::memory, machine_.memory_bytes());
        l3_bytes_ = machine_.l3_bytes() > 0 ? machine_.l3_bytes() : capacity(cost::Cache::l3);
    }

    std::uint64_t room() const {
        return run_.options().quick
                   ? kQuickBytesMax
                   : std::min<std::uint64_t>(kWorkingSetMax, shm::memory_budget().available / 8);
    }

    /// Other cores, and other guests of the host, use the last cache, too. What a core finds for
    /// itself counts as its capacity, and half of that as the part that is fast, but at most
    /// sixteen times the L2: in a cache of hundreds of MiB, what calls touch is copied at other
    /// rates than half of the whole would be.
    Status learn_usable_part() {
        const std::vector<std::uint64_t> sets =
            sets_between(2 * capacity(cost::Cache::l2), std::min(l3_bytes_, room()));
        std::uint64_t part = sets.back();
        if (sets.size() > 1) {
            const Result<std::uint64_t> measured = measure_usable_part(sets);
            if (!measured.ok()) {
                return measured.status();
            }
            part = *measured;
        } else {
            run_.skip(); // Hardly longer than the L2, or than the allowed memory.
        }
        if (part == sets.back() && part < whole_lines(l3_bytes_)) {
            return {}; // Longer sets might have shown more.
        }
        capacity(cost::Cache::l3) = part;
        constexpr std::uint64_t kTimesL2 = 16;
        capacity(cost::Cache::l3_part) = std::min(part / 2, kTimesL2 * capacity(cost::Cache::l2));
        for (const cost::Cache cache : {cost::Cache::l3, cost::Cache::l3_part}) {
            run_.derived(table_of(cache), "capacity_bytes");
        }
        return {};
    }

    Result<std::uint64_t> measure_usable_part(const std::vector<std::uint64_t>& sets) {
        const std::string where = "l3 part";
        Vectors vectors(sets.back());
        Status status =
            run_.rounds(where, on(pair(), kCacheLine), [&](Driver& driver, std::uint32_t round) {
                for (const std::uint64_t set : sets) {
                    const double ns = vectors.copy_ns(whole_lines(set / 2));
                    driver.record({Series::copy, 1, round, set, ns});
                }
                return Status();
            });
        if (!status.ok()) {
            return status;
        }
        return usable_part(run_.points(where, Series::copy));
    }

    /// Returns the work for each cache: half of it, as much as a core finds of the last one, and
    /// twice that one for memory; as far as there is room.
    std::vector<CacheWork> cache_works() {
        std::vector<CacheWork> works;
        for (std::size_t i = 0; i < cost::kCacheCount; ++i) {
            const auto cache = static_cast<cost::Cache>(i);
            const std::uint64_t bytes = cache == cost::Cache::memory ? 2 * l3_bytes_
                                        : cache == cost::Cache::l3   ? capacity(cache)
                                                                     : capacity(cache) / 2;
            if (bytes <= room()) {
                works.push_back({cache, whole_lines(bytes)});
            } else {
                run_.note("{}: needs vectors of {}, more than {}; not measured", cost::name(cache),
                          topo::format_bytes(bytes),
                          run_.options().quick ? "--quick takes" : "an eighth of the free memory");
            }
        }
        return works;
    }

    /// Does one round of all the work in one cache, and of the shortest reduction.
    static void work_in(const CacheWork& work, Driver& driver, Vectors& vectors,
                        std::uint32_t round) {
        // Half is for the source, half for what the peer has read.
        const CopyBlocks blocks(whole_lines(work.bytes / 2));
        driver.peer_reads_mine(blocks.bytes, blocks.stride, 1);
        driver.record({Series::reduce, kOperands[0], round, sizeof(double),
                       vectors.reduce_ns(kOperands[0], sizeof(double))});
        const auto time = [&](Series series, std::uint32_t count, double ns) {
            driver.record({series, count, round, work.bytes, ns});
        };
        const auto overwrite = [&](auto copy) {
            const Clock::time_point start = Clock::now();
            copy(driver.memory(0), vectors.at(0), blocks.bytes);
            fence();
            return elapsed_ns(start);
        };
        time(Series::overwrite, 1, overwrite(copy_cached));
        driver.peer_reads_mine(blocks.bytes, blocks.stride, 1);
        time(Series::streaming, 1, overwrite(shm::copy_streaming));
        time(Series::copy, 1, vectors.copy_ns(whole_lines(work.bytes / 2)));
        for (const std::uint32_t operands : kOperands) {
            time(Series::reduce, operands,
                 vectors.reduce_ns(operands, whole_lines(work.bytes / (operands + 1))));
        }
    }

    Status measure_caches() {
        learn_capacities();
        if (Status status = learn_usable_part(); !status.ok()) {
            return status;
        }
        const std::vector<CacheWork> works = cache_works();
        run_.skip(cost::kCacheCount - works.size());
        const Result<bool> far = apart("overwritten lines of a peer", pair());
        if (!far.ok()) {
            return far.status();
        }
        for (const CacheWork& work : works) {
            Vectors vectors(work.bytes, work.cache != cost::Cache::memory);
            const std::string where(cost::name(work.cache));
            Status status = run_.rounds(where, on(pair(), work.bytes / 2),
                                        [&](Driver& driver, std::uint32_t round) {
                                            work_in(work, driver, vectors, round);
                                            return Status();
                                        });
            if (!status.ok()) {
                return status;
            }
            if (&work == &works.front()) {
                model().reduce_fixed_ns =
                    run_.learn(where, Series::reduce, "memory.reduce", "fixed_ns", kOperands[0]);
            }
            learn_rates(work, !*far);
        }
        return {};
    }

    /// Returns the summary of a series that was recorded for every cache.
    const Quartiles& time_in(const CacheWork& work, Series series, std::uint32_t count) const {
        const std::string_view where = cost::name(work.cache);
        const auto found = std::find_if(
            run_.result().points.begin(), run_.result().points.end(), [&](const Point& point) {
                return point.where == where && point.series == series && point.count == count &&
                       point.bytes == work.bytes;
            });
        UCG_ASSERT(found != run_.result().points.end());
        return found->ns;
    }

    /// Learns the rates of a cache, marked as measured by copies of the core's own lines. Without
    /// `overwrites`, rates for a peer's lines stay built in and are reported as such.
    void learn_rates(const CacheWork& work, bool overwrites) {
        cost::CacheRates& rates = model().caches[static_cast<std::size_t>(work.cache)];
        const std::string table = table_of(work.cache);
        const auto half = static_cast<double>(whole_lines(work.bytes / 2));
        const auto learn_copy = [&](Series series, std::string_view key, double& rate) {
            const Quartiles& ns = time_in(work, series, 1);
            rate = ns.median / half;
            run_.fitted(table, key, spread(ns));
        };
        learn_copy(Series::copy, "copy_per_byte_ns", rates.copy_per_byte_ns);
        if (overwrites) {
            learn_copy(Series::overwrite, "overwrite_per_byte_ns", rates.overwrite_per_byte_ns);
            learn_copy(Series::streaming, "streaming_per_byte_ns", rates.streaming_per_byte_ns);
        }
        std::vector<FitPoint> by_operands;
        by_operands.reserve(kOperands.size());
        for (const std::uint32_t operands : kOperands) {
            const double ns =
                time_in(work, Series::reduce, operands).median - model().reduce_fixed_ns;
            by_operands.push_back({static_cast<double>(operands),
                                   std::max(ns, 0.0) / static_cast<double>(whole_lines(
                                                           work.bytes / (operands + 1)))});
        }
        const Line line = fit_line(by_operands);
        rates.reduce_operand_per_byte_ns = line.slope;
        rates.reduce_target_per_byte_ns = line.intercept;
        const double error = fit_error(by_operands, line);
        run_.fitted(table, "reduce_operand_per_byte_ns", error);
        run_.fitted(table, "reduce_target_per_byte_ns", error);
        rates.measured = true;
    }

    Status measure_cma() {
        const std::string where = "cma";
        std::vector<std::byte> target(kCmaBytes.back(), std::byte{1});
        Status status = run_.rounds(
            where, on(pair(), kCmaBytes.back()), [&](Driver& driver, std::uint32_t round) {
                for (const std::uint64_t bytes : kCmaBytes) {
                    driver.peer_writes(bytes, 0, 1);
                    for (const Series series : {Series::cma_written, Series::cma}) {
                        const Result<double> ns = driver.cma_ns(target.data(), bytes);
                        if (!ns.ok()) { // Only the gate is recorded then.
                            return Status();
                        }
                        driver.record({series, 1, round, bytes, *ns});
                    }
                    if (const Result<double> ns = driver.cma_lookup_ns(bytes); ns.ok()) {
                        driver.record({Series::cma_lookup, 1, round, bytes, *ns});
                    }
                }
                return Status();
            });
        if (!status.ok()) {
            return status;
        }
        const std::vector<FitPoint> times = run_.points(where, Series::cma);
        model().cma.permitted = !times.empty();
        run_.told("memory.cma", "permitted");
        model().cma.measured = true;
        if (times.empty()) {
            run_.note(
                "cma: the kernel does not permit process_vm_readv between processes of this user");
            return {};
        }
        cost::CmaModel& cma = model().cma;
        cma.fixed_ns = run_.learn(where, Series::cma, "memory.cma", "fixed_ns");
        cma.per_byte_ns = run_.learn_slope(std::span(times).subspan(1), cma.fixed_ns, "memory.cma",
                                           "per_byte_ns");
        const std::vector<FitPoint> written = run_.points(where, Series::cma_written);
        cma.written_per_byte_ns = run_.learn_slope(std::span(written).subspan(1), cma.fixed_ns,
                                                   "memory.cma", "written_per_byte_ns");
        const std::vector<FitPoint> lookups = run_.points(where, Series::cma_lookup);
        if (lookups.size() > 1) { // Else the kernel has refused them.
            cma.lookup_per_byte_ns =
                run_.learn_slope(std::span(lookups).subspan(1), lookups.front().y, "memory.cma",
                                 "lookup_per_byte_ns");
        }
        return {};
    }

    /// Measures the switch between two processes of one CPU, which is also their gate.
    Status measure_switch() {
        Status status = measure_futex("switch", {cpus_[0], cpus_[0]});
        if (status.ok()) {
            model().wake.yield_switch_ns =
                run_.learn("switch", Series::line, "memory.wake", "yield_switch_ns");
            model().wake.futex_core_ns =
                run_.learn("switch", Series::futex, "memory.wake", "futex_core_ns");
            model().wake.measured = true;
        }
        return status;
    }

    Status measure_wake_across() {
        const std::vector<std::uint32_t> cpus = pair();
        if (cpus[0] == cpus[1]) {
            run_.skip();
            run_.note("wake: waking across needs a second CPU; not measured");
            return {};
        }
        Status status = measure_futex("wake", cpus);
        if (status.ok()) {
            model().wake.futex_across_ns =
                run_.learn("wake", Series::futex, "memory.wake", "futex_across_ns");
            model().wake.across_measured = true;
        }
        return status;
    }

    Status measure_futex(const std::string& where, std::vector<std::uint32_t> cpus) {
        return run_.rounds(where, on(std::move(cpus), kPage),
                           [&](Driver& driver, std::uint32_t round) {
                               constexpr unsigned kWakes = 4;
                               driver.record({Series::futex, 1, round, 0, driver.futex_ns(kWakes)});
                               return Status();
                           });
    }

    const topo::Machine& machine_;
    const std::vector<std::uint32_t>& cpus_;
    std::uint64_t l3_bytes_ = 0; ///< Bytes of the whole cache.
    double usual_line_ns_ = 0;   ///< Between CPUs that share a cache, by the built-in costs.
    std::vector<CpusAtDistance> neighbours_;
    ProbeRun run_;
};

} // namespace

std::uint64_t usable_part(std::span<const FitPoint> copies) {
    constexpr double kSlower = 2;
    UCG_ASSERT(!copies.empty());
    const double first_per_byte = copies.front().y / copies.front().x;
    const FitPoint* last = &copies.front();
    for (const FitPoint& copy : copies) {
        if (copy.y > kSlower * first_per_byte * copy.x) {
            break;
        }
        last = &copy;
    }
    return static_cast<std::uint64_t>(last->x);
}

Result<ProbeResult> probe_memory(const topo::Machine& machine,
                                 const std::vector<std::uint32_t>& cpus,
                                 const cost::MemoryModel& model, const ProbeOptions& options) {
    if (cpus.empty()) {
        return failure(Code::io_error, "the system does not tell which CPUs this process may use");
    }
    return Probe(machine, cpus, model, options).run();
}

} // namespace ucg::tools
