// How much memory this process may still use: of the machine and of the control groups it is in.
// Beyond it the kernel kills processes, so the heap asks before it takes.
#pragma once

#include <cstdint>
#include <string>

namespace ucg::shm {

/// Memory of this process's machine and control groups.
struct MemoryBudget {
    std::uint64_t total = 0;     ///< Bytes that could be used if nothing else were.
    std::uint64_t available = 0; ///< Bytes that can be used now; caches that can be dropped count.
};

/// Returns the budget by /proc/meminfo and the files of the control groups (version 1 and 2) up to
/// the root. What cannot be read limits nothing. `root` is prefixed to every path, for tests.
MemoryBudget memory_budget(const std::string& root = "");

} // namespace ucg::shm
