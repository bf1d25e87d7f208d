// Is there room for UCX? Where it cannot get the descriptors, the thread or the address space that
// it needs to start, UCX 1.13 ends the process by an assertion of its own or by SIGXFSZ, where we
// would rather do without it.
#pragma once

#include <cstdint>
#include <functional>

#include "ucg_coll/base/base.hpp"

namespace ucg::transport::ucx {

/// The least that UCX needs in order to start. Measured with UCX 1.13: a worker with the endpoints
/// of 8 ranks took 28 descriptors, 95 MB of address space (mostly the stack and the malloc arena of
/// its thread) and files of 4.3 MB (posix shared memory). Rounded up to the next power of two, and
/// twice that for files, which it makes one after the other.
struct Room {
    unsigned descriptors = 32;
    std::uint64_t address_bytes = std::uint64_t{128} << 20;
    std::uint64_t file_bytes = std::uint64_t{16} << 20;
};

/// Finds out whether the limits of this process and of its control group still allow so much, and
/// leaves nothing of it taken. If not, returns out_of_memory, with the limit to raise. What others
/// take between this call and UCX's start cannot be known.
Status find_room(const Room& room = {});

/// Runs `work` in a thread of its own, in which all signals are blocked, and waits for it. Returns
/// out_of_memory if no thread can be had; UCX itself needs another one, for its timers and
/// connections. Otherwise returns what `work` returns, or throws what it throws. UCX loads its
/// modules when it starts, one of which loads another: with UCX 1.18 that took more than the 24 KiB
/// of stack that threads of programs may have.
Status in_own_thread(const std::function<Status()>& work);

} // namespace ucg::transport::ucx
