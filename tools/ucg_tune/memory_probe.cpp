#include "tools/ucg_tune/memory_probe.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unistd.h>

#include "shm/budget.hpp"
#include "shm/copy.hpp"
#include "tools/ucg_tune/memory_work.hpp"
#include "tools/ucg_tune/rounds.hpp"

namespace ucg::tools {

namespace {

/// Four times the largest last-level caches of servers; less than a second a round.
constexpr std::uint64_t kWorkingSetMax = std::uint64_t{2} << 30;
constexpr std::uint64_t kQuickBytesMax = 2 << 20;

constexpr std::array<std::uint64_t, 7> kReadBytes = {256,      1 << 10,   4 << 10, 16 << 10,
                                                     64 << 10, 256 << 10, 1 << 20};
constexpr std::array<std::uint64_t, 3> kContendedBytes = {4 << 10, 64 << 10, 1 << 20};
constexpr std::array<std::uint64_t, 4> kCmaBytes = {64, 16 << 10, 128 << 10, 1 << 20};
/// The slope over `fixed_ns`. On a machine so busy that a line took longer than the copies, the
/// longest copy as a whole says what a byte takes.
double per_byte_ns(std::span<const FitPoint> points, double fixed_ns) {
    const double slope = fit_slope(points, fixed_ns);
    return slope > 0 ? slope : points.back().y / points.back().x;
}

/// What is done in one cache: the bytes that a core touches there.
struct CacheWork {
    cost::Cache cache;
    std::uint64_t bytes;
};

class Probe {
  public:
    Probe(const topo::Machine& machine, const std::vector<std::uint32_t>& cpus,
          const cost::MemoryModel& model, const ProbeOptions& options)
        : machine_(machine), cpus_(cpus), options_(options) {
        result_.model = model;
        neighbours_ = neighbours_of(machine, cpus);
        // Levels, company, caches, the kernel's copy, wake-ups on one CPU and across.
        phases_ = 2 * neighbours_.size() + cost::kCacheCount + 3;
    }

    Result<ProbeResult> run() {
        forget_marks();
        Status status;
        const auto then = [&](auto&& phase) { status = status.ok() ? phase() : status; };
        for (const Neighbours& neighbours : neighbours_) {
            then([&] { return measure_level(neighbours); });
            then([&] { return measure_contention(neighbours); });
        }
        then([&] { return measure_caches(); });
        then([&] { return measure_cma(); });
        then([&] { return measure_switch(); });
        then([&] { return measure_wake_across(); });
        fit_defaults();
        return status.ok() ? Result<ProbeResult>(std::move(result_)) : status;
    }

  private:
    cost::MemoryModel& model() { return result_.model; }

    void fitted(const std::string& table, std::string_view key, double error) {
        result_.figures[fmt::format("{}.{}", table, key)] = {Origin::fitted, error};
    }
    void told(const std::string& table, std::string_view key) {
        result_.figures[fmt::format("{}.{}", table, key)] = {Origin::told, 0};
    }

    template <typename... Args>
    void note(fmt::format_string<Args...> format, Args&&... args) {
        result_.notes.push_back(fmt::format(format, std::forward<Args>(args)...));
    }

    /// What was measured before, perhaps elsewhere, is a default now.
    void forget_marks() {
        for (cost::MemoryLevel& level : model().levels) {
            level.measured = level.contention_measured = false;
        }
        for (cost::CacheRates& rates : model().caches) {
            rates.measured = false;
        }
        model().cma.measured = false;
        model().wake.measured = model().wake.across_measured = false;
    }

    /// What was not measured is known relative to what was: farther is not nearer, and a link that
    /// serves some readers at full speed by default does so at any speed.
    void fit_defaults() {
        for (std::size_t i = 0; i < cost::kMemoryLevelCount; ++i) {
            const cost::MemoryLevel& standard = cost::default_memory_model().levels[i];
            cost::MemoryLevel& level = model().levels[i];
            if (i > 0 && !level.measured) {
                const cost::MemoryLevel& nearer = model().levels[i - 1];
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
                             [&](const Neighbours& n) { return n.distance == distance; })) {
                note("{}: no two CPUs that this process may use are so far apart; not measured",
                     topo::name(distance));
            }
        }
    }

