// Which host a process is on.
#pragma once

#include <cstdint>

namespace ucg::perftest {

/// Equal on processes that share memory; 0: not known.
std::uint64_t host_identity();

} // namespace ucg::perftest
