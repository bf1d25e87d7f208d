// Results of ucx_perftest as it prints them with -v and a batch file: the reading of the text,
// without what it means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// A row, named TEST_BYTES by the batch file.
struct PerftestRow {
    std::string test; ///< "am_lat"
    std::uint64_t bytes = 0;
    std::uint64_t iterations = 0;
    double percentile = 50;   ///< Which one `percentile_ns` is (-R).
    double percentile_ns = 0; ///< Latency, or of a stream the time between messages.
    double overall_ns = 0;    ///< The same, mean of all iterations.
    double bytes_per_ns = 0;  ///< Mean of all iterations.
};

/// Reads what client or server printed: the last row of each name holds, since reports during the
/// run come before (without -f). Tables, messages of UCX and empty lines are passed over. Fails
/// with invalid_argument and "line L: expected ..., found ...".
Result<std::vector<PerftestRow>> parse_perftest(std::string_view text);

} // namespace ucg::tools
