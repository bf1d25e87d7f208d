// Summaries of the rounds of one measurement, and fits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace ucg::tools {

/// Median and quartiles, in the unit of the samples.
struct Quartiles {
    double median = 0;
    double low = 0;  ///< First quartile.
    double high = 0; ///< Third quartile.
    std::size_t count = 0;
};

/// Returns the summary of these samples; all zero without samples.
inline Quartiles summarize(std::vector<double> samples) {
    if (samples.empty()) {
        return {};
    }
    std::sort(samples.begin(), samples.end());
    const std::size_t last = samples.size() - 1;
    return {samples[last / 2], samples[last / 4], samples[last - last / 4], samples.size()};
}

/// Returns half the distance of the quartiles, relative to the median.
inline double spread(const Quartiles& summary) {
    return summary.median > 0 ? (summary.high - summary.low) / (2 * summary.median) : 0;
}

struct FitPoint {
    double x = 0;
    double y = 0;
};

/// Returns the slope of y = intercept + slope x with the least relative errors: each point counts
/// by 1 / y^2, so that the longest of lengths from 256 bytes to a megabyte does not determine the
/// fit alone. The slope is not negative. REQUIRES: y > 0.
inline double fit_slope(std::span<const FitPoint> points, double intercept) {
    double above = 0;
    double below = 0;
    for (const FitPoint& point : points) {
        const double weight = 1 / (point.y * point.y);
        above += weight * point.x * (point.y - intercept);
        below += weight * point.x * point.x;
    }
    return below > 0 ? std::max(above / below, 0.0) : 0;
}

struct Line {
    double intercept = 0;
    double slope = 0;
};

/// Returns how far points lie from a line, relative to the points: the root of the mean square. A
/// point that takes no time and is off the line counts as wholly wrong.
inline double fit_error(std::span<const FitPoint> points, const Line& line) {
    double squares = 0;
    for (const FitPoint& point : points) {
        const double fitted = line.intercept + line.slope * point.x;
        const double off = point.y > 0 ? (point.y - fitted) / point.y : (fitted > 0 ? 1 : 0);
        squares += off * off;
    }
    return points.empty() ? 0 : std::sqrt(squares / static_cast<double>(points.size()));
}

/// Returns the line of least squares with neither parameter negative: one that would be negative is
/// 0, and the other is fitted without it. REQUIRES: two different x, y > 0.
inline Line fit_line(std::span<const FitPoint> points) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const FitPoint& point : points) {
        n += 1;
        x += point.x;
        y += point.y;
        xx += point.x * point.x;
        xy += point.x * point.y;
    }
    const double slope = (n * xy - x * y) / (n * xx - x * x);
    const double intercept = (y - slope * x) / n;
    if (slope < 0) {
        return {y / n, 0};
    }
    return intercept < 0 ? Line{0, xy / xx} : Line{intercept, slope};
}

} // namespace ucg::tools
