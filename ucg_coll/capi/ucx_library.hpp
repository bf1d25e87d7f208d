// Loads UCX, and the transport over it, when a group first needs them.
#pragma once

#include <memory>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::capi {

/// Loads libucg_ucx and starts UCX. Fails with unreachable, not logged, if the library cannot be
/// loaded; else as UcxWorker::create() does.
Result<std::unique_ptr<transport::ProcessNetwork>>
open_ucx(const transport::ucx::UcxOptions& options);

} // namespace ucg::capi
