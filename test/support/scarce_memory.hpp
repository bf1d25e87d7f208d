// For test programs in which operator new may fail.
#pragma once

#include <cstdint>

namespace ucg::test {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// So many more allocations of this thread succeed. Then one fails, and the value becomes kNever.
extern thread_local std::uint64_t allocations_left;

} // namespace ucg::test