    Clock::time_point next_deadline() const {
        const std::chrono::duration<double> share(options_.seconds / static_cast<double>(phases_));
        return Clock::now() + std::chrono::duration_cast<Clock::duration>(share);
    }

    /// Two CPUs whose caches are near, or one CPU twice.
    std::vector<std::uint32_t> pair() const {
        for (const Neighbours& neighbours : neighbours_) {
            if (neighbours.distance != topo::Distance::core) {
                return {neighbours.cpus[0], neighbours.cpus[1]};
            }
        }
        return neighbours_.empty()
                   ? std::vector<std::uint32_t>{cpus_[0], cpus_[0]}
                   : std::vector<std::uint32_t>{neighbours_[0].cpus[0], neighbours_[0].cpus[1]};
    }

    using RoundFn = std::function<Status(Driver&, std::uint32_t)>;

    /// A crew on these CPUs that does `round` again and again; adds the points of `where`.
    Status rounds(const std::string& where, std::vector<std::uint32_t> cpus,
                  std::uint64_t memory_bytes, const RoundFn& round) {
        options_.progress(fmt::format("{} ({} of {})", where, ++phase_, phases_));
        const CrewOptions crew = {std::move(cpus), memory_bytes, next_deadline()};
        Result<std::vector<Sample>> samples = run_crew(crew, [&](Driver& driver) {
            return run_rounds(driver, crew.deadline,
                              [&](std::uint32_t number) { return round(driver, number); });
        });
        if (!samples.ok()) {
            return samples.status();
        }
        add_points(where, *samples);
        return {};
    }

    void add_points(const std::string& where, const std::vector<Sample>& samples) {
        Gates gates;
        for (const Sample& sample : samples) {
            if (sample.series == Series::line) {
                gates.resize(std::max<std::size_t>(gates.size(), sample.round + 1), 0);
                gates[sample.round] = std::max(gates[sample.round], sample.ns);
            }
        }
        const std::size_t steady = steady_rounds(gates);
        const bool all = steady < std::min(kSteadyRoundsMin, gates.size());
        const double limit = kSteady * *std::min_element(gates.begin(), gates.end());
        if (steady < gates.size()) {
            note("{}: {} of {} rounds {}: lines took up to {:.0f} ns, {:.0f} in the best", where,
                 all ? steady : gates.size() - steady, gates.size(),
                 all ? "were steady, too few, so all of them count"
                     : "were not steady and left out",
                 *std::max_element(gates.begin(), gates.end()), limit / kSteady);
        }
        std::map<std::tuple<Series, std::uint32_t, std::uint64_t>, std::vector<double>> groups;
        for (const Sample& sample : samples) {
            if (all || gates[sample.round] <= limit) {
                groups[{sample.series, sample.count, sample.bytes}].push_back(sample.ns);
            }
        }
        for (auto& [key, times_ns] : groups) {
            result_.points.push_back({where, std::get<0>(key), std::get<1>(key), std::get<2>(key),
                                      summarize(std::move(times_ns))});
        }
    }

    /// The points of one series of the phase that `where` names, by bytes.
    std::vector<FitPoint> points(const std::string& where, Series series,
                                 std::uint32_t count = 1) const {
        std::vector<FitPoint> found;
        for (const Point& point : result_.points) {
            if (point.where == where && point.series == series && point.count == count) {
                found.push_back({static_cast<double>(point.bytes), point.ns.median});
            }
        }
        return found;
    }

