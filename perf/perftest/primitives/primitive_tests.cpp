#include "perf/perftest/primitives/ucp_tests.hpp"
#include "perf/perftest/primitives/uct_tests.hpp"
#include "perf/perftest/test.hpp"

namespace ucg::perftest {

std::span<const TestInfo> primitive_tests() {
    static const std::vector<TestInfo> all = [] {
        std::vector<TestInfo> joined = uct_tests();
        for (const TestInfo& test : ucp_tests()) {
            joined.push_back(test);
        }
        return joined;
    }();
    return all;
}

} // namespace ucg::perftest
