// Identifies the host of a process.
#pragma once

#include <cstdint>

namespace ucg::perftest {

/// Returns a number that is equal on processes that share memory; 0: it is not known.
std::uint64_t host_identity();

} // namespace ucg::perftest
