// What is printed: ucx_perftest's table and CSV for its tests, a table of the same look for
// collectives.
#pragma once

#include <optional>
#include <string>

#include "perf/perftest/options.hpp"
#include "perf/perftest/statistics.hpp"

namespace ucg::perftest {

/// How far a result is from what the machine allows. What is not known is 0.
struct Limits {
    /// Are the ranks on several hosts? Then the below are of messages between these, else of
    /// memory.
    bool between_hosts = false;
    /// Of a cache line, in seconds, the mean of before and after the run; or of a message, the
    /// shorter one.
    double round_trip = 0;
    double least_seconds = 0; ///< What the least bytes take.
    double rate = 0;          ///< Bytes per second: copies of all ranks, or the slowest host's.
    double least_bytes = 0;   ///< That all ranks copy, or some host sends or receives.
    /// Were the round trips before and after so different that the host must have moved the
    /// processors meanwhile? Then the row cannot be compared with them.
    bool moved = false;

    bool known() const { return round_trip > 0; }
    /// Short ones are set beside round trips, long ones beside the rate.
    bool counts_round_trips() const { return least_seconds < round_trip; }
};

/// One line about a collective, of times in seconds.
struct CollectiveRow {
    std::uint64_t bytes = 0;
    std::uint64_t iterations = 0;
    Summary summary;
    double algorithm_bandwidth = 0; ///< Bytes per second.
    double bus_bandwidth = 0;
    Limits limits;
};

/// "1.31 rt", "62.0 %", "moved", "-".
std::string limit_text(const CollectiveRow& row);

/// The box that describes a test, above its table.
std::string test_box(const TestInfo& test, const Parameters& parameters, Rank size,
                     bool table_follows);

/// The head of a table or of CSV. `test` is null where each row is of another one.
std::string table_head(Layer layer, const TestInfo* test, const Parameters& parameters,
                       const OutputOptions& output, const std::vector<std::string>& batch_files);

/// The line with the names of a batch file's test, before its rows; empty where there is none.
std::string names_line(Layer layer, const std::vector<std::string>& names,
                       const OutputOptions& output);

/// `label`: what stands in front of a final row. Rows that are not final come during a run.
std::string primitive_line(const PrimitiveRow& row, const Job& job, const OutputOptions& output,
                           bool final, std::string_view details);
std::string collective_line(const CollectiveRow& row, const Job& job, const OutputOptions& output,
                            std::string_view details);

} // namespace ucg::perftest
