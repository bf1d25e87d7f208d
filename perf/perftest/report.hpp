// Formats what is printed: ucx_perftest's table and CSV for its tests, and a table of the same look
// for collectives.
#pragma once

#include <optional>
#include <string>

#include "perf/perftest/options.hpp"
#include "perf/perftest/statistics.hpp"

namespace ucg::perftest {

/// How far a result is from what the machine allows. Values that are not known are 0.
struct Limits {
    /// Whether the ranks are on several hosts. If so, the members below describe messages between
    /// hosts, else memory.
    bool between_hosts = false;
    /// In seconds: the round trip of a cache line, the mean of before and after the run; or that of
    /// a message between hosts, the shorter of the two.
    double round_trip = 0;
    double least_seconds = 0; ///< The least time for `least_bytes`.
    double rate = 0;          ///< Bytes per second: copies of all ranks, or of the slowest host.
    double least_bytes = 0;   ///< Bytes that all ranks must copy, or some host send or receive.
    /// Whether the round trips before and after differ so much that the host must have moved the
    /// processors meanwhile. If so, the row cannot be compared with them.
    bool moved = false;

    bool known() const { return round_trip > 0; }
    /// Returns whether the row is compared with round trips, as short ones are, or else with the
    /// rate.
    bool counts_round_trips() const { return least_seconds < round_trip; }
};

/// One line about a collective. Times are in seconds.
struct CollectiveRow {
    std::uint64_t bytes = 0;
    std::uint64_t iterations = 0;
    Summary summary;
    double algorithm_bandwidth = 0; ///< Bytes per second.
    double bus_bandwidth = 0;
    Limits limits;
};

/// Returns for example "1.31 rt", "62.0 %", "moved" or "-".
std::string limit_text(const CollectiveRow& row);

/// Returns the box that describes a test, above its table.
std::string test_box(const TestInfo& test, const Parameters& parameters, Rank size,
                     bool table_follows);

/// Returns the head of a table or of CSV. `test` is null where each row is of another test.
std::string table_head(Layer layer, const TestInfo* test, const Parameters& parameters,
                       const OutputOptions& output, const std::vector<std::string>& batch_files);

/// Returns the line with the names of a batch file's test, which precedes its rows; empty if there
/// are no names.
std::string names_line(Layer layer, const std::vector<std::string>& names,
                       const OutputOptions& output);

/// Return a row. Rows that are not `final` are printed during a run. `details` are appended for -I.
std::string primitive_line(const PrimitiveRow& row, const Job& job, const OutputOptions& output,
                           bool final, std::string_view details);
std::string collective_line(const CollectiveRow& row, const Job& job, const OutputOptions& output,
                            std::string_view details);

} // namespace ucg::perftest
