#include "ucg_coll/transport/ucx/library.hpp"

#include <type_traits>
#include <utility>

using ucg::Result;
using ucg::transport::ProcessNetwork;
using ucg::transport::ucx::UcxOptions;
using ucg::transport::ucx::UcxWorker;

extern "C" __attribute__((visibility("default"))) void
ucg_ucx_open(const UcxOptions& options, ucg::LogLevel level, ucg::LogHandler log,
             Result<std::unique_ptr<ProcessNetwork>>& network) {
    ucg::set_log_level(level);
    ucg::set_log_sink({log, nullptr});
    Result<std::unique_ptr<UcxWorker>> worker = UcxWorker::create(options);
    if (worker.ok()) {
        network = std::unique_ptr<ProcessNetwork>(std::move(*worker));
    } else {
        network = worker.status();
    }
}

static_assert(std::is_same_v<decltype(ucg_ucx_open), ucg::transport::ucx::Open>);
