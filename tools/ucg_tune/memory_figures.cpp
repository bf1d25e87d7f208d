#include "tools/ucg_tune/memory_figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "topo/topo.hpp"
#include "ucg_coll/cost/single_copies.hpp"

namespace ucg::tools {

namespace {

using Figures = std::map<std::string, Figure, std::less<>>;

template <typename... Args>
void print(std::string& text, fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

/// The reason why figures were not measured.
struct Reason {
    std::string_view table; ///< The beginning of the tables' names.
    std::string_view key;   ///< Empty: any key.
    std::string_view text;
};

std::string level_table(topo::Distance distance) {
    return fmt::format("levels.{}", topo::name(distance));
}

constexpr std::string_view kNeedsNearPeer =
    "needs longer vectors than it may take, or a second CPU that stays as near";

constexpr std::string_view kNeedsBothWays =
    "needs the kernel's copies, longer messages than --quick takes, and CPUs that stay as near";

/// The first reason that fits a figure counts.
constexpr std::array kReasons = {
    Reason{"memory.levels.", "contended_per_byte_ns",
           "needs three CPUs at this distance; in proportion to what one reader takes"},
    Reason{"memory.levels.", "", "needs two CPUs that stay at this distance"},
    Reason{"memory.caches.l3", "capacity_bytes", "needs longer vectors than it may take"},
    Reason{"memory.caches.", "capacity_bytes", "the system does not tell it"},
    Reason{"memory.caches.", "overwrite_per_byte_ns", kNeedsNearPeer},
    Reason{"memory.caches.", "streaming_per_byte_ns", kNeedsNearPeer},
    Reason{"memory.caches.", "", "needs longer vectors than it may take"},
    Reason{"memory.reduce", "", "needs longer vectors than it may take"},
    Reason{"memory.cma", "one_way_bytes_min", kNeedsBothWays},
    Reason{"memory.cma", "combined_bytes_min", kNeedsBothWays},
    Reason{"memory.cma", "", "the kernel permits no such copies here"},
    Reason{"memory.wake", "futex_across_ns", "needs a second CPU"},
    Reason{"compute", "", "follows from the L2, which was not measured"},
    Reason{"levels.network", "", "`ucg_tune network` measures it"},
    Reason{"levels.", "", "needs two CPUs that stay at this distance"},
    Reason{"memory.copies", "oversubscribed_cma_bytes_min", kNeedsBothWays},
    Reason{"memory.copies", "oversubscribed_combined_bytes_min", kNeedsBothWays},
    Reason{"memory.copies", "mapped_bytes_min", "needs a second CPU that stays as near"},
    Reason{"memory.copies", "",
           "needs longer messages than --quick takes, or a second CPU that stays as near"},
    Reason{"memory.far_copies", "", "known by processor; no command measures it"},
    Reason{"memory.flag_slots", "", "needs a second CPU that stays as near"},
    Reason{"memory.cooperative_copies", "",
           "needs longer messages than --quick takes, or a second CPU that stays as near"},
    Reason{"network.", "", "`ucg_tune network` measures it"},
};

std::string_view reason_of(const cost::NamedFigure& figure) {
    const auto* const found =
        std::find_if(kReasons.begin(), kReasons.end(), [&](const Reason& reason) {
            return figure.table.starts_with(reason.table) &&
                   (reason.key.empty() || figure.key == reason.key);
        });
    return found != kReasons.end() ? found->text : "nothing measures it";
}

/// Adds the figures that are derived from fitted ones, with the error of the fitted figure where
/// they are of the same kind.
void add_derived(Figures& figures, const cost::Profile& tuned) {
    const auto error_of = [&](std::string_view path) {
        const auto found = figures.find(path);
        return found != figures.end() ? found->second.error : 0;
    };
    const cost::MemoryModel& memory = tuned.memory;
    if (memory.cache(cost::Cache::l2).measured) {
        figures["compute.copy_per_byte_ns"] = {Origin::derived,
                                               error_of("memory.caches.l2.copy_per_byte_ns")};
        figures["compute.reduce_per_byte_ns"] = {
            Origin::derived, error_of("memory.caches.l2.reduce_operand_per_byte_ns")};
        figures["compute.reduce_fixed_ns"] = {Origin::derived, error_of("memory.reduce.fixed_ns")};
    }
    if (memory.cma.measured && memory.cma.permitted) {
        figures["memory.cma.bytes_min"] = {Origin::derived, 0};
    }
}

/// Returns whether another command of ucg_tune has measured this table.
bool kept(const std::string& table, const cost::Profile& tuned) {
    for (std::size_t i = 0; i < topo::kDistanceCount; ++i) {
        if (table == level_table(static_cast<topo::Distance>(i)) && tuned.levels_measured[i]) {
            return true;
        }
    }
    return (table == "network.minimum" && tuned.network.minimum.measured) ||
           (table == "network.median" && tuned.network.median.measured) ||
           (table == "network.links" && tuned.links.measured);
}

/// Takes over LogGP of messages. Messages that were not timed cost no less than those between
/// nearer CPUs that were.
void learn_levels(const ProbeResult& result, cost::Profile& profile) {
    cost::LogGp nearer = {};
    for (std::size_t i = 0; i < result.levels.size(); ++i) {
        cost::LogGp& level = profile.levels[i];
        if (result.levels[i]) {
            level = *result.levels[i];
            profile.levels_measured[i] = true;
        }
        if (profile.levels_measured[i]) {
            nearer = level;
        } else {
            level.latency_ns = std::max(level.latency_ns, nearer.latency_ns);
            level.overhead_ns = std::max(level.overhead_ns, nearer.overhead_ns);
            level.gap_ns = std::max(level.gap_ns, nearer.gap_ns);
            level.gap_per_byte_ns = std::max(level.gap_per_byte_ns, nearer.gap_per_byte_ns);
        }
    }
}

std::string value_text(const cost::NamedFigure& figure) {
    switch (figure.unit) {
    case cost::Unit::bytes: return topo::format_bytes(static_cast<std::uint64_t>(figure.value));
    case cost::Unit::truth: return figure.value != 0 ? "yes" : "no";
    case cost::Unit::nanoseconds:
    case cost::Unit::times: break;
    }
    return fmt::format("{:.4g}", figure.value);
}

/// Rates of one table or several that were not measured for one reason.
struct UnknownRates {
    std::string tables;
    std::string keys;
    std::string_view reason;
};

void append(std::string& list, std::string_view item) {
    print(list, "{}{}", list.empty() ? "" : ", ", item);
}

std::vector<UnknownRates> unknown_rates(const std::vector<FigureReport>& figures) {
    std::vector<UnknownRates> by_table;
    for (const FigureReport& report : figures) {
        if (report.known || report.is_threshold()) {
            continue;
        }
        if (by_table.empty() || by_table.back().tables != report.figure.table ||
            by_table.back().reason != report.reason) {
            by_table.push_back({report.figure.table, "", report.reason});
        }
        append(by_table.back().keys, report.figure.key);
    }
    std::vector<UnknownRates> merged;
    for (UnknownRates& rates : by_table) {
        const auto like =
            std::find_if(merged.begin(), merged.end(), [&](const UnknownRates& other) {
                return other.keys == rates.keys && other.reason == rates.reason;
            });
        if (like != merged.end()) {
            append(like->tables, rates.tables);
        } else {
            merged.push_back(std::move(rates));
        }
    }
    return merged;
}

} // namespace

std::string_view name(Origin origin) {
    switch (origin) {
    case Origin::fitted: return "fitted";
    case Origin::told: return "told";
    case Origin::derived: return "derived";
    case Origin::kept: return "kept";
    }
    return "";
}

double per_cent(const Figure& figure) {
    return std::round(1000 * figure.error) / 10;
}

cost::Profile tuned_profile(const ProbeResult& result, cost::Profile base) {
    base.memory = result.model;
    // The planner's older figures, from the same measurements.
    if (const cost::CacheRates& l2 = result.model.cache(cost::Cache::l2); l2.measured) {
        base.copy_per_byte_ns = l2.copy_per_byte_ns;
        base.reduce_per_byte_ns =
            l2.reduce_operand_per_byte_ns + l2.reduce_target_per_byte_ns / 2; // Two operands.
        base.reduce_fixed_ns = result.model.reduce_fixed_ns;
    }
    learn_levels(result, base);
    const bool timed = base.memory.copies.measured;
    if (cost::CmaModel& cma = base.memory.cma; cma.measured && cma.permitted && !timed) {
        cma.bytes_min = cost::single_copy_bytes_min(base, cma.fixed_ns, cma.per_byte_ns);
    }
    return base;
}

std::vector<FigureReport> report_figures(const ProbeResult& result, const cost::Profile& tuned) {
    Figures known = result.figures;
    add_derived(known, tuned);
    std::vector<FigureReport> reports;
    for (cost::NamedFigure& figure : cost::figures_of(tuned)) {
        FigureReport report;
        if (const auto found = known.find(figure.path()); found != known.end()) {
            report.known = found->second;
        } else if (kept(figure.table, tuned)) {
            report.known = Figure{Origin::kept, 0};
        } else {
            report.reason = reason_of(figure);
        }
        report.figure = std::move(figure);
        reports.push_back(std::move(report));
    }
    return reports;
}

std::string known_text(const std::vector<FigureReport>& figures) {
    std::string text;
    for (const FigureReport& report : figures) {
        if (!report.known) {
            continue;
        }
        const bool has_error = report.known->origin == Origin::fitted || report.known->error > 0;
        print(text, "  {:<44} {:>10} {:>9}  {}\n", report.figure.path(), value_text(report.figure),
              has_error ? fmt::format("{:.1f} %", per_cent(*report.known)) : "",
              report.known->origin == Origin::fitted ? "" : name(report.known->origin));
    }
    return fmt::format("{:<46} {:>10} {:>9}\n", "Figure", "value", "error") + text;
}

std::string unknown_text(const std::vector<FigureReport>& figures, std::string_view prefix) {
    std::string text = fmt::format("{}Thresholds that decide and were not measured:\n", prefix);
    const auto threshold = [&](std::string_view what, std::string_view value,
                               std::string_view reason) {
        print(text, "{}  {:<36} {:>10}  {}\n", prefix, what, value, reason);
    };
    for (const FigureReport& report : figures) {
        if (!report.known && report.is_threshold()) {
            threshold(report.figure.path(), value_text(report.figure), report.reason);
        }
    }
    print(text, "{}Rates that were not measured:\n", prefix);
    for (const UnknownRates& rates : unknown_rates(figures)) {
        print(text, "{}  {}: {} ({})\n", prefix, rates.tables, rates.keys, rates.reason);
    }
    return text;
}

std::string errors_toml(const std::vector<FigureReport>& figures) {
    std::string text;
    const std::string* table = nullptr;
    for (const FigureReport& report : figures) {
        if (!report.known || report.known->origin != Origin::fitted) {
            continue;
        }
        const bool goes_on = table != nullptr && *table == report.figure.table;
        if (!goes_on) {
            print(text, "{}# Error of {}:", text.empty() ? "" : "\n", report.figure.table);
        }
        print(text, "{} {} {:.1f} %", goes_on ? "," : "", report.figure.key,
              per_cent(*report.known));
        table = &report.figure.table;
    }
    return text + (text.empty() ? "" : "\n");
}

} // namespace ucg::tools
