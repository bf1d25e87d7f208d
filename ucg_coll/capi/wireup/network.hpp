// The part of a group's wire-up that connects its hosts by UCX, and ranks of a host that share no
// memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/topology_agreement.hpp"
#include "ucg_coll/capi/wireup/peers.hpp"
#include "ucg_coll/capi/wireup/wireup.hpp"

namespace ucg::capi {

/// What a rank has of UCX, and, where there are several hosts, of the switches between them.
struct NetworkEnd {
    std::uint64_t address_bytes = 0; ///< 0: it has no UCX.
    std::uint64_t only_tcp = 0;
    TopologyEnd topology;
};

class NetworkWireup {
  public:
    /// All must outlive it. `one_kernel`: all ranks are on hosts of one.
    NetworkWireup(Context& context, Peers& peers, WiredGroup& group, bool one_kernel)
        : context_(context), peers_(peers), group_(group), one_kernel_(one_kernel) {}

    /// The group knows its placement, and has shared memory if it has any. Collective.
    Status connect();

  private:
    Result<transport::Network*> start();
    Result<std::vector<std::string>> exchange_addresses(transport::Network* network);
    void place_hosts(std::span<const TopologyEnd> ends);
    std::vector<std::string> peers_by_ucx(std::vector<std::string> addresses) const;

    Context& context_;
    Peers& peers_;
    WiredGroup& group_;
    bool one_kernel_;
};

} // namespace ucg::capi
