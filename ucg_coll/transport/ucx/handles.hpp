// Owners of UCX's C handles: each calls the function that UCX names for giving the handle back.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

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

/// Memory that UCT has allocated. Must be destroyed before its interface.
class UctMemory {
  public:
    UctMemory() = default;
    explicit UctMemory(const uct_allocated_memory_t& memory) : memory_(memory) {}
    UctMemory(UctMemory&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
    UctMemory& operator=(UctMemory&& other) noexcept {
        std::swap(memory_, other.memory_);
        return *this;
    }
    ~UctMemory() {
        if (memory_.address != nullptr) {
            uct_iface_mem_free(&memory_);
        }
    }

    void* data() const { return memory_.address; } ///< Null when there is none.
    uct_mem_h handle() const { return memory_.memh; }

  private:
    uct_allocated_memory_t memory_{};
};

/// UCT's key to a peer's memory. Must be destroyed before the memory domain.
class UctKey {
  public:
    UctKey() = default;
    UctKey(uct_component_h component, const uct_rkey_bundle_t& bundle)
        : component_(component), bundle_(bundle) {}
    UctKey(UctKey&& other) noexcept
        : component_(std::exchange(other.component_, nullptr)), bundle_(other.bundle_) {}
    UctKey& operator=(UctKey&& other) noexcept {
        std::swap(component_, other.component_);
        std::swap(bundle_, other.bundle_);
        return *this;
    }
    ~UctKey() {
        if (component_ != nullptr) {
            uct_rkey_release(component_, &bundle_);
        }
    }

    explicit operator bool() const { return component_ != nullptr; }
    uct_rkey_t value() const { return bundle_.rkey; }

  private:
    uct_component_h component_ = nullptr;
    uct_rkey_bundle_t bundle_{};
};

} // namespace ucg::transport::ucx
