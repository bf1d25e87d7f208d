// Rooms for the blocks of a neighbourhood that go between hosts (graph::Request::rooms). Only two
// ranks know an edge, but a delegate that combines messages has to know how long the blocks are. So
// now and then, before a call, the ranks of each host tell one another how long their blocks have
// been. The other host hears the same from its own ranks, so nothing of this goes between hosts but
// three sums, by which all ranks choose alike.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "topo/topo.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/capi/agreement_interval.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::capi {

/// The rooms that one rank of one group wants.
class EdgeRooms {
  public:
    /// Takes in the edges that this rank has with other hosts in a blocking call that begins.
    /// Returns true if all ranks are to agree first.
    bool begins(std::vector<graph::EdgeRoom> edges);

    /// The longest block of each edge since ranks last agreed, ordered as rooms are. Both ends of
    /// an edge come to the same length.
    const std::vector<graph::EdgeRoom>& wanted() const { return wanted_; }
    /// Do the rooms that this rank has no longer fit? A wanted block is longer than its room, or
    /// all of them together have less than half the bytes of the rooms.
    bool outgrown() const;
    /// To be called when ranks have agreed: on rooms as they want them (`renewed`), or to keep
    /// those that they have.
    void agreed(bool renewed);

  private:
    AgreementInterval interval_;
    std::vector<graph::EdgeRoom> wanted_;
    std::vector<graph::EdgeRoom> given_; ///< wanted() when rooms were last renewed.
};

/// What all ranks have agreed on.
struct AgreedRooms {
    std::vector<graph::EdgeRoom> rooms; ///< Those of all ranks of this host.
    graph::Crossing crossing;

    bool operator==(const AgreedRooms&) const = default;
};

/// Runs a blocking collective of the group.
using RunCollective = std::function<ucg_status_t(const ucg_coll_params_t& params)>;

/// Adds up numbers over all ranks, in place.
ucg_status_t sum_up(const RunCollective& run, std::uint64_t* numbers, std::size_t count);

/// Gathers what the ranks of each host want, and sums up over all hosts what that is. Collective.
ucg_status_t gather_rooms(const RunCollective& run, const topo::Placement& placement, Rank rank,
                          const std::vector<graph::EdgeRoom>& wanted, AgreedRooms& agreed);

} // namespace ucg::capi
