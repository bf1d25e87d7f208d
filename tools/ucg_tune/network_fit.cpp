#include "tools/ucg_tune/network_fit.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace ucg::tools {

namespace {

using Statistic = double (*)(const Box&);

double minimum_of(const Box& box) {
    return box.minimum;
}
double median_of(const Box& box) {
    return box.median;
}

std::uint64_t shortest(std::span<const Multicast> multicasts) {
    std::uint64_t bytes = UINT64_MAX;
    for (const Multicast& each : multicasts) {
        bytes = std::min(bytes, each.bytes);
    }
    return bytes;
}

/// Returns half of the round trip of a single message of the shortest length, or of the shortest
/// round trip of all, where noise has made that one shorter: no time one way is then negative.
double answer_ns(std::span<const Multicast> multicasts, Statistic statistic) {
    double least = std::numeric_limits<double>::max();
    for (const Multicast& each : multicasts) {
        if (each.sending == Sending::nonblocking) {
            least = std::min(least, statistic(box_of(each.round_trip_ns)));
        }
    }
    return least / 2;
}

std::vector<FitPoint> points_of(std::span<const Multicast> multicasts, std::uint64_t bytes,
                                double answer, Statistic statistic) {
    std::vector<FitPoint> points;
    for (const Multicast& each : multicasts) {
        if (each.sending == Sending::nonblocking && each.bytes == bytes) {
            const double round_trip = statistic(box_of(each.round_trip_ns));
            points.push_back(
                {static_cast<double>(each.messages), one_way_ns(each, round_trip, answer)});
        }
    }
    return points;
}

cost::NetworkPostal fit_one(std::span<const Multicast> multicasts, double answer,
                            Statistic statistic) {
    const std::uint64_t least = shortest(multicasts);
    const Line first = fit_line(points_of(multicasts, least, answer, statistic));
    std::set<std::uint64_t> lengths;
    for (const Multicast& each : multicasts) {
        lengths.insert(each.bytes);
    }
    // The slope at n bytes is alpha_r + n beta. alpha_p comes from the shortest messages alone, for
    // in a line of long messages it is a small difference of large numbers.
    std::vector<FitPoint> slopes;
    for (const std::uint64_t bytes : lengths) {
        const std::vector<FitPoint> points = points_of(multicasts, bytes, answer, statistic);
        const double slope = fit_slope(points, first.intercept);
        if (bytes != least && slope > 0) {
            slopes.push_back({static_cast<double>(bytes - least), slope});
        }
    }
    const double beta = fit_slope(slopes, first.slope);
    return {.alpha_p_ns = first.intercept,
            .alpha_r_ns = std::max(first.slope - static_cast<double>(least) * beta, 0.0),
            .beta_ns_per_byte = beta,
            .measured = true};
}

/// Returns the slope of the time that starting messages takes, over their number.
double fit_overhead(std::span<const Multicast> multicasts) {
    const std::uint64_t least = shortest(multicasts);
    std::vector<FitPoint> points;
    for (const Multicast& each : multicasts) {
        const double issue = box_of(each.issue_ns).median;
        if (each.sending == Sending::nonblocking && each.bytes == least && issue > 0) {
            points.push_back({static_cast<double>(each.messages), issue});
        }
    }
    return points.empty() ? 0 : fit_slope(points, 0);
}

} // namespace

std::string_view name(Sending sending) {
    return sending == Sending::nonblocking ? "nonblocking" : "blocking";
}

Box box_of(std::vector<double> samples) {
    if (samples.empty()) {
        return {};
    }
    const Quartiles summary = summarize(samples);
    const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
    return {*least, summary.low, summary.median, summary.high, *most};
}

namespace {

/// Returns the median of the batches without the first; 0 of fewer than two batches.
double median_of_later(const std::vector<double>& batches) {
    return batches.size() < 2
               ? 0
               : box_of(std::vector<double>(batches.begin() + 1, batches.end())).median;
}

} // namespace

double stream_gap_ns(const StreamTimes& stream) {
    return stream.batch_ns.size() < 2
               ? 0
               : median_of_later(stream.batch_ns) / static_cast<double>(stream.batch_bytes);
}

double contention(const PairwiseTimes& exchange, double gap_ns) {
    const double alone_ns = gap_ns * static_cast<double>(exchange.bytes);
    const double together_ns = median_of_later(exchange.batch_ns);
    return exchange.ranks < 3 || alone_ns <= 0 || together_ns <= 0
               ? 0
               : std::max(together_ns / alone_ns, 1.0);
}

double one_way_ns(const Multicast& multicast, double round_trip_ns, double answer_ns) {
    return multicast.sending == Sending::blocking ? round_trip_ns / 2 : round_trip_ns - answer_ns;
}

NetworkFit fit_network(std::span<const Multicast> multicasts) {
    NetworkFit fit;
    fit.answer_minimum_ns = answer_ns(multicasts, minimum_of);
    fit.answer_median_ns = answer_ns(multicasts, median_of);
    fit.costs.minimum = fit_one(multicasts, fit.answer_minimum_ns, minimum_of);
    fit.costs.median = fit_one(multicasts, fit.answer_median_ns, median_of);
    fit.overhead_ns = fit_overhead(multicasts);
    for (const auto& [costs, what] :
         {std::pair(fit.costs.minimum, "minimum"), std::pair(fit.costs.median, "median")}) {
        for (const auto& [value, parameter] :
             {std::pair(costs.alpha_r_ns, "alpha_r"), std::pair(costs.beta_ns_per_byte, "beta")}) {
            if (value == 0) {
                fit.notes.push_back(fmt::format(
                    "{}: {} cannot be told from noise, and the profile keeps what it said; let the "
                    "machine be idle, or measure longer, or with longer messages",
                    what, parameter));
            }
        }
    }
    return fit;
}

} // namespace ucg::tools
