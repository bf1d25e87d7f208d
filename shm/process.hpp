// Processes by their numbers, and whether they have ended.
#pragma once

#include <cstdint>
#include <sys/types.h>

namespace ucg::shm {

/// A process, as it tells its peers. Trivially copyable: it lies in memory that they map.
struct ProcessNumber {
    std::int64_t process = 0;  ///< Its number (PID).
    std::uint64_t numbers = 0; ///< The PID namespace in which that is its number; 0: not known.
    std::uint64_t started = 0; ///< When it started, in clock ticks since boot; 0: not known.
};

/// Returns the number of the calling process.
ProcessNumber own_process_number();

/// Returns whether that number means the same process in this process's PID namespace.
bool is_known_here(const ProcessNumber& peer);

/// Returns whether the process has ended, with all of its threads. False, too, unless
/// is_known_here(peer).
bool has_ended(const ProcessNumber& peer);

/// Like the above, by a number of this process's PID namespace. `started` is
/// ProcessNumber::started; where that is not known, another process that has got the number is
/// taken for the one that had it.
bool has_ended(pid_t process, std::uint64_t started);

} // namespace ucg::shm
