// The one function of libucg_ucx, the library that this folder is built as. It comes with libucg
// and fits that one alone: the two share C++ types.
#pragma once

#include <memory>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/log_handler.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::transport::ucx {

inline constexpr const char* kLibrary = "libucg_ucx.so";
inline constexpr const char* kOpen = "ucg_ucx_open";

/// Starts UCX, by UcxWorker::create(), and stores the result in `network`. The library has a log
/// level and a log handler of its own, which this sets to `level` and `log`.
using Open = void(const UcxOptions& options, LogLevel level, LogHandler log,
                  Result<std::unique_ptr<ProcessNetwork>>& network);

} // namespace ucg::transport::ucx
