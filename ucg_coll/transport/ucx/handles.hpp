// Owners of UCX's C handles: each calls the function that UCX names for giving the handle back.
#pragma once

#include <memory>
#include <type_traits>

#include <ucp/api/ucp.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

namespace ucg::transport::ucx {

template <auto Release>
struct Releaser {
    template <typename T>
    void operator()(T* handle) const {
        Release(handle);
    }
};

/// `Handle` is a pointer type, such as ucp_context_h.
template <typename Handle, auto Release>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Releaser<Release>>;

using UcpContext = Owned<ucp_context_h, ucp_cleanup>;
using UcpWorker = Owned<ucp_worker_h, ucp_worker_destroy>;
using UcpConfig = Owned<ucp_config_t*, ucp_config_release>;
using AsyncContext = Owned<ucs_async_context_t*, ucs_async_context_destroy>;
using UctWorker = Owned<uct_worker_h, uct_worker_destroy>;
using UctDomain = Owned<uct_md_h, uct_md_close>;
using UctInterface = Owned<uct_iface_h, uct_iface_close>;
using UctEndpoint = Owned<uct_ep_h, uct_ep_destroy>;

} // namespace ucg::transport::ucx
