// The tests of UCP: tagged messages, put, get, atomic operations, streams and active messages over
// the transports that UCX chooses.
#pragma once

#include <vector>

#include "perf/perftest/test.hpp"

namespace ucg::perftest {

/// Returns the tests in the order of ucx_perftest's help.
std::vector<TestInfo> ucp_tests();

} // namespace ucg::perftest
