#include "shm/budget.hpp"

#include "shm/memory_budget.h"

namespace ucg::shm {

MemoryBudget memory_budget(const std::string& root) {
    const ucg_shm_budget budget = ucg_shm_memory_budget(root.c_str());
    return {budget.total, budget.available};
}

} // namespace ucg::shm
