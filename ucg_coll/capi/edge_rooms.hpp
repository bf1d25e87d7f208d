// Rooms for the blocks of a neighbourhood that go between hosts (graph::Request::rooms). Two ranks
// know an edge, and a delegate that combines messages has to know how long they are; so now and
// then, before a call that begins, the ranks of each host tell one another how long their blocks
// have been. The other host hears the same of its own ranks, so nothing of this goes between hosts
// but three sums, by which all choose alike.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "topo/topo.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/agreement_interval.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::capi {

/// What one rank wants, of one group.
class EdgeRooms {
  public:
    /// A blocking call begins, in which this rank has these edges with other hosts. True if all
    /// ranks are to agree first.
    bool begins(std::vector<graph::EdgeRoom> edges);

    /// The longest blocks since the last time, ordered as rooms are. Both ends of an edge come to
    /// the same.
    const std::vector<graph::EdgeRoom>& wanted() const { return wanted_; }
    /// Is that another thing than this rank has: longer than a room, or less than half of all?
    bool outgrown() const;
    /// Ranks have agreed: on what they want, or to leave it at what they have.
    void agreed(bool renewed);

  private:
    AgreementInterval interval_;
    std::vector<graph::EdgeRoom> wanted_;
    std::vector<graph::EdgeRoom> given_; ///< wanted() when rooms were last renewed.
};

/// What all ranks have agreed on.
struct AgreedRooms {
    std::vector<graph::EdgeRoom> rooms; ///< Of all ranks of this host.
    graph::Crossing crossing;

    bool operator==(const AgreedRooms&) const = default;
};

/// Runs a blocking collective of the group.
using RunCollective = std::function<ucg_status_t(const ucg_coll_params_t& params)>;

/// Adds up numbers of all ranks, in place.
ucg_status_t sum_up(const RunCollective& run, std::uint64_t* numbers, std::size_t count);

/// By all ranks: gathers what those of each host want, and sums up what that is.
ucg_status_t gather_rooms(const RunCollective& run, const topo::Placement& placement, Rank rank,
                          const std::vector<graph::EdgeRoom>& wanted, AgreedRooms& agreed);

} // namespace ucg::capi
