// The part of a group's wire-up that connects its hosts by UCX, and the ranks of a host if they
// share no memory.
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

/// What a rank tells of UCX, and, where there are several hosts, of the switches between them.
struct NetworkEnd {
    std::uint64_t address_bytes = 0; ///< 0: it has no UCX.
    std::uint32_t only_tcp = 0;
    std::uint32_t group_id = 0; ///< The number by which it is going to know the group.
    std::uint32_t waits = 0;    ///< GroupParams::waits.
    LearnedNetworks learned;    ///< What earlier groups have found out.
    TopologyEnd topology;
};

/// To be called in this order: exchange(), make_transport(), tell(), agree().
class NetworkWireup {
  public:
    /// All arguments must outlive it. `one_kernel`: all ranks are on hosts under one kernel.
    /// `waits`: as in GroupParams.
    NetworkWireup(Context& context, Peers& peers, WiredGroup& group, bool one_kernel, bool waits)
        : context_(context), peers_(peers), group_(group), one_kernel_(one_kernel), waits_(waits) {}

    /// Starts UCX and exchanges addresses; finds out how long messages take where not all ranks
    /// know that, and all may wait. The group must have its placement, and its shared memory if it
    /// has any. Collective.
    Task<Status> exchange();

    /// Makes the transport, unless exchange() has needed it already. May fail at this rank alone,
    /// with or without an exception.
    Status make_transport();

    /// An exchange that takes no memory, in which each rank tells whether it has all that it needs
    /// so far (`made`). It is the last exchange, and one like it comes before messages are timed.
    /// To be awaited. Collective.
    Peers::Ended tell(bool made);

    /// Returns ok if every rank has all that it needs. `told`: how that exchange ended. `mine`: why
    /// this rank has not, where that is known.
    Status agree(const Status& told, const Status& mine);

    /// To be called when this rank fails and the others need not know. Ranks that have made the
    /// group must not wait for this one to take their messages: what they ask to send is declined.
    /// A rank that waits for a message of this one is not told. What was made of the group's
    /// WiredGroup must still be there. Throws nothing.
    void break_off() {
        if (made_ != nullptr) {
            made_->abandon();
        }
    }

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
    transport::Transport* made_ = nullptr;  ///< The group's, also once that has been made.
    std::vector<std::uint32_t> group_ids_;  ///< By rank.
    std::vector<std::uint64_t> lengths_;    ///< Lengths of the ranks' addresses in bytes;
    GatheredTexts addresses_;               ///< each of these takes as much room as the longest.
    GatheredValues<std::uint32_t> answers_; ///< Those of all ranks to the last question.
};

} // namespace ucg::capi
