#include "tools/ucg_tune/probe_run.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/ucg_tune/rounds.hpp"

namespace ucg::tools {

double per_byte_ns(std::span<const FitPoint> points, double fixed_ns) {
    const double slope = fit_slope(points, fixed_ns);
    return slope > 0 ? slope : points.back().y / points.back().x;
}

/// The phases that are left, this one included, share the time that is left. A phase takes longer
/// than its share where three rounds do, so that those behind it get less, but not next to nothing.
Clock::time_point ProbeRun::next_deadline() const {
    constexpr double kLeastPart = 0.3; // Of an even share.
    const double even = options_.seconds / static_cast<double>(phases_);
    const double left =
        options_.seconds - std::chrono::duration<double>(Clock::now() - start_).count();
    const double share =
        std::max(left / static_cast<double>(phases_ - phase_ + 1), kLeastPart * even);
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(share));
}

Status ProbeRun::rounds(const std::string& where, CrewOptions crew, const RoundFn& round,
                        std::span<const std::string> lane_names) {
    UCG_ASSERT(lane_names.size() == crew.lanes.size());
    options_.progress(fmt::format("{} ({} of {})", where, ++phase_, phases_));
    const Result<double> line_ns = line_between({crew.cpus[0], crew.cpus[1]});
    if (!line_ns.ok()) {
        return line_ns.status();
    }
    crew.deadline = next_deadline();
    Result<std::vector<Sample>> samples = run_crew(crew, [&](Driver& driver) {
        return run_rounds(driver, crew.deadline, *line_ns,
                          [&](std::uint32_t number) { return round(driver, number); });
    });
    if (!samples.ok()) {
        return samples.status();
    }
    add_points(where, *samples, lane_names, *line_ns);
    return {};
}

/// The time suffices for one visit to a near state, if there are any: the CPUs of a virtual machine
/// are near some thirty times a second, or not for minutes.
Result<double> ProbeRun::line_between(const Pair& cpus) {
    const auto known = lines_ns_.find(cpus);
    if (known != lines_ns_.end()) {
        return known->second;
    }
    CrewOptions crew = {.cpus = {cpus.first, cpus.second}, .deadline = {}};
    const double seconds = std::min(0.2, options_.seconds / 20);
    crew.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(seconds));
    const Result<std::vector<Sample>> samples = run_crew(crew, [&](Driver& driver) {
        driver.record({Series::line, 1, 0, 0, best_line_ns(driver, crew.deadline)});
        return Status();
    });
    if (!samples.ok()) {
        return samples.status();
    }
    return lines_ns_.emplace(cpus, samples->front().ns).first->second;
}

void ProbeRun::add_points(const std::string& where, const std::vector<Sample>& samples,
                          std::span<const std::string> lane_names, double line_ns) {
    Gates gates;
    for (const Sample& sample : samples) {
        if (sample.series == Series::line) {
            gates.resize(std::max<std::size_t>(gates.size(), sample.round + 1), 0);
            gates[sample.round] = std::max(gates[sample.round], sample.ns);
        }
    }
    const std::size_t steady = steady_rounds(gates, line_ns);
    const bool all = steady < std::min(kSteadyRoundsMin, gates.size());
    if (all) {
        disturbed_.insert(where);
    }
    const double limit = steady_limit(gates, line_ns);
    if (steady < gates.size()) {
        note("{}: {} of {} rounds {}: lines took up to {:.0f} ns, {:.0f} in the best", where,
             all ? steady : gates.size() - steady, gates.size(),
             all ? "were steady, too few, so all of them count" : "were not steady and left out",
             *std::max_element(gates.begin(), gates.end()), limit / kSteady);
    }
    std::map<std::tuple<Series, std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<double>>
        groups;
    for (const Sample& sample : samples) {
        if (all || gates[sample.round] <= limit) {
            groups[{sample.series, sample.lane, sample.count, sample.bytes}].push_back(sample.ns);
        }
    }
    for (auto& [key, times_ns] : groups) {
        const bool message = std::get<0>(key) >= Series::one_way;
        result_.points.push_back({message ? lane_names[std::get<1>(key)] : where, std::get<0>(key),
                                  std::get<2>(key), std::get<3>(key),
                                  summarize(std::move(times_ns))});
    }
}

std::vector<FitPoint> ProbeRun::points(std::string_view where, Series series,
                                       std::uint32_t count) const {
    std::vector<FitPoint> found;
    for (const Point& point : result_.points) {
        if (point.where == where && point.series == series && point.count == count) {
            found.push_back({static_cast<double>(point.bytes), point.ns.median});
        }
    }
    return found;
}

const Quartiles& ProbeRun::shortest(std::string_view where, Series series,
                                    std::uint32_t count) const {
    const auto found =
        std::find_if(result_.points.begin(), result_.points.end(), [&](const Point& point) {
            return point.where == where && point.series == series && point.count == count;
        });
    UCG_ASSERT(found != result_.points.end());
    return found->ns;
}

double ProbeRun::learn(std::string_view where, Series series, std::string_view table,
                       std::string_view key, std::uint32_t count) {
    const Quartiles& ns = shortest(where, series, count);
    fitted(table, key, spread(ns));
    return ns.median;
}

double ProbeRun::learn_slope(std::span<const FitPoint> points, double fixed_ns,
                             std::string_view table, std::string_view key, unsigned shared_by) {
    const double slope = per_byte_ns(points, fixed_ns);
    fitted(table, key, fit_error(points, {fixed_ns, slope}));
    return slope / shared_by;
}

} // namespace ucg::tools