    /// The median of the shortest of one series of the phase that `where` names, as a figure of the
    /// profile.
    double learn(const std::string& where, Series series, const std::string& table,
                 std::string_view key, std::uint32_t count = 1) {
        const auto found =
            std::find_if(result_.points.begin(), result_.points.end(), [&](const Point& point) {
                return point.where == where && point.series == series && point.count == count;
            });
        UCG_ASSERT(found != result_.points.end());
        fitted(table, key, spread(found->ns));
        return found->ns.median;
    }

    /// What a byte takes beyond `fixed_ns`, as a figure of the profile. `shared_by`: so many times.
    double learn_slope(std::span<const FitPoint> points, double fixed_ns, const std::string& table,
                       std::string_view key, unsigned shared_by = 1) {
        const double slope = per_byte_ns(points, fixed_ns);
        fitted(table, key, fit_error(points, {fixed_ns, slope}));
        return slope / shared_by;
    }

    std::uint64_t longest(std::uint64_t bytes) const {
        return options_.quick ? std::min<std::uint64_t>(bytes, 64 << 10) : bytes;
    }

    Status measure_level(const Neighbours& neighbours) {
        const std::string where(topo::name(neighbours.distance));
        std::uint64_t memory_bytes = 0;
        for (const std::uint64_t bytes : kReadBytes) {
            memory_bytes = std::max(memory_bytes, Blocks(bytes).span());
        }
        std::vector<std::byte> target(memory_bytes, std::byte{1});
        Status status =
            rounds(where, {neighbours.cpus[0], neighbours.cpus[1]}, memory_bytes,
                   [&](Driver& driver, std::uint32_t round) {
                       for (const std::uint64_t bytes : kReadBytes) {
                           if (bytes <= longest(bytes)) {
                               const Blocks blocks(bytes);
                               driver.peer_writes(blocks.bytes, blocks.stride, blocks.count);
                               driver.record({Series::read, 1, round, bytes,
                                              copy_blocks(target.data(), driver.memory(1), blocks,
                                                          copy_cached)});
                           }
                       }
                       return Status();
                   });
        if (!status.ok()) {
            return status;
        }
        cost::MemoryLevel& level = model().levels[static_cast<std::size_t>(neighbours.distance)];
        const std::string table = "memory.levels." + where;
        level.latency_ns = learn(where, Series::line, table, "latency_ns");
        level.per_byte_ns =
            learn_slope(points(where, Series::read), level.latency_ns, table, "per_byte_ns");
        level.measured = true;
        return {};
    }

