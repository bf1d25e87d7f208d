#include "perf/perftest/report.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "perf/perftest/collectives/collective_name.hpp"

namespace ucg::perftest {

namespace {

constexpr double kMicro = 1e6;
constexpr double kMega = 1024 * 1024;

constexpr std::string_view kBoxRule =
    "+---------------------------------------------------------------------------------------------"
    "-------------+\n";
constexpr std::string_view kPrimitiveRule =
    "+--------------+--------------+----------+---------+---------+----------+----------+----------"
    "-+-----------+\n";
constexpr std::string_view kPrimitiveGroups =
    "+--------------+--------------+------------------------------+---------------------+----------"
    "-------------+\n";
constexpr std::string_view kCollectiveRule =
    "+--------------+--------------+---------+---------+---------+---------+---------+-----------+-"
    "----------+----------+\n";
constexpr std::string_view kCollectiveGroups =
    "+--------------+--------------+-------------------------------------------------+-------------"
    "----------+----------+\n";

std::string box_line(std::string_view label, std::string_view value) {
    return fmt::format("| {:<14}{:<90} |\n", label, value.substr(0, 90));
}

std::string_view layout_text(const Parameters& parameters) {
    switch (parameters.uct_layout) {
    case UctLayout::short_copy: return "short";
    case UctLayout::short_iov: return "short iov";
    case UctLayout::buffered_copy: return "bcopy";
    case UctLayout::zero_copy: break;
    }
    return "zcopy";
}

/// Returns the number with its digits in groups of three, separated by commas.
std::string thousands(std::string digits) {
    const std::size_t end = std::min(digits.find('.'), digits.size());
    for (std::size_t at = end; at > 3 && digits[at - 4] != '-' && digits[at - 4] != ' '; at -= 3) {
        digits.insert(at - 3, ",");
    }
    return digits;
}

std::string whole(double value, int width, bool grouped) {
    std::string text = fmt::format("{:.0f}", value);
    if (grouped) {
        text = thousands(std::move(text));
    }
    return fmt::format("{:>{}}", text, width);
}

std::string joined_names(const Job& job) {
    return job.names.empty() ? job.parameters.test : fmt::format("{}", fmt::join(job.names, "/"));
}

std::string names_columns(const Job& job) {
    std::string text;
    for (const std::string& name : job.names) {
        text += name + ",";
    }
    return text;
}

std::string file_columns(const std::vector<std::string>& files) {
    std::string text;
    for (const std::string& file : files) {
        text += std::filesystem::path(file).filename().string() + ",";
    }
    return text;
}

/// Returns what ucx_perftest calls the time: latency for ping-pongs and for operations that wait
/// for an answer, overhead for streams.
std::string_view latency_name(const TestInfo* test) {
    if (test == nullptr) {
        return "overhead";
    }
    const std::string_view name = test->name;
    const bool is_stream = name.ends_with("_bw") || name.ends_with("_mr") || name == "ucp_add";
    return is_stream ? "overhead" : "latency";
}

std::string primitive_head(const TestInfo* test, const Parameters& parameters,
                           const OutputOptions& output, const std::vector<std::string>& files) {
    if (output.csv) {
        return fmt::format("{}iterations,{:.1f}_percentile_lat,avg_lat,overall_lat,avg_bw,"
                           "overall_bw,avg_mr,overall_mr\n",
                           file_columns(files), parameters.percentile);
    }
    std::string text(kPrimitiveGroups);
    text += fmt::format("|              |              |       {:>8} (usec)        |   bandwidth "
                        "(MB/s)  |  message rate (msg/s) |\n",
                        latency_name(test));
    text += kPrimitiveRule;
    text +=
        fmt::format("|    {:>5}     | # iterations | {:4.1f}%ile | average | overall |  average "
                    "|  overall |  average  |  overall  |\n",
                    output.final_only ? "Test" : "Stage", parameters.percentile);
    return text.append(kPrimitiveRule);
}

std::string collective_head(const Parameters& parameters, const OutputOptions& output,
                            const std::vector<std::string>& files) {
    if (output.csv) {
        return fmt::format("{}test,size,iterations,min_lat,{:.1f}_percentile_lat,p95_lat,p99_lat,"
                           "max_lat,algorithm_bw,bus_bw,limit_round_trips,limit_percent\n",
                           file_columns(files), parameters.percentile);
    }
    std::string text(kCollectiveGroups);
    text += "|              |              |        latency of the slowest rank (usec)       |   "
            "bandwidth (MB/s)    | of limit |\n";
    text += kCollectiveRule;
    text += fmt::format("|    {:<10}| # iterations |   min   |{:5.1f}%ile|  95%ile |  99%ile |   "
                        "max   | algorithm |    bus    | rt or %  |\n",
                        output.final_only ? "Test" : "Size (B)", parameters.percentile);
    return text.append(kCollectiveRule);
}

double round_trips(const CollectiveRow& row) {
    return row.summary.asked / row.limits.round_trip;
}

double percent_of_rate(const CollectiveRow& row) {
    return 100 * row.limits.least_seconds / row.summary.asked;
}

std::string collective_csv(const CollectiveRow& row, const Job& job) {
    const Summary& times = row.summary;
    const bool known = row.limits.known() && !row.limits.moved;
    return fmt::format("{}{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.2f},{:.2f},{},{}\n",
                       names_columns(job), job.parameters.test, row.bytes, row.iterations,
                       times.least * kMicro, times.asked * kMicro, times.p95 * kMicro,
                       times.p99 * kMicro, times.most * kMicro, row.algorithm_bandwidth / kMega,
                       row.bus_bandwidth / kMega,
                       known ? fmt::format("{:.2f}", round_trips(row)) : "",
                       known ? fmt::format("{:.1f}", percent_of_rate(row)) : "");
}

} // namespace

std::string limit_text(const CollectiveRow& row) {
    if (!row.limits.known()) {
        return "-";
    }
    if (row.limits.moved) {
        return "moved";
    }
    return row.limits.counts_round_trips() ? fmt::format("{:.2f} rt", round_trips(row))
                                           : fmt::format("{:.1f} %", percent_of_rate(row));
}

std::string test_box(const TestInfo& test, const Parameters& parameters, Rank size,
                     bool table_follows) {
    const Layer layer = layer_of(test);
    std::string text(kBoxRule);
    if (layer == Layer::collective) {
        const CollectiveParameters& collective = parameters.collective;
        const CollectiveShape& shape = *parse_collective_name(test.name)->shape;
        text += box_line("API:", "collectives");
        text += box_line("Test:", test.description);
        text += box_line("Ranks:", std::to_string(size));
        text += box_line("Data:", shape.reduces ? fmt::format("{}, {}", collective.datatype,
                                                              collective.operation)
                                                : collective.datatype);
        text += box_line("Buffers:", collective.heap ? "heap" : "ordinary");
        text += box_line("Start:", collective.mode == CollectiveMode::separated
                                       ? "all ranks together (sep)"
                                       : "back to back (b2b)");
        if (!collective.algorithm.empty()) {
            text += box_line("Algorithm:", collective.algorithm);
        }
        return table_follows ? text : text.append(kBoxRule);
    }
    const bool is_uct = layer == Layer::uct;
    text += box_line("API:", is_uct ? "transport layer" : "protocol layer");
    text += box_line("Test:", test.description.substr(4)); // Without "UCT " or "UCP ".
    text += box_line("Data layout:", is_uct ? layout_text(parameters) : "(automatic)");
    text += box_line("Send memory:", "host");
    text += box_line("Recv memory:", "host");
    text += box_line("Message size:", std::to_string(parameters.bytes()));
    if (test.name.starts_with("ucp_am")) {
        text += fmt::format("| AM header size: {:<88} |\n", parameters.ucp_header);
    }
    return table_follows ? text : text.append(kBoxRule);
}

std::string table_head(Layer layer, const TestInfo* test, const Parameters& parameters,
                       const OutputOptions& output, const std::vector<std::string>& batch_files) {
    return layer == Layer::collective ? collective_head(parameters, output, batch_files)
                                      : primitive_head(test, parameters, output, batch_files);
}

std::string names_line(Layer layer, const std::vector<std::string>& names,
                       const OutputOptions& output) {
    if (names.empty() || output.csv || output.final_only) {
        return "";
    }
    std::string line(layer == Layer::collective ? kCollectiveRule : kPrimitiveRule);
    const std::string text = fmt::format("{}", fmt::join(names, "/"));
    const std::size_t length = std::min(text.size(), line.size() - 3);
    return line.replace(1, length, text.substr(0, length));
}

std::string primitive_line(const PrimitiveRow& row, const Job& job, const OutputOptions& output,
                           bool final, std::string_view details) {
    if (output.csv) {
        return fmt::format("{}{:>4},{:.3f},{:.3f},{:.3f},{:.2f},{:.2f},{:.0f},{:.0f}\n",
                           names_columns(job), row.iterations, row.percentile * kMicro,
                           row.average * kMicro, row.overall * kMicro,
                           row.average_bandwidth / kMega, row.overall_bandwidth / kMega,
                           row.average_rate, row.overall_rate);
    }
    // ucx_perftest names the thread in front of a row that is not final.
    const std::string label = !final              ? "[thread 0]"
                              : output.final_only ? fmt::format("{:>10}", joined_names(job))
                                                  : "Final:    ";
    const std::string extra =
        output.extra && !details.empty() ? fmt::format("  {}", details) : std::string();
    return fmt::format("{}{} {:10.3f} {:9.3f} {:9.3f} {:11.2f} {:10.2f} {} {}{}\n", label,
                       whole(static_cast<double>(row.iterations), 18, output.thousands),
                       row.percentile * kMicro, row.average * kMicro, row.overall * kMicro,
                       row.average_bandwidth / kMega, row.overall_bandwidth / kMega,
                       whole(row.average_rate, 11, output.thousands),
                       whole(row.overall_rate, 11, output.thousands), extra);
}

std::string collective_line(const CollectiveRow& row, const Job& job, const OutputOptions& output,
                            std::string_view details) {
    if (output.csv) {
        return collective_csv(row, job);
    }
    const std::string label =
        output.final_only
            ? fmt::format(" {:<14}", fmt::format("{} {}", joined_names(job), row.bytes))
            : whole(static_cast<double>(row.bytes), 15, output.thousands);
    const std::string extra =
        output.extra && !details.empty() ? fmt::format("  {}", details) : std::string();
    return fmt::format("{}{} {:9.3f} {:9.3f} {:9.3f} {:9.3f} {:9.3f} {:11.2f} {:11.2f} {:>10}{}\n",
                       label, whole(static_cast<double>(row.iterations), 14, output.thousands),
                       row.summary.least * kMicro, row.summary.asked * kMicro,
                       row.summary.p95 * kMicro, row.summary.p99 * kMicro,
                       row.summary.most * kMicro, row.algorithm_bandwidth / kMega,
                       row.bus_bandwidth / kMega, limit_text(row), extra);
}

} // namespace ucg::perftest
