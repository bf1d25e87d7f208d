// The tests of UCT: active messages, put, get and atomic operations over one interface.
#pragma once

#include <vector>

#include "perf/perftest/test.hpp"

namespace ucg::perftest {

/// Returns the tests in the order of ucx_perftest's help.
std::vector<TestInfo> uct_tests();

} // namespace ucg::perftest
