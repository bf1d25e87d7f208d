// The two teams that a rank may belong to in a two-level algorithm: the ranks of its host and, if
// it leads there, the leaders of all hosts.
#pragma once

#include "ucg_coll/plan/messages/best.hpp"

namespace ucg::plan {

class TwoLevels {
  public:
    /// The root, if there is one, leads its host, so that it needs no message from a leader; the
    /// other hosts are led by their first rank. `facts` must outlive this.
    TwoLevels(const Facts& facts, Rank rank, Rank root = kNoRank);

    /// The ranks of this host.
    const Team& host() const { return host_; }
    /// Who leads this host: its index in host(). Without a root 0.
    Rank host_leader() const { return host_leader_; }
    bool leads() const { return host_.index() == host_leader_; }

    /// One rank of each host, by host. REQUIRES: leads().
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

/// Reductions by host combine in rank order only if the ranks of each host follow one another.
bool eligible_for_two_level_reduction(const Facts& facts, const graph::Request& request);
inline constexpr std::string_view kTwoLevelNeeds = "several hosts, one of them with several ranks";
inline constexpr std::string_view kTwoLevelReductionNeeds =
    "several hosts, one of them with several ranks; if the operator does not commute, the ranks of "
    "each host must follow one another";

} // namespace ucg::plan
