// The short lane to each peer: which route is tried, how its ends come together, and the greeting
// that proves it. UCP carries everything until then, and these messages too, but the greetings.
//
// An endpoint that connects to an interface serves one direction, and each process begins its own.
// Where endpoints connect to one another, one connection serves both:
//
//   A                                   B
//   makes an endpoint   -- offer ---->  makes one, connects it to A's
//   connects it to B's  <- acceptance -
//   greets by the lane  ------------->  knows by it that A is connected; answers, and greets
//   open                <-- answer ---
//                       --- answer -->  open
//
// So nobody sends on a connection of which the other end may not stand yet: InfiniBand would take
// that for a failure of the network. If both have offered, the offer of the smaller process id
// holds. Whoever has another lane to the peer refuses; what fails is refused or withdrawn, and the
// next route is tried.
//
// Lanes owns the interfaces of the short lane, and of each peer the lane and the ring that the peer
// may write. Sending on an open lane needs none of this: see UcxMessages.
//
// Invariants: a peer has a ring if and only if it is in `line_peers_`. No error of an endpoint that
// was given up is in `errors_`: the next endpoint may have the same address.
//
// Called by UcxCore, which polls and hands on what has arrived, and by whoever makes and ends
// connections. note_error() and acknowledge() may be called within UCX's callbacks, all others not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ucg_coll/transport/ucx/context.hpp"
#include "ucg_coll/transport/ucx/peer.hpp"
#include "ucg_coll/transport/ucx/peers.hpp"
#include "ucg_coll/transport/ucx/short_lane.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"
#include "ucg_coll/transport/ucx/worker.hpp"

namespace ucg::transport::ucx {

/// What the lanes need of the connections by UCP.
class LaneHost {
  public:
    /// Sends a control message, now or as soon as there is a connection.
    virtual void tell_peer(Peer& peer, Control what, std::uint32_t detail, std::string payload) = 0;
    /// Fails the peer: its open lane broke, so what was on the way is lost.
    virtual void fail_connection(Peer& peer, ucs_status_t status) = 0;

  protected:
    ~LaneHost() = default;
};

/// What came from a process that no group here has named yet.
struct Stranger {
    std::optional<LaneNotice> greeting;  ///< The latest.
    std::optional<ControlArrival> offer; ///< The latest of an endpoint.
};

class Lanes {
  public:
    Lanes(const Setup& setup, WorkerState& state, PeerProcesses& peers, LaneHost& host)
        : setup_(setup), state_(state), peers_(peers), host_(host) {}
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;

    /// Opens the interfaces that can serve. If none can, no peer gets a lane.
    void open(const UcpInventory& inventory, LaneSink& sink);
    bool in_use() const { return short_lane_ != nullptr; }
    std::vector<LaneAddress> addresses() const;
    const std::vector<InterfaceInfo>& interfaces() const { return interfaces_; }
    /// Texts for people: about the interfaces, in lines, and about the lane to a peer.
    std::string describe() const;
    std::string describe(const Peer& peer) const;

    /// Polls the interfaces, which leads to the LaneSink. Returns how much has come.
    unsigned progress() { return short_lane_ ? short_lane_->progress() : 0; }
    /// Calls `take` with each line that has come. Returns how many there were.
    template <typename Take>
    unsigned take_lines(Take take);

    /// Begins a lane to the peer, unless one was begun before. To be called once the peer is
    /// connected.
    void start(Peer& peer);
    /// Gives up the lane to the peer, and takes back the peer's ring. That is given away again
    /// (`reusable`) only if the peer is known to write no more.
    void end(Peer& peer, bool reusable);
    /// As end(), for a peer that is about to be destroyed.
    void forget(Peer& peer);
    /// Says bye by the lanes of all peers where that is due.
    void say_byes();

    /// Takes a greeting.
    void answer_greeting(const LaneNotice& greeting);
    /// Takes word of how many of our lines a peer has taken.
    void acknowledge(const LaneNotice& notice);
    /// Takes a control message that is_about_lane().
    void handle_control(Peer& peer, const ControlHeader& header, const std::string& payload);
    /// Takes one from a process that is not a peer.
    void handle_stranger(const ControlHeader& header, const std::string& payload);

    /// What came from the process before it was a peer. Null if nothing has.
    const Stranger* find_stranger(std::uint64_t process) const;
    void forget_stranger(std::uint64_t process) { strangers_.erase(process); }

    void note_error(uct_ep_h endpoint, ucs_status_t status);
    bool have_errors() const { return !errors_.empty(); }
    void handle_errors();

    /// Are there peers for which our greeting found no room yet?
    bool are_to_greet() const { return !to_greet_.empty(); }
    void greet_again();

  private:
    void try_routes(Peer& peer);
    void offer_endpoint(Peer& peer);
    LaneNotice notice_to(const Peer& peer, LaneNotice::What what) const;
    void greet(Peer& peer);
    void greet_or_next(Peer& peer);
    void drop(Peer& peer);
    std::string ring_for(Peer& peer, std::size_t own);
    void drop_ring(Peer& peer, bool reusable);
    void open_lane(Peer& peer, const std::string& payload);
    template <typename Take>
    unsigned take_lines_of(Peer& peer, Take take);
    void report_lines(Peer& peer) const;
    void handle_offer(Peer& peer, std::uint32_t attempt, const std::string& payload);
    bool take_offer(Peer& peer, std::uint32_t attempt, const std::string& payload);
    void handle_acceptance(Peer& peer, std::uint32_t attempt, const std::string& address);
    void handle_error(Peer& peer, ucs_status_t status);

    const Setup& setup_;
    WorkerState& state_;
    PeerProcesses& peers_;
    LaneHost& host_;
    std::unique_ptr<ShortLane> short_lane_; ///< Null when switched off or without interfaces.
    std::vector<InterfaceInfo> interfaces_;
    std::unordered_map<std::uint64_t, Stranger> strangers_; ///< By process id.
    std::vector<Peer*> line_peers_;                         ///< Those that have a ring of ours.
    std::vector<Peer*> to_greet_; ///< Those for which our greeting found no room yet.
    std::vector<std::pair<uct_ep_h, ucs_status_t>> errors_;
};

template <typename Take>
unsigned Lanes::take_lines(Take take) {
    unsigned taken = 0;
    for (Peer* peer : line_peers_) {
        if (peer->lines_in->has_news() || peer->lines_in->owes()) {
            taken += take_lines_of(*peer, take);
        }
    }
    return taken;
}

template <typename Take>
unsigned Lanes::take_lines_of(Peer& peer, Take take) {
    unsigned count = 0;
    for (; count < kLinesPerRing; ++count) {
        const std::optional<RingLine> line = peer.lines_in->take();
        if (!line) {
            break;
        }
        peer.lines_out.acknowledge(line->taken);
        if (line->bytes <= kLineDataBytes) {
            take(*line);
        }
    }
    if (peer.lines_in->owes() && peer.lane_state == LaneState::open) {
        report_lines(peer);
    }
    return count;
}

} // namespace ucg::transport::ucx
