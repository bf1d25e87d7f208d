#include "tools/ucg_tune/import_fit.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "tools/ucg_tune/statistics.hpp"
#include "ucg_coll/cost/network_model.hpp"

namespace ucg::tools {

namespace {

constexpr double kMedian = 50;
constexpr double kMinimum = 0;
/// The longest short message: a page. Above it protocols change.
constexpr std::uint64_t kShortMax = 4096;

using Tests = std::array<std::string_view, 2>; ///< The first one that has rows counts.
constexpr Tests kShortTests = {"am_lat", "ucp_am_lat"};
constexpr Tests kRateTests = {"am_bw", "ucp_am_bw"};
constexpr Tests kLongTests = {"ucp_put_bw", "ucp_am_bw"};

using Rows = std::vector<PerftestRow>;

Rows rows_of(std::span<const PerftestRow> rows, std::string_view test, bool is_short) {
    Rows found;
    for (const PerftestRow& row : rows) {
        if (row.test == test && (row.bytes <= kShortMax) == is_short) {
            found.push_back(row);
        }
    }
    std::sort(found.begin(), found.end(),
              [](const PerftestRow& a, const PerftestRow& b) { return a.bytes < b.bytes; });
    return found;
}

/// Returns the rows of the first test that has rows of `least` sizes; empty if none has.
Rows choose(std::span<const PerftestRow> rows, const Tests& tests, bool is_short,
            std::size_t least) {
    for (const std::string_view test : tests) {
        Rows found = rows_of(rows, test, is_short);
        if (found.size() >= least) {
            return found;
        }
    }
    return {};
}

Status lacks(const Tests& tests, std::string_view what, double percentile) {
    return failure(Code::invalid_argument,
                   "expected rows of {} or {} {} with the {:g}th percentile, found too few; "
                   "the batch file calibrate has them (ucg_tune import-ucx-perftest --help)",
                   tests[0], tests[1], what, percentile);
}

std::vector<FitPoint> latencies(const Rows& rows) {
    std::vector<FitPoint> points;
    for (const PerftestRow& row : rows) {
        points.push_back({static_cast<double>(row.bytes), row.percentile_ns});
    }
    return points;
}

/// Returns the times between messages of a stream: means, since bursts and waits belong together.
std::vector<FitPoint> gaps(const Rows& rows) {
    std::vector<FitPoint> points;
    for (const PerftestRow& row : rows) {
        points.push_back({static_cast<double>(row.bytes), row.overall_ns});
    }
    return points;
}

} // namespace

Result<ImportedCosts> fit_perftest(std::span<const PerftestRow> rows, double percentile) {
    Rows chosen;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(chosen),
                 [=](const PerftestRow& row) { return row.percentile == percentile; });
    const Rows short_rows = choose(chosen, kShortTests, true, 2);
    const Rows rate_rows = choose(chosen, kRateTests, true, 1);
    const Rows long_rows = choose(chosen, kLongTests, false, 2);
    if (short_rows.empty()) {
        return lacks(kShortTests, "of two sizes up to 4096 bytes", percentile);
    }
    if (rate_rows.empty()) {
        return lacks(kRateTests, "of a size up to 4096 bytes", percentile);
    }
    if (long_rows.empty()) {
        return lacks(kLongTests, "of two sizes above 4096 bytes", percentile);
    }
    const std::vector<FitPoint> short_points = latencies(short_rows);
    const std::vector<FitPoint> long_points = gaps(long_rows);
    const Line latency = fit_line(short_points);
    const double first_byte_ns = latency.intercept + latency.slope;
    // A stream that stalls is no measure of what a message costs.
    const double each_ns = std::min(rate_rows.front().overall_ns, first_byte_ns);
    const Line stream = {each_ns, fit_slope(long_points, each_ns)};
    if (stream.slope == 0) {
        return failure(Code::invalid_argument,
                       "expected long messages to take more than short ones; rows of {} do not",
                       long_rows.front().test);
    }

    ImportedCosts costs;
    costs.postal.beta_ns_per_byte = stream.slope;
    costs.postal.alpha_r_ns = std::max(each_ns - stream.slope, 0.0);
    costs.postal.alpha_p_ns = std::max(first_byte_ns - costs.postal.alpha_r_ns - stream.slope, 0.0);
    costs.postal.measured = true;
    costs.loggp = cost::loggp_of(costs.postal, each_ns);
    costs.latency_error = fit_error(short_points, latency);
    costs.gap_error = fit_error(long_points, stream);
    costs.short_test = short_rows.front().test;
    costs.rate_test = rate_rows.front().test;
    costs.long_test = long_rows.front().test;
    return costs;
}

