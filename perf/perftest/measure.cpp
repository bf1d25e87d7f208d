#include "perf/perftest/measure.hpp"

#include <algorithm>
#include <cstring>

#include "perf/perftest/collectives/collective_name.hpp"

namespace ucg::perftest {

namespace {

constexpr double kWarmupSeconds = 0.1; ///< As in ucx_perftest.
constexpr std::uint64_t kProbeIterations = 4;
constexpr double kMoved = 1.3; ///< As in ucg_tune's check for steady rounds, kSteady.
constexpr std::uint64_t kFittedMin = 10;
constexpr std::uint64_t kFittedMax = 1'000'000;
/// The number of times that ranks of several hosts exchange, all ranks together.
constexpr std::size_t kExchangedTimes = std::size_t{1} << 20;

std::function<void()> progress_of(Test& test) {
    return [&test] { test.progress(); };
}

/// Returns the largest of the values that the ranks give.
Result<double> largest(Runtime& runtime, Test& test, double mine) {
    const std::string_view bytes(reinterpret_cast<const char*>(&mine), sizeof(mine));
    const Result<std::vector<std::string>> all = runtime.exchange(bytes, progress_of(test));
    if (!all.ok()) {
        return all.status();
    }
    double most = mine;
    for (const std::string& text : *all) {
        double theirs = 0;
        std::memcpy(&theirs, text.data(), std::min(text.size(), sizeof(theirs)));
        most = std::max(most, theirs);
    }
    return most;
}

/// Runs this number of iterations, and returns their mean time on the slowest rank, with what is
/// not timed between them.
Result<double> run_round(Runtime& runtime, Test& test, std::uint64_t iterations) {
    Recorder recorder(iterations);
    if (Status status = measure(runtime, test, recorder); !status.ok()) {
        return status;
    }
    return largest(runtime, test,
                   nanoseconds(recorder.elapsed_in_all()) * 1e-9 / static_cast<double>(iterations));
}

/// Returns the slowest rank's times, for ranks that share no memory. Each gives its latest times.
Result<std::vector<float>> slowest_by_exchange(Runtime& runtime, std::vector<float> times) {
    const std::size_t kept =
        std::max<std::size_t>(16, kExchangedTimes / static_cast<std::size_t>(runtime.size()));
    if (times.size() > kept) {
        times.erase(times.begin(), times.end() - static_cast<std::ptrdiff_t>(kept));
    }
    const Result<std::vector<std::string>> all = runtime.exchange(
        {reinterpret_cast<const char*>(times.data()), times.size() * sizeof(float)});
    if (!all.ok()) {
        return all.status();
    }
    for (const std::string& text : *all) {
        std::vector<float> theirs(std::min(times.size(), text.size() / sizeof(float)));
        std::memcpy(theirs.data(), text.data(), theirs.size() * sizeof(float));
        std::transform(theirs.begin(), theirs.end(), times.begin(), times.begin(),
                       [](float left, float right) { return std::max(left, right); });
    }
    return times;
}

/// Returns what memory allows for this test. Collective.
Limits limits_of(Board& board, double round_trip, const Parameters& parameters, Rank size) {
    Limits limits;
    const double after = board.round_trip();
    limits.round_trip = (round_trip + after) / 2;
    // Where ranks share processors the round trip differs each time.
    limits.moved =
        !board.yields() && std::max(round_trip, after) > kMoved * std::min(round_trip, after);
    const CollectiveShape& shape = *parse_collective_name(parameters.test)->shape;
    limits.least_bytes = least_bytes(shape, size, parameters.bytes());
    if (limits.least_bytes > 0) {
        const double share = limits.least_bytes / size;
        limits.rate = board.copy_rate(static_cast<std::uint64_t>(share)) * size;
        limits.least_seconds = limits.least_bytes / limits.rate;
    }
    return limits;
}

/// Returns what the links between hosts allow. Collective.
Result<Limits> limits_of(HostConnections& links, double round_trip, const Parameters& parameters) {
    Limits limits = {.between_hosts = true};
    const Result<double> after = links.round_trip();
    if (!after.ok()) {
        return after.status();
    }
    limits.round_trip = std::min(round_trip, *after); // Queues may still hold earlier messages.
    const CollectiveShape& shape = *parse_collective_name(parameters.test)->shape;
    const Rank root = shape.rooted ? parameters.collective.root : 0;
    limits.least_bytes = least_link_bytes(shape, links.hosts(), root, parameters.bytes());
    if (limits.least_bytes > 0) {
        const Result<double> rate = links.rate(static_cast<std::uint64_t>(limits.least_bytes));
        if (!rate.ok()) {
            return rate.status();
        }
        limits.rate = *rate;
        limits.least_seconds = limits.least_bytes / limits.rate;
    }
    return limits;
}

Result<Limits> limits_of(const Yardsticks& yardsticks, double round_trip,
                         const Parameters& parameters, Rank size) {
    if (yardsticks.links != nullptr) {
        return limits_of(*yardsticks.links, round_trip, parameters);
    }
    return yardsticks.board == nullptr || size < 2
               ? Limits()
               : limits_of(*yardsticks.board, round_trip, parameters, size);
}

} // namespace

Status measure(Runtime& runtime, Test& test, Recorder& recorder) {
    if (Status status = runtime.barrier(progress_of(test)); !status.ok()) {
        return status;
    }
    recorder.start();
    if (Status status = test.run(recorder); !status.ok()) {
        return status;
    }
    return runtime.barrier(progress_of(test));
}

Result<double> warm_up(Runtime& runtime, Test& test, const Parameters& parameters) {
    const Ticks start = read_unordered();
    double once = 0;
    for (std::uint64_t done = 0, round = 1; done < parameters.warmup; done += round, round *= 2) {
        Result<double> mean = run_round(runtime, test, round);
        if (!mean.ok()) {
            return mean;
        }
        once = *mean;
        Result<double> passed =
            largest(runtime, test, nanoseconds(read_unordered() - start) * 1e-9);
        if (!passed.ok()) {
            return passed;
        }
        if (*passed > kWarmupSeconds) {
            break;
        }
    }
    return once;
}

Result<std::uint64_t> iterations_for(Runtime& runtime, Test& test, const Parameters& parameters,
                                     double seconds) {
    const bool is_collective = parse_collective_name(parameters.test).has_value();
    if (!is_collective || !parameters.collective.fits_seconds) {
        return parameters.iterations > 0 ? parameters.iterations
                                         : std::numeric_limits<std::uint64_t>::max();
    }
    if (seconds <= 0) {
        const Result<double> probed = run_round(runtime, test, kProbeIterations);
        if (!probed.ok()) {
            return probed.status();
        }
        seconds = *probed;
    }
    const double fitting = parameters.collective.seconds / std::max(seconds, 1e-9);
    return std::clamp(static_cast<std::uint64_t>(fitting), kFittedMin, kFittedMax);
}

Result<double> Yardsticks::round_trip() const {
    if (links != nullptr) {
        return links->round_trip();
    }
    return board != nullptr ? board->round_trip() : 0;
}

Result<CollectiveRow> collective_row(Runtime& runtime, const Yardsticks& yardsticks,
                                     double round_trip, const Parameters& parameters,
                                     const Recorder& recorder) {
    std::vector<float> mine;
    for (const Ticks ticks : recorder.times()) {
        mine.push_back(static_cast<float>(nanoseconds(ticks)));
    }
    const Result<std::vector<float>> slowest = yardsticks.board != nullptr
                                                   ? Result(yardsticks.board->slowest(mine))
                                                   : slowest_by_exchange(runtime, mine);
    if (!slowest.ok()) {
        return slowest.status();
    }
    std::vector<double> seconds;
    for (const float time : *slowest) {
        seconds.push_back(time * 1e-9);
    }
    const CollectiveShape& shape = *parse_collective_name(parameters.test)->shape;
    CollectiveRow row;
    row.bytes = shape.type == UCG_COLL_BARRIER ? 0 : parameters.bytes();
    row.iterations = recorder.iterations();
    row.summary = summarize(std::move(seconds), parameters.percentile);
    row.algorithm_bandwidth = algorithm_bytes(shape, runtime.size(), row.bytes) / row.summary.asked;
    row.bus_bandwidth = row.algorithm_bandwidth * bus_factor(shape, runtime.size());
    const Result<Limits> limits = limits_of(yardsticks, round_trip, parameters, runtime.size());
    if (!limits.ok()) {
        return limits.status();
    }
    row.limits = *limits;
    return row;
}

} // namespace ucg::perftest
