// The part of a group's wire-up that connects its hosts by UCX, and the ranks of a host if they
// share no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/context_network.hpp"
#include "ucg_coll/capi/process_facts.hpp"
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
    std::uint32_t attends = 0;  ///< GroupParams::attends.
    std::uint32_t knows = 0;    ///< 1: it knows the addresses of all ranks that UCX serves for it.
    LearnedNetworks learned;    ///< What earlier groups have found out.
    TopologyEnd topology;
};

/// To be called in this order: exchange(), make_transport(), tell(), agree().
class NetworkWireup {
  public:
    /// All arguments must outlive it. `processes`: Hello::network_process by rank, or empty.
    /// `one_kernel`: all ranks are on hosts under one kernel. `attends`: as in GroupParams.
    NetworkWireup(ContextNetwork& own, ProcessFacts& facts, const Config& config, Peers& peers,
                  WiredGroup& group, std::span<const std::uint64_t> processes, bool one_kernel,
                  bool attends)
        : own_(own), facts_(facts), config_(config), peers_(peers), group_(group),
          processes_(processes), one_kernel_(one_kernel), attends_(attends) {}

    /// Starts UCX; exchanges addresses, unless all ranks know those that they need; finds out how
    /// long messages take where not all ranks know that, and all may wait. The group must have its
    /// placement, and its shared memory if it has any. Collective.
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
    Result<transport::ProcessNetwork*> start();
    Task<Status> exchange_addresses();
    void add_known();
    NetworkEnd own_end();
    Status add_unknown();
    void take_in_network();
    void place_hosts();
    bool may_learn() const;
    void take_learned();
    Task<Status> learn();
    Task<double> look();
    Status take_seen(std::vector<double> seen);

    ContextNetwork& own_;
    ProcessFacts& facts_;
    const Config& config_;
    Peers& peers_;
    WiredGroup& group_;
    std::span<const std::uint64_t> processes_;
    bool one_kernel_;
    bool attends_;
    bool learns_ = false; ///< How long messages take is to be found out.
    transport::ProcessNetwork* network_ = nullptr;
    std::unique_ptr<transport::NetworkGroup> making_; ///< Null where UCX could not be started.
    std::vector<Rank> unknown_;            ///< Ranks that UCX serves and making_ does not have yet.
    transport::Transport* made_ = nullptr; ///< The group's, also once that has been made.
    std::vector<NetworkEnd> ends_;         ///< By rank.
    GatheredTexts addresses_; ///< By rank; each takes as much room as the longest. Null: not told.
    GatheredValues<std::uint32_t> answers_; ///< Those of all ranks to the last question.
};

} // namespace ucg::capi
