// Random words of the operating system: what other processes must not have or guess.
#pragma once

#include <cstdint>

#include "ucg_coll/base/status.hpp"

namespace ucg {

/// 64 bits of getrandom(2). Waits, early in the system's start, until the kernel has them. Fails
/// with io_error where the system has no such call. Any thread.
Result<std::uint64_t> random_word();

} // namespace ucg
