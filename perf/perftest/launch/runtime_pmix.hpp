// Processes that mpirun, srun or another launcher has started, which find one another by PMIx.
#pragma once

#include <memory>

#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// Returns whether a launcher that offers PMIx started this process.
bool pmix_is_there();

/// Joins the processes that the launcher has started. Fails with unsupported in a build without
/// PMIx. When a process is lost, the launcher ends the others.
Result<std::unique_ptr<Runtime>> join_by_pmix();

} // namespace ucg::perftest
