// The two teams that a rank may belong to in a two-level algorithm: the ranks of its host and, if
// it leads there, the leaders of all hosts.
#pragma once

#include <array>

#include "ucg_coll/plan/messages/best.hpp"
#include "ucg_coll/plan/parts/needs.hpp"

namespace ucg::plan {

class TwoLevels {
  public:
    /// The root, if there is one, leads its host, so that it needs no message from a leader; the
    /// other hosts are led by their first rank. `facts` must outlive this.
    TwoLevels(const Facts& facts, Rank rank, Rank root = kNoRank);

    /// The ranks of this host.
    const Team& host() const { return host_; }
    /// The index in host() of this host's leader: 0 unless the root is on this host.
    Rank host_leader() const { return host_leader_; }
    /// Does this rank lead its host?
    bool leads() const { return host_.index() == host_leader_; }

    /// The leaders of all hosts, in the order of hosts. REQUIRES: leads().
    const Team& leaders() const {
        UCG_ASSERT(leads());
        return leaders_;
    }
    /// The root's index in leaders(); kNoRank without a root.
    Rank root_host() const { return root_host_; }

  private:
    Team host_;
    Team leaders_;
    Rank host_leader_ = 0;
    Rank root_host_ = kNoRank;
};

inline constexpr Need kSeveralHosts = {
    "several hosts",
    [](const Facts& facts, const graph::Request&) { return facts.placement.host_count() > 1; }};
inline constexpr Need kSharedHost = {"several ranks on one of the hosts",
                                     [](const Facts& facts, const graph::Request&) {
                                         return facts.placement.ranks_per_host_max() > 1;
                                     }};
/// Reductions by host combine in rank order only if the ranks of each host follow one another.
inline constexpr Need kHostsInOrder = {"a commutative operator or hosts of consecutive ranks",
                                       [](const Facts& facts, const graph::Request& request) {
                                           return request.commutative ||
                                                  facts.placement.hosts_are_contiguous();
                                       }};
inline constexpr std::array kTwoLevelNeeds = {kSeveralHosts, kSharedHost};
inline constexpr std::array kTwoLevelReductionNeeds = {kSeveralHosts, kSharedHost, kHostsInOrder};

} // namespace ucg::plan
