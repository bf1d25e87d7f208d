// Reads results of ucx_perftest as it prints them with -v and a batch file. This part parses text
// only; import_fit.hpp derives costs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// One row of the results. The batch file names it TEST_BYTES.
struct PerftestRow {
    std::string test; ///< "am_lat"
    std::uint64_t bytes = 0;
    std::uint64_t iterations = 0;
    double percentile = 50;   ///< The percentile that `percentile_ns` is (-R).
    double percentile_ns = 0; ///< Latency; of a stream the time between messages.
    double overall_ns = 0;    ///< The same time as the mean of all iterations.
    double bytes_per_ns = 0;  ///< Mean of all iterations.
};

/// Parses what client or server printed. The last row of each name counts, since reports during the
/// run come before it (without -f). Tables, messages of UCX and empty lines are skipped. Fails with
/// invalid_argument and "line L: expected ..., found ...".
Result<std::vector<PerftestRow>> parse_perftest(std::string_view text);

} // namespace ucg::tools
