// When a wait calls the host's progress.
#pragma once

#include <chrono>

#include "shm/neighbours.hpp"

namespace ucg::capi {

/// A call of the host's progress costs as much as some polls of ours, and somebody may wait there
/// for what we hold up. A wait calls it once per kPolls idle polls after those of the first rung.
/// It calls it before each yield as well where the next chance may be far: where giving the
/// processor away has cost a time slice. And where the host has had something to do during the
/// wait, since more may follow. Else that would lengthen the turns of all ranks of a processor by
/// more than it saves: ranks that only wait give the processor back within microseconds. Where the
/// group has a network, a call may look at sockets, and comes no more often than in other waits.
class HostPolls {
  public:
    static constexpr unsigned kPolls = 4;

    explicit HostPolls(bool over_network) : over_network_(over_network) {}

    /// Is the host's progress to be called at that idle poll, counted from 1? `yields`: the
    /// processor is given away next. `computing`: a neighbour is believed to compute on it.
    bool due(unsigned idle_poll, bool yields, bool computing) const {
        return idle_poll % kPolls == 0 || (yields && !over_network_ && (often_ || computing));
    }
    /// Notes that the host's progress was called, and found so many events.
    void called(unsigned events) { often_ = often_ || events > 0; }
    /// Notes that the processor was given away, and came back after `took`.
    void gave_way(std::chrono::nanoseconds took) {
        often_ = often_ || took >= shm::Neighbours::kSlice;
    }

  private:
    bool over_network_;
    bool often_ = false;
};

} // namespace ucg::capi
