// The part of a group's wire-up that connects its hosts by UCX, and ranks of a host that share no
// memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/task.hpp"
#include "ucg_coll/capi/topology_agreement.hpp"
#include "ucg_coll/capi/wireup/peers.hpp"
#include "ucg_coll/capi/wireup/wireup.hpp"

namespace ucg::capi {

/// What a rank has of UCX, and, where there are several hosts, of the switches between them.
struct NetworkEnd {
    std::uint64_t address_bytes = 0; ///< 0: it has no UCX.
    std::uint32_t only_tcp = 0;
    std::uint32_t group_id = 0; ///< By which number it is going to know the group.
    std::uint32_t waits = 0;    ///< GroupParams::waits.
    LearnedNetworks learned;    ///< By earlier groups.
    TopologyEnd topology;
};

/// In this order: exchange(), make_transport(), tell(), agree().
class NetworkWireup {
  public:
    /// All must outlive it. `one_kernel`: all ranks are on hosts of one. `waits`: as in
    /// GroupParams.
    NetworkWireup(Context& context, Peers& peers, WiredGroup& group, bool one_kernel, bool waits)
        : context_(context), peers_(peers), group_(group), one_kernel_(one_kernel), waits_(waits) {}

    /// The group knows its placement, and has shared memory if it has any. Collective.
    Task<Status> exchange();

    /// Does nothing where exchange() has needed the transport. May fail at this rank alone, with or
    /// without an exception.
    Status make_transport();

    /// An exchange that takes no memory: has this rank all that it needs so far? The last one asks
    /// so, and one before messages are timed. To be awaited. Collective.
    Peers::Ended tell(bool made);

    /// Has every rank? `told`: how that exchange ended. `mine`: why this rank has not, where that
    /// is known.
    Status agree(const Status& told, const Status& mine);

  private:
    Result<transport::Network*> start();
    Task<Status> exchange_addresses();
    void take_in(const std::vector<NetworkEnd>& ends);
    void place_hosts(std::span<const TopologyEnd> ends);
    bool may_learn() const;
    void take_learned(const std::vector<NetworkEnd>& ends);
    Task<Status> learn();
    Task<double> look();
    Status take_seen(std::vector<double> seen);
    std::vector<std::string> peers_by_ucx() const;

    Context& context_;
    Peers& peers_;
    WiredGroup& group_;
    bool one_kernel_;
    bool waits_;
    bool learns_ = false; ///< How long messages take is to be found out.
    transport::Network* network_ = nullptr;
    std::vector<std::uint32_t> group_ids_; ///< By rank.
    std::vector<std::uint64_t> lengths_;   ///< Of the ranks' addresses,
    GatheredTexts addresses_; ///< which lie here, as far apart as the longest one needs.
    GatheredValues<std::uint32_t> answers_; ///< Of all ranks, to the last question.
};

} // namespace ucg::capi
