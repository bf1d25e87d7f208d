// Processes by their numbers, and whether they have ended.
#pragma once

#include <cstdint>
#include <sys/types.h>

namespace ucg::shm {

/// A process, as it tells its peers. Trivially copyable: it lies in memory that they map.
struct ProcessNumber {
    std::int64_t process = 0;
    std::uint64_t numbers = 0; ///< The PID namespace in which that is its number; 0: not known.
};

/// The calling process's own.
ProcessNumber own_process_number();

/// Has it ended, with all of its threads? False, too, of a process in another PID namespace, of
/// which this one knows no number, and of one whose number another has got.
bool has_ended(const ProcessNumber& peer);

/// The same by a number of this process's PID namespace.
bool has_ended(pid_t process);

} // namespace ucg::shm
