// Random words of the operating system, for numbers that other processes must not have or guess.
#pragma once

#include <cstdint>

#include "ucg_coll/base/status.hpp"

namespace ucg {

/// Returns 64 bits of getrandom(2). Early in the system's start it waits until the kernel has
/// enough entropy. Fails with io_error where the system has no such call. Thread-safe.
Result<std::uint64_t> random_word();

} // namespace ucg
