// The UCP context and worker of the process, and what UCP chose to open.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/ucx/handles.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::transport::ucx {

/// What UCP opened by its own rules (UCX_TLS, UCX_NET_DEVICES, ...).
struct UcpInventory {
    struct Resource {
        std::string transport;
        std::string device;
    };
    std::vector<std::string> domains; ///< Names of memory domains.
    std::vector<Resource> resources;

    bool contains(std::string_view transport, std::string_view device) const;
    /// Is there a resource that reaches other hosts?
    bool has_network() const;
    bool has_tcp() const;
    /// Is there a network, and none but the kernel's TCP?
    bool only_tcp() const;
};

/// Reads the text that ucp_context_print_info() writes: UCX 1.13 has no call that tells. Fails
/// where the text names no transport: a context has one at least, and who does not know them would
/// take other hosts' ranks to need no watching.
Result<UcpInventory> parse_inventory(std::string_view text);

/// An open UCP context with its worker.
struct Ucp {
    UcpContext context;
    UcpWorker worker; ///< Destroyed before the context.
    std::string address;
    UcpInventory inventory;
};

/// Returns how many bytes a TCP connection may hold unsent, by its link's rate. 0 stands for what
/// the kernel finds right, which in time grows to megabytes: where the rate is 0 (not known), and
/// for fast links.
std::uint64_t send_buffer_bytes(std::uint64_t link_bytes_per_second);

/// Returns the value of UCX_TCP_SYN_CNT by which the kernel repeats the first packet of a TCP
/// connection only once or twice if nobody answers; 0 for none. UCX waits for connections, and the
/// process with it: so for 3 or 7 s, and by the kernel's usual six repetitions for 127.
std::uint64_t syn_count(std::chrono::milliseconds connect_timeout);

/// Makes a context and a worker for active messages.
Result<Ucp> open_ucp(const UcxOptions& options);

/// Returns the failure for a code of UCX, with the text "what: UCX's words".
Status ucx_failure(ucs_status_t status, std::string_view what);

} // namespace ucg::transport::ucx
