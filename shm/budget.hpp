// How much memory this process may still use: of the machine, of the control groups it is in and of
// the memory nodes (NUMA) that it may use. Beyond it the kernel kills processes, or slows them
// down, so the heap asks before it takes.
#pragma once

#include <cstdint>
#include <string>

namespace ucg::shm {

/// Memory that a process may use.
struct MemoryBudget {
    std::uint64_t total = 0;     ///< Bytes that could be used if nothing else were.
    std::uint64_t available = 0; ///< Bytes that can be used now; caches that can be dropped count.
};

/// Returns the budget of the calling thread, see ucg_shm_memory_budget(). What cannot be read
/// limits nothing. `root` is prefixed to every path, for tests.
MemoryBudget memory_budget(const std::string& root = "");

} // namespace ucg::shm
