// Processes that mpirun, srun or another launcher has started, which find one another by PMIx.
#pragma once

#include <memory>

#include "perf/perftest/runtime.hpp"

namespace ucg::perftest {

/// Was this process started by a launcher that offers PMIx?
bool pmix_is_there();

/// Fails with unsupported in a build without PMIx. When a process is lost, its launcher ends the
/// others.
Result<std::unique_ptr<Runtime>> join_by_pmix();

} // namespace ucg::perftest
