#include "tools/ucg_tune/memory_report.hpp"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "tools/ucg_tune/memory_figures.hpp"
#include "topo/topo.hpp"

namespace ucg::tools {

namespace {

using Json = nlohmann::ordered_json;

std::string_view name(Series series) {
    static constexpr std::array<std::string_view, 19> kNames = {"line",
                                                                "read",
                                                                "contended",
                                                                "copy",
                                                                "overwrite",
                                                                "streaming",
                                                                "reduce",
                                                                "cma",
                                                                "cma_written",
                                                                "cma_lookup",
                                                                "futex",
                                                                "one_way",
                                                                "exchange",
                                                                "stream",
                                                                "combined",
                                                                "shares",
                                                                "burst",
                                                                "one_way_written",
                                                                "exchange_written"};
    return kNames[static_cast<std::size_t>(series)];
}

const char* mark(bool measured) {
    return measured ? "" : "  default";
}

template <typename... Args>
void print(std::string& text, fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

std::string model_text(const cost::MemoryModel& model) {
    std::string text = "Between cores         a ns      b ns/B      B ns/B   1/b GB/s\n";
    for (std::size_t i = 0; i < model.levels.size(); ++i) {
        const cost::MemoryLevel& level = model.levels[i];
        print(text, "  {:<14} {:>9.1f} {:>11.4f} {:>11.4f} {:>10.1f}{}{}\n",
              topo::name(static_cast<topo::Distance>(i)), level.latency_ns, level.per_byte_ns,
              level.contended_per_byte_ns, 1 / level.per_byte_ns, mark(level.measured),
              level.measured && !level.contention_measured ? "  B default" : "");
    }
    print(text,
          "Within a core    {:>8}  copy ns/B  operand ns/B  target ns/B  overwrite ns/B  "
          "streaming ns/B\n",
          "holds");
    for (std::size_t i = 0; i < model.caches.size(); ++i) {
        const cost::CacheRates& rates = model.caches[i];
        print(text, "  {:<14} {:>8} {:>10.4f} {:>13.4f} {:>12.4f} {:>15.4f} {:>15.4f}{}\n",
              cost::name(static_cast<cost::Cache>(i)), topo::format_bytes(rates.capacity_bytes),
              rates.copy_per_byte_ns, rates.reduce_operand_per_byte_ns,
              rates.reduce_target_per_byte_ns, rates.overwrite_per_byte_ns,
              rates.streaming_per_byte_ns, mark(rates.measured));
    }
    print(text, "A reduction, fixed     {:>9.1f} ns\n", model.reduce_fixed_ns);
    print(text,
          "Kernel's copy (CMA)    {:>9.1f} ns + {:.4f} ns/B, just written {:.4f}, finding pages "
          "{:.4f}{}{}\n",
          model.cma.fixed_ns, model.cma.per_byte_ns, model.cma.written_per_byte_ns,
          model.cma.lookup_per_byte_ns, model.cma.permitted ? "" : "  not permitted here",
          mark(model.cma.measured && model.cma.permitted));
    print(text, "Yield to another rank  {:>9.1f} ns{}\n", model.wake.yield_switch_ns,
          mark(model.wake.measured));
    print(text, "Futex wake, same CPU   {:>9.1f} ns{}\n", model.wake.futex_core_ns,
          mark(model.wake.measured));
    print(text, "Futex wake, across     {:>9.1f} ns{}\n", model.wake.futex_across_ns,
          mark(model.wake.across_measured));
    return text;
}

std::string notes_text(const ProbeResult& result, std::string_view prefix) {
    std::string text;
    for (const std::string& note : result.notes) {
        print(text, "{}{}\n", prefix, note);
    }
    return text;
}

void add_figures(Json& json, const std::vector<FigureReport>& figures) {
    json["figures"] = Json::object();
    json["not_measured"] = Json::array();
    for (const FigureReport& report : figures) {
        if (!report.known) {
            json["not_measured"].push_back({{"figure", report.figure.path()},
                                            {"value", report.figure.value},
                                            {"threshold", report.is_threshold()},
                                            {"reason", report.reason}});
            continue;
        }
        Json& figure = json["figures"][report.figure.path()];
        figure = {{"value", report.figure.value}, {"origin", name(report.known->origin)}};
        if (report.known->origin == Origin::fitted) {
            figure["error_per_cent"] = per_cent(*report.known);
        }
    }
}

} // namespace

std::string to_text(const ProbeResult& result, const cost::Profile& tuned) {
    std::string text = model_text(result.model);
    print(text, "\n{:<22} {:<16} {:>5} {:>10} {:>13} {:>13} {:>13} {:>7}\n", "Where", "what",
          "count", "bytes", "median ns", "1st quartile", "3rd quartile", "rounds");
    for (const Point& point : result.points) {
        print(text, "{:<22} {:<16} {:>5} {:>10} {:>13.1f} {:>13.1f} {:>13.1f} {:>7}\n", point.where,
              name(point.series), point.count, point.bytes, point.ns.median, point.ns.low,
              point.ns.high, point.ns.count);
    }
    const std::vector<FigureReport> figures = report_figures(result, tuned);
    return text + "\n" + known_text(figures) + (result.notes.empty() ? "" : "\n") +
           notes_text(result, "Note: ") + "\n" + unknown_text(figures, "");
}

std::string to_json(const ProbeResult& result, const cost::Profile& tuned) {
    const cost::MemoryModel& model = result.model;
    Json json;
    for (std::size_t i = 0; i < model.levels.size(); ++i) {
        const cost::MemoryLevel& level = model.levels[i];
        json["levels"][std::string(topo::name(static_cast<topo::Distance>(i)))] = {
            {"latency_ns", level.latency_ns},
            {"per_byte_ns", level.per_byte_ns},
            {"contended_per_byte_ns", level.contended_per_byte_ns},
            {"measured", level.measured},
            {"contention_measured", level.contention_measured}};
    }
    for (std::size_t i = 0; i < model.caches.size(); ++i) {
        const cost::CacheRates& rates = model.caches[i];
        json["caches"][std::string(cost::name(static_cast<cost::Cache>(i)))] = {
            {"capacity_bytes", rates.capacity_bytes},
            {"copy_per_byte_ns", rates.copy_per_byte_ns},
            {"reduce_operand_per_byte_ns", rates.reduce_operand_per_byte_ns},
            {"reduce_target_per_byte_ns", rates.reduce_target_per_byte_ns},
            {"overwrite_per_byte_ns", rates.overwrite_per_byte_ns},
            {"streaming_per_byte_ns", rates.streaming_per_byte_ns},
            {"measured", rates.measured}};
    }
    json["reduce"] = {{"fixed_ns", model.reduce_fixed_ns}};
    json["cma"] = {{"permitted", model.cma.permitted},
                   {"fixed_ns", model.cma.fixed_ns},
                   {"per_byte_ns", model.cma.per_byte_ns},
                   {"written_per_byte_ns", model.cma.written_per_byte_ns},
                   {"lookup_per_byte_ns", model.cma.lookup_per_byte_ns},
                   {"bytes_min", model.cma.bytes_min},
                   {"measured", model.cma.measured}};
    json["wake"] = {{"yield_switch_ns", model.wake.yield_switch_ns},
                    {"futex_core_ns", model.wake.futex_core_ns},
                    {"futex_across_ns", model.wake.futex_across_ns},
                    {"measured", model.wake.measured},
                    {"across_measured", model.wake.across_measured}};
    json["points"] = Json::array();
    for (const Point& point : result.points) {
        json["points"].push_back({{"where", point.where},
                                  {"what", name(point.series)},
                                  {"count", point.count},
                                  {"bytes", point.bytes},
                                  {"median_ns", point.ns.median},
                                  {"first_quartile_ns", point.ns.low},
                                  {"third_quartile_ns", point.ns.high},
                                  {"rounds", point.ns.count}});
    }
    add_figures(json, report_figures(result, tuned));
    json["notes"] = result.notes;
    return json.dump(2) + "\n";
}

std::string to_profile_toml(const ProbeResult& result, const cost::Profile& tuned,
                            const std::string& command, const std::string& machine) {
    const std::vector<FigureReport> figures = report_figures(result, tuned);
    return fmt::format("# Written by: {}\n# Machine: {}\n", command, machine) +
           notes_text(result, "# Note: ") + errors_toml(figures) + unknown_text(figures, "# ") +
           cost::to_toml(tuned);
}

std::string to_gnuplot(const ProbeResult& result, const std::string& path) {
    std::string data;
    std::string curves;
    const auto add = [&](const std::string& where, Series series, double fixed_ns,
                         double per_byte_ns) {
        std::string block;
        for (const Point& point : result.points) {
            if (point.where == where && point.series == series && point.bytes > 0) {
                print(block, "{} {} {} {}\n", point.bytes, point.ns.median, point.ns.low,
                      point.ns.high);
            }
        }
        if (block.empty()) {
            return;
        }
        const auto index = std::count(data.begin(), data.end(), '$');
        print(data, "$data{} << END\n{}END\n", index, block);
        print(curves,
              "{}$data{} using 1:2:3:4 with yerrorbars lc {} title '{}, {}', "
              "{} + {} * x lc {} title '{:.4g} ns + {:.3g} ns/B'",
              curves.empty() ? "plot " : ", ", index, index + 1, where, name(series), fixed_ns,
              per_byte_ns, index + 1, fixed_ns, per_byte_ns);
    };
    for (std::size_t i = 0; i < cost::kMemoryLevelCount; ++i) {
        const cost::MemoryLevel& level = result.model.levels[i];
        const std::string where(topo::name(static_cast<topo::Distance>(i)));
        add(where, Series::read, level.latency_ns, level.per_byte_ns);
        const auto readers =
            std::find_if(result.points.begin(), result.points.end(), [&](const Point& point) {
                return point.where == where + " contended" && point.series == Series::contended;
            });
        if (readers != result.points.end()) {
            add(where + " contended", Series::contended, level.latency_ns,
                level.contended_per_byte_ns * readers->count);
        }
    }
    add("cma", Series::cma, result.model.cma.fixed_ns, result.model.cma.per_byte_ns);
    add("cma", Series::cma_written, result.model.cma.fixed_ns,
        result.model.cma.written_per_byte_ns);
    return fmt::format("set terminal svg size 900,600 background rgb 'white'\n"
                       "set output '{}'\n"
                       "set logscale xy\nset xlabel 'bytes'\nset ylabel 'ns'\n"
                       "set key left top\nset grid\nset xrange [32:4e6]\n{}{}\n",
                       path, data, curves);
}

} // namespace ucg::tools
