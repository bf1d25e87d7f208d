// The UCP context and worker of the process, and what UCP chose to open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/ucx/handles.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"

namespace ucg::transport::ucx {

/// What UCP opened after its own rules (UCX_TLS, UCX_NET_DEVICES, ...).
struct UcpInventory {
    struct Resource {
        std::string transport;
        std::string device;
    };
    std::vector<std::string> domains; ///< Names of memory domains.
    std::vector<Resource> resources;

    bool contains(std::string_view transport, std::string_view device) const;
    /// Whether something other than shared memory is there.
    bool has_network() const;
    /// Is there a network, and none but the kernel's TCP?
    bool only_tcp() const;
};

/// Reads the text that ucp_context_print_info() writes: UCX 1.13 has no call that tells.
UcpInventory parse_inventory(std::string_view text);

struct Ucp {
    UcpContext context;
    UcpWorker worker; ///< Destroyed before the context.
    std::string address;
    UcpInventory inventory;
};

/// What a TCP connection may have to send, by a link's rate; 0: as much as the kernel finds right,
/// megabytes in time.
std::uint64_t send_buffer_bytes(std::uint64_t link_bytes_per_second);

/// Makes context and worker, for active messages.
Result<Ucp> open_ucp(const UcxOptions& options);

/// A Status from UCX's code: "what: UCX's words".
Status ucx_failure(ucs_status_t status, std::string_view what);

} // namespace ucg::transport::ucx
