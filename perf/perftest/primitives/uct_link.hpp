// A UCT interface opened by the names of its transport and device, its memory, and the connection
// to the other process of a pair (or of a process to itself). UCP is not used.
//
// Everything is released when the objects end. The end of UctLink is collective, since neither side
// may close what the other still uses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "perf/perftest/runtime.hpp"
#include "ucg_coll/transport/ucx/handles.hpp"

namespace ucg::perftest {

/// A memory domain, a worker and an interface of it, without connections. Used by one thread.
class UctResource {
  public:
    /// Opens the transport and the device that `ucx_info -d` names so. Fails with a list of what
    /// exists if this machine has no such pair.
    static Result<std::unique_ptr<UctResource>> open(const std::string& transport,
                                                     const std::string& device);

    UctResource(const UctResource&) = delete;
    UctResource& operator=(const UctResource&) = delete;

    uct_component_h component() const { return component_; }
    uct_md_h domain() const { return domain_.get(); }
    uct_worker_h worker() const { return worker_.get(); }
    uct_iface_h interface() const { return interface_.get(); }
    const uct_iface_attr_t& attributes() const { return attributes_; }
    const uct_md_attr_t& domain_attributes() const { return domain_attributes_; }
    const std::string& name() const { return name_; } ///< "posix/memory"

    /// Returns whether the domain gives keys for its memory, for use by other processes, too.
    bool has_keys() const {
        return (domain_attributes_.cap.flags & (UCT_MD_FLAG_ALLOC | UCT_MD_FLAG_REG)) != 0;
    }

    unsigned progress() const { return uct_worker_progress(worker_.get()); }
    /// Completes everything that was sent, to any peer.
    Status flush() const;

    /// Returns whether UCX has reported that the peer is lost. Checked in loops that wait for it.
    bool failed() const { return failed_; }
    /// REQUIRES: failed().
    Status failure_status() const;

  private:
    explicit UctResource(std::string name) : name_(std::move(name)) {}
    Status open_worker();
    Status find_domain(const std::string& transport, const std::string& device);
    Status open_interface(const std::string& transport, const std::string& device);
    static ucs_status_t on_error(void* self, uct_ep_h endpoint, ucs_status_t status);

    std::string name_;
    bool failed_ = false;
    ucs_status_t cause_ = UCS_OK;
    transport::ucx::AsyncContext async_;
    transport::ucx::UctWorker worker_;
    uct_component_h component_ = nullptr;
    transport::ucx::UctDomain domain_;
    transport::ucx::UctInterface interface_;
    uct_iface_attr_t attributes_{};
    uct_md_attr_t domain_attributes_{};
};

/// Memory that an interface can send from and receive into, registered with its domain if the
/// domain registers memory. Must end before its interface.
class TestMemory {
  public:
    /// Allocates memory for all kinds of access. `flags` are further UCT_MD_MEM_* flags.
    static Result<std::unique_ptr<TestMemory>> allocate(const UctResource& resource,
                                                        std::size_t bytes, unsigned flags);
    ~TestMemory() { uct_iface_mem_free(&memory_); }
    TestMemory(const TestMemory&) = delete;
    TestMemory& operator=(const TestMemory&) = delete;

    std::byte* data() const { return static_cast<std::byte*>(memory_.address); }
    std::size_t size() const { return memory_.length; }
    uct_mem_h handle() const { return memory_.memh; }

  private:
    explicit TestMemory(const uct_allocated_memory_t& memory) : memory_(memory) {}
    uct_allocated_memory_t memory_;
};

/// A connection to the peer, and the key of the memory that it has made accessible.
class UctLink {
  public:
    /// Connects rank r of two with the other one, or the only rank with itself. `target` is the
    /// memory that the peer's put, get and atomic operations will reach; `source`, which may be
    /// null, is kept for the caller. Collective; fails alike on all ranks.
    static Result<std::unique_ptr<UctLink>> connect(Runtime& runtime,
                                                    std::unique_ptr<UctResource> resource,
                                                    std::unique_ptr<TestMemory> target,
                                                    std::unique_ptr<TestMemory> source = nullptr);
    /// Waits for the peer: collective, unless a process is lost.
    ~UctLink();
    UctLink(const UctLink&) = delete;
    UctLink& operator=(const UctLink&) = delete;

    const UctResource& resource() const { return *resource_; }
    const TestMemory& target() const { return *target_; }
    /// REQUIRES: connect() was given a source.
    const TestMemory& source() const { return *source_; }
    uct_ep_h endpoint() const { return endpoint_.get(); }
    std::uint64_t remote_address() const { return remote_address_; }
    uct_rkey_t remote_key() const { return key_.rkey; }

    /// Returns when the peer has called it, too; progresses meanwhile.
    Status barrier() const;

  private:
    UctLink(Runtime& runtime, std::unique_ptr<UctResource> resource,
            std::unique_ptr<TestMemory> target, std::unique_ptr<TestMemory> source);
    Status create_endpoint(std::string& address);
    Result<std::string> pack_addresses(const std::string& endpoint_address) const;
    Status connect_to(const std::string& packed);

    Runtime& runtime_;
    std::unique_ptr<UctResource> resource_;
    std::unique_ptr<TestMemory> target_;
    std::unique_ptr<TestMemory> source_;
    transport::ucx::UctEndpoint endpoint_;
    std::uint64_t remote_address_ = 0;
    uct_rkey_bundle_t key_{UCT_INVALID_RKEY, nullptr, nullptr};
};

/// Returns the rank that a rank of a primitive test talks to. Fails unless there are two processes,
/// or one and `loopback` is true.
Result<Rank> find_peer(const Runtime& runtime, bool loopback);

} // namespace ucg::perftest
