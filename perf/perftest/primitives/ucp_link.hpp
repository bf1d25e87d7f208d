// A UCP context, worker and endpoint to the other process of a pair (or of a process to itself),
// with memory to send from and memory that the peer can reach. Transports are chosen as for every
// program over UCP: by UCX_TLS and UCX_NET_DEVICES.
//
// Everything is released when the link ends. That is collective, since neither side may close what
// the other still uses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "perf/perftest/runtime.hpp"
#include "ucg_coll/transport/ucx/handles.hpp"

namespace ucg::perftest {

/// What a test asks of UCP.
struct UcpOptions {
    std::uint64_t features = 0;   ///< UCP_FEATURE_*
    std::size_t buffer_bytes = 0; ///< Length of source() and of target().
    bool error_handling = false;  ///< Whether endpoints report the loss of the peer.
    bool nonblocking_registration = false;
};

/// Memory that UCP has allocated and mapped. Must end before its context.
class UcpMemory {
  public:
    static Result<std::unique_ptr<UcpMemory>> allocate(ucp_context_h context, std::size_t bytes,
                                                       bool nonblocking);
    ~UcpMemory() { ucp_mem_unmap(context_, handle_); }
    UcpMemory(const UcpMemory&) = delete;
    UcpMemory& operator=(const UcpMemory&) = delete;

    std::byte* data() const { return data_; }
    ucp_mem_h handle() const { return handle_; }

  private:
    UcpMemory(ucp_context_h context, ucp_mem_h handle) : context_(context), handle_(handle) {}
    ucp_context_h context_;
    ucp_mem_h handle_;
    std::byte* data_ = nullptr;
};

using UcpRemoteKey = transport::ucx::Owned<ucp_rkey_h, ucp_rkey_destroy>;

/// A connection to the peer and the memory of both. Used by one thread.
class UcpLink {
  public:
    /// Connects rank r of two with the other one, or the only rank with itself, and completes the
    /// wire-up. Collective; fails alike on all ranks.
    static Result<std::unique_ptr<UcpLink>> open(Runtime& runtime, const UcpOptions& options);
    /// Waits for the peer: collective, unless a process is lost.
    ~UcpLink();
    UcpLink(const UcpLink&) = delete;
    UcpLink& operator=(const UcpLink&) = delete;

    ucp_worker_h worker() const { return worker_.get(); }
    ucp_ep_h endpoint() const { return endpoint_; }
    const UcpMemory& source() const { return *source_; }
    const UcpMemory& target() const { return *target_; }
    /// The address and the key of the peer's target(). The key is null unless one-sided features
    /// were asked for.
    std::uint64_t remote_address() const { return remote_address_; }
    ucp_rkey_h remote_key() const { return remote_key_.get(); }

    /// Sets the handler of active messages; a null `callback` removes it.
    Status set_am_handler(unsigned id, ucp_am_recv_callback_t callback, void* argument,
                          unsigned flags) const;

    unsigned progress() const { return ucp_worker_progress(worker_.get()); }
    Status flush() const;
    /// Returns when the peer has called it, too; progresses meanwhile.
    Status barrier() const;

    /// Returns whether UCX has reported that the peer is lost. Only with error_handling.
    bool failed() const { return failed_; }
    /// REQUIRES: failed().
    Status failure_status() const;

  private:
    explicit UcpLink(Runtime& runtime) : runtime_(runtime) {}
    Status open_context(const UcpOptions& options);
    Status open_worker();
    Status allocate(const UcpOptions& options);
    Result<std::string> pack_addresses(const UcpOptions& options) const;
    Status connect_to(const std::string& packed, const UcpOptions& options);
    void close_endpoint();
    static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status);

    Runtime& runtime_;
    bool failed_ = false;
    ucs_status_t cause_ = UCS_OK;
    transport::ucx::UcpContext context_;
    std::unique_ptr<UcpMemory> source_;
    std::unique_ptr<UcpMemory> target_;
    transport::ucx::UcpWorker worker_;
    ucp_ep_h endpoint_ = nullptr;
    UcpRemoteKey remote_key_;
    std::uint64_t remote_address_ = 0;
};

} // namespace ucg::perftest
