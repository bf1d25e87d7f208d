// Parting from the peers. Whoever ends flushes, while the peers still make progress: a flush may
// need their help (TCP acknowledges on demand). Then it says bye and waits for the answer, which
// means that the peer has taken everything out of buffers that go with this process (shared-memory
// transports) or with its sockets. Closing the endpoints then needs nobody: UCX is told to drop
// them, since its own flush would ask peers who may have stopped listening. All of it is bounded in
// time.
//
// Parting owns the requests that flush endpoints, and of each peer what peer.hpp lists under its
// good-byes.
//
// Invariant: the phase is `running` if and only if WorkerState::running(); it only moves on.
//
// Called by UcxCore, never within UCX's callbacks.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "ucg_coll/transport/ucx/connections.hpp"
#include "ucg_coll/transport/ucx/lanes.hpp"
#include "ucg_coll/transport/ucx/operations.hpp"
#include "ucg_coll/transport/ucx/peers.hpp"
#include "ucg_coll/transport/ucx/worker.hpp"

namespace ucg::transport::ucx {

class Parting {
  public:
    Parting(const Setup& setup, WorkerState& state, const Operations& operations,
            PeerProcesses& peers, Lanes& lanes, Connections& connections)
        : setup_(setup), state_(state), operations_(operations), peers_(peers), lanes_(lanes),
          connections_(connections) {}
    Parting(const Parting&) = delete;
    Parting& operator=(const Parting&) = delete;

    /// Begins to part from all peers, unless that has begun.
    void begin();
    /// Goes on with it. To be called after each progress of the worker, until it returns true.
    bool advance();

    /// Says bye to a peer of a worker that has failed. The peer may wait for this process even
    /// where this one has not heard of it yet. Its answer closes the connection. A worker that is
    /// closing anyway has said bye.
    void leave(Peer& peer);

    /// Take a peer's good-bye by UCP, that by the lane, and its answer to ours.
    void take_bye(Peer& peer, bool also_by_lane);
    void take_lane_bye(Peer& peer);
    void take_answer(Peer& peer);

    bool are_flushing() const { return !flushing_.empty(); }
    void reap_flushing();
    /// Is the connection to this peer being flushed?
    bool is_flushing(const Peer& peer) const;

  private:
    using Clock = std::chrono::steady_clock;

    /// An endpoint that UCP is flushing before the bye.
    struct Flushing {
        void* request;
        Peer* peer;
    };
    enum class Phase { running, parting, closing, closed };

    void part_from(Peer& peer);
    void say_bye(Peer& peer);
    bool all_parted() const;
    void start_closing();
    void handle_bye(Peer& peer);

    const Setup& setup_;
    WorkerState& state_;
    const Operations& operations_;
    PeerProcesses& peers_;
    Lanes& lanes_;
    Connections& connections_;
    std::vector<Flushing> flushing_;
    Clock::time_point deadline_;
    Phase phase_ = Phase::running;
};

} // namespace ucg::transport::ucx