    Status measure_contention(const Neighbours& neighbours) {
        const std::string level_name(topo::name(neighbours.distance));
        const std::string where = level_name + " contended";
        const auto readers = static_cast<unsigned>(neighbours.cpus.size()) - 1;
        if (readers < 2) {
            ++phase_;
            note("{}: contention needs two CPUs at this distance from a third; not measured",
                 level_name);
            return {};
        }
        Status status =
            rounds(where, neighbours.cpus, kContendedBytes.back(),
                   [&](Driver& driver, std::uint32_t round) {
                       for (const std::uint64_t bytes : kContendedBytes) {
                           if (bytes <= longest(bytes)) {
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
        // As many readers as there are: with few, a link that is not full would look too narrow.
        level.contended_per_byte_ns =
            learn_slope(points(where, Series::contended, readers), level.latency_ns,
                        "memory.levels." + level_name, "contended_per_byte_ns", readers);
        level.contention_measured = true;
        return {};
    }

    static std::string table_of(cost::Cache cache) {
        return fmt::format("memory.caches.{}", cost::name(cache));
    }

    void learn_capacities() {
        const long l1 = ::sysconf(_SC_LEVEL1_DCACHE_SIZE);
        const std::array<std::uint64_t, 3> found = {l1 > 0 ? static_cast<std::uint64_t>(l1) : 0,
                                                    machine_.l2_bytes(), machine_.l3_bytes()};
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (found[i] > 0) {
                model().caches[i].capacity_bytes = found[i];
                told(table_of(static_cast<cost::Cache>(i)), "capacity_bytes");
            }
        }
        model().caches.back().capacity_bytes = machine_.memory_bytes();
        told(table_of(cost::Cache::memory), "capacity_bytes");
    }

    /// Half of each cache, and four times the last one for memory; as far as there is room.
    std::vector<CacheWork> cache_works() {
        const std::uint64_t room =
            options_.quick
                ? kQuickBytesMax
                : std::min<std::uint64_t>(kWorkingSetMax, shm::memory_budget().available / 8);
        std::vector<CacheWork> works;
        for (std::size_t i = 0; i < cost::kCacheCount; ++i) {
            const auto cache = static_cast<cost::Cache>(i);
            const std::uint64_t bytes = cache == cost::Cache::memory
                                            ? 4 * model().cache(cost::Cache::l3).capacity_bytes
                                            : model().cache(cache).capacity_bytes / 2;
            if (bytes <= room) {
                works.push_back({cache, whole_lines(bytes)});
            } else {
                note("{}: needs vectors of {}, more than {}; not measured", cost::name(cache),
                     topo::format_bytes(bytes),
                     options_.quick ? "--quick takes" : "an eighth of the free memory");
            }
        }
        return works;
    }

    /// One round of all that is done in one cache, and of the shortest reduction.
    static void work_in(const CacheWork& work, Driver& driver, Vectors& vectors,
                        std::uint32_t round) {
        // Half for the source, half for what the peer has read.
        const Blocks blocks(whole_lines(work.bytes / 2));
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
        const std::vector<CacheWork> works = cache_works();
        phase_ += cost::kCacheCount - works.size();
        for (const CacheWork& work : works) {
            Vectors vectors(work.bytes);
            const std::string where(cost::name(work.cache));
            Status status =
                rounds(where, pair(), work.bytes / 2, [&](Driver& driver, std::uint32_t round) {
                    work_in(work, driver, vectors, round);
                    return Status();
                });
            if (!status.ok()) {
                return status;
            }
            if (&work == &works.front()) {
                model().reduce_fixed_ns =
                    learn(where, Series::reduce, "memory.reduce", "fixed_ns", kOperands[0]);
            }
            learn_rates(work);
        }
        return {};
    }

    /// The point of a series that was recorded for every cache.
    const Summary& time_in(const CacheWork& work, Series series, std::uint32_t count) const {
        const std::string_view where = cost::name(work.cache);
        const auto found =
            std::find_if(result_.points.begin(), result_.points.end(), [&](const Point& point) {
                return point.where == where && point.series == series && point.count == count &&
                       point.bytes == work.bytes;
            });
        UCG_ASSERT(found != result_.points.end());
        return found->ns;
    }

    void learn_rates(const CacheWork& work) {
        cost::CacheRates& rates = model().caches[static_cast<std::size_t>(work.cache)];
        const std::string table = table_of(work.cache);
        const auto half = static_cast<double>(whole_lines(work.bytes / 2));
        const auto learn_copy = [&](Series series, std::string_view key, double& rate) {
            const Summary& ns = time_in(work, series, 1);
            rate = ns.median / half;
            fitted(table, key, spread(ns));
        };
        learn_copy(Series::copy, "copy_per_byte_ns", rates.copy_per_byte_ns);
        learn_copy(Series::overwrite, "overwrite_per_byte_ns", rates.overwrite_per_byte_ns);
        learn_copy(Series::streaming, "streaming_per_byte_ns", rates.streaming_per_byte_ns);
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
        fitted(table, "reduce_operand_per_byte_ns", error);
        fitted(table, "reduce_target_per_byte_ns", error);
        rates.measured = true;
    }

    Status measure_cma() {
        const std::string where = "cma";
        std::vector<std::byte> target(kCmaBytes.back(), std::byte{1});
        Status status =
            rounds(where, pair(), kCmaBytes.back(), [&](Driver& driver, std::uint32_t round) {
                for (const std::uint64_t bytes : kCmaBytes) {
                    driver.peer_writes(bytes, 0, 1);
                    for (const Series series : {Series::cma_written, Series::cma}) {
                        const Result<double> ns = driver.cma_ns(target.data(), bytes);
                        if (!ns.ok()) { // Nothing but the gate is recorded then.
                            return Status();
                        }
                        driver.record({series, 1, round, bytes, *ns});
                    }
                }
                return Status();
            });
        if (!status.ok()) {
            return status;
        }
        const std::vector<FitPoint> times = points(where, Series::cma);
        model().cma.permitted = !times.empty();
        told("memory.cma", "permitted");
        model().cma.measured = true;
        if (times.empty()) {
            note("cma: the kernel does not permit process_vm_readv between processes of this user");
            return {};
        }
        cost::CmaModel& cma = model().cma;
        cma.fixed_ns = learn(where, Series::cma, "memory.cma", "fixed_ns");
        cma.per_byte_ns =
            learn_slope(std::span(times).subspan(1), cma.fixed_ns, "memory.cma", "per_byte_ns");
        const std::vector<FitPoint> written = points(where, Series::cma_written);
        cma.written_per_byte_ns = learn_slope(std::span(written).subspan(1), cma.fixed_ns,
                                              "memory.cma", "written_per_byte_ns");
        return {};
    }

    /// Two processes of one CPU: their gate is the switch itself.
    Status measure_switch() {
        Status status = measure_futex("switch", {cpus_[0], cpus_[0]});
        if (status.ok()) {
            model().wake.yield_switch_ns =
                learn("switch", Series::line, "memory.wake", "yield_switch_ns");
            model().wake.futex_core_ns =
                learn("switch", Series::futex, "memory.wake", "futex_core_ns");
            model().wake.measured = true;
        }
        return status;
    }

    Status measure_wake_across() {
        const std::vector<std::uint32_t> cpus = pair();
        if (cpus[0] == cpus[1]) {
            ++phase_;
            note("wake: waking across needs a second CPU; not measured");
            return {};
        }
        Status status = measure_futex("wake", cpus);
        if (status.ok()) {
            model().wake.futex_across_ns =
                learn("wake", Series::futex, "memory.wake", "futex_across_ns");
            model().wake.across_measured = true;
        }
        return status;
    }

    Status measure_futex(const std::string& where, std::vector<std::uint32_t> cpus) {
        return rounds(where, std::move(cpus), kPage, [&](Driver& driver, std::uint32_t round) {
            constexpr unsigned kWakes = 4;
            driver.record({Series::futex, 1, round, 0, driver.futex_ns(kWakes)});
            return Status();
        });
    }

    const topo::Machine& machine_;
    const std::vector<std::uint32_t>& cpus_;
    const ProbeOptions& options_;
    std::vector<Neighbours> neighbours_;
    std::size_t phases_ = 0;
    std::size_t phase_ = 0;
    ProbeResult result_;
};

} // namespace

std::vector<Neighbours> neighbours_of(const topo::Machine& machine,
                                      const std::vector<std::uint32_t>& cpus) {
    std::vector<topo::Place> places;
    places.reserve(cpus.size());
    for (const std::uint32_t cpu : cpus) {
        places.push_back(machine.place_of({cpu}));
    }
    std::vector<Neighbours> all;
    for (std::size_t d = 0; d < cost::kMemoryLevelCount; ++d) {
        const auto distance = static_cast<topo::Distance>(d);
        Neighbours best = {distance, {}};
        for (std::size_t i = 0; i < cpus.size(); ++i) {
            Neighbours one = {distance, {cpus[i]}};
            for (std::size_t j = 0; j < cpus.size(); ++j) {
                if (i != j && topo::distance(places[i], places[j]) == distance) {
                    one.cpus.push_back(cpus[j]);
                }
            }
            if (one.cpus.size() > best.cpus.size()) {
                best = std::move(one);
            }
        }
        if (best.cpus.size() > 1) {
            all.push_back(std::move(best));
        }
    }
    return all;
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
