// A trace of single messages in the format of UCX's own profiling, for ucx_read_profile.
#pragma once

#include <string>

#include "perf/perftest/breakdown/uct.hpp"
#include "perf/perftest/runtime.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::perftest::breakdown {

/// Runs `round_trips` round trips of active messages. Rank 0 writes to `file` a record of each
/// LLP_post and of the progress until the answer has arrived. Collective of two.
Status write_profile(Runtime& runtime, LowLevel& level, const std::string& file,
                     std::size_t round_trips);

} // namespace ucg::perftest::breakdown
