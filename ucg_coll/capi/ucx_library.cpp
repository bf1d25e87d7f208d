#include "ucg_coll/capi/ucx_library.hpp"

#include <dlfcn.h>

#include "ucg_coll/transport/ucx/library.hpp"

namespace ucg::capi {

using transport::ProcessNetwork;

/// The library stays loaded: UCX cannot be unloaded either.
Result<std::unique_ptr<ProcessNetwork>> open_ucx(const transport::ucx::UcxOptions& options) {
    void* library = ::dlopen(transport::ucx::kLibrary, RTLD_NOW | RTLD_LOCAL);
    void* open = library != nullptr ? ::dlsym(library, transport::ucx::kOpen) : nullptr;
    if (open == nullptr) {
        return failure(Code::unreachable,
                       "UCX cannot be loaded: {}. {} is installed with libucg, in the folder ucg "
                       "beside it",
                       ::dlerror(), transport::ucx::kLibrary);
    }
    Result<std::unique_ptr<ProcessNetwork>> network = std::unique_ptr<ProcessNetwork>();
    reinterpret_cast<transport::ucx::Open*>(open)(options, log_level(), pass_log_line, network);
    return network;
}

} // namespace ucg::capi