Result<Import> import_perftest(std::span<const PerftestRow> rows, topo::Distance level) {
    for (const PerftestRow& row : rows) {
        if (row.percentile != kMedian && row.percentile != kMinimum) {
            return failure(Code::invalid_argument,
                           "expected the 50th percentile, and the 0th for best times; found the "
                           "{:g}th (ucx_perftest -R)",
                           row.percentile);
        }
    }
    Result<ImportedCosts> median = fit_perftest(rows, kMedian);
    if (!median.ok()) {
        return median.status();
    }
    Import import;
    import.level = level;
    import.median = std::move(*median);
    const bool has_minimum = std::any_of(rows.begin(), rows.end(), [](const PerftestRow& row) {
        return row.percentile == kMinimum;
    });
    if (has_minimum) {
        Result<ImportedCosts> minimum = fit_perftest(rows, kMinimum);
        if (!minimum.ok()) {
            return minimum.status();
        }
        import.minimum = std::move(*minimum);
    }
    return import;
}

cost::Profile imported_profile(const Import& import, cost::Profile base) {
    base.levels[static_cast<std::size_t>(import.level)] = import.median.loggp;
    base.levels_measured[static_cast<std::size_t>(import.level)] = true;
    if (import.level == topo::Distance::network) {
        base.network.median = import.median.postal;
        if (import.minimum) {
            base.network.minimum = import.minimum->postal;
        }
    }
    return base;
}

namespace {

using Known = std::map<std::string, Figure, std::less<>>;

void add_postal(Known& known, const std::string& table, const ImportedCosts& costs) {
    known[table + ".alpha_p_ns"] = {Origin::fitted, costs.latency_error};
    known[table + ".alpha_r_ns"] = {Origin::derived, 0};
    known[table + ".beta_ns_per_byte"] = {Origin::fitted, costs.gap_error};
}

Known known_figures(const Import& import) {
    Known known;
    const std::string level = fmt::format("levels.{}", topo::name(import.level));
    known[level + ".latency_ns"] = {Origin::fitted, import.median.latency_error};
    known[level + ".gap_per_byte_ns"] = {Origin::fitted, import.median.gap_error};
    // The stream's time between messages; ucx_perftest does not report the processor's part of it.
    known[level + ".gap_ns"] = {Origin::derived, 0};
    known[level + ".overhead_ns"] = {Origin::derived, 0};
    if (import.level == topo::Distance::network) {
        add_postal(known, "network.median", import.median);
        if (import.minimum) {
            add_postal(known, "network.minimum", *import.minimum);
        }
    }
    return known;
}

std::string_view reason_of(const cost::NamedFigure& figure) {
    if (figure.table.starts_with("levels.")) {
        return "results between processes at this distance, with --level";
    }
    if (figure.table == "network.minimum") {
        return "results of ucx_perftest -R 0, with --level network";
    }
    if (figure.table == "network.median") {
        return "results between hosts, with --level network";
    }
    if (figure.table == "network.links") {
        return "takes three processes: `ucg_tune network` measures it";
    }
    return "not from messages of a pair: `ucg_tune memory` measures it";
}

} // namespace

std::vector<FigureReport> report_import(const Import& import, const cost::Profile& profile) {
    const Known known = known_figures(import);
    std::vector<FigureReport> reports;
    for (cost::NamedFigure& figure : cost::figures_of(profile)) {
        FigureReport report;
        if (const auto found = known.find(figure.path()); found != known.end()) {
            report.known = found->second;
        } else {
            report.reason = reason_of(figure);
        }
        report.figure = std::move(figure);
        reports.push_back(std::move(report));
    }
    return reports;
}

std::string sources_text(const Import& import, std::string_view prefix) {
    std::string text;
    const auto add = [&](std::string_view what, const ImportedCosts& costs) {
        text += fmt::format("{}{}: latency from {}, gap and overhead from {}, gap per byte from "
                            "{}\n",
                            prefix, what, costs.short_test, costs.rate_test, costs.long_test);
    };
    add("Median", import.median);
    if (import.minimum) {
        add("Minimum", *import.minimum);
    }
    return text;
}

} // namespace ucg::tools
