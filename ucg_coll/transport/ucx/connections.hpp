// The connections to peers by UCP: endpoints made on first use, tried again where UCX could not
// make them, failed, and closed; and the control messages that go by them.
//
// Connections owns the endpoints and the requests that close them, and of each peer what peer.hpp
// lists under its connection. It knows nothing of what waits for a connection: a ConnectionUser
// sends that.
//
// Invariants: a peer with an endpoint is in `owners_`, by that endpoint; endpoints that are being
// closed are not. A peer with a refusal, and no failure, is in `refused_`.
//
// Called by whoever sends to a peer, or hears from one. Calls UCX, so nothing here may be called
// within UCX's callbacks, but for resend().
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ucg_coll/transport/ucx/lanes.hpp"
#include "ucg_coll/transport/ucx/operations.hpp"
#include "ucg_coll/transport/ucx/peers.hpp"
#include "ucg_coll/transport/ucx/worker.hpp"

namespace ucg::transport::ucx {

/// Who has messages that wait for connections.
class ConnectionUser {
  public:
    /// Sends what waits for the connection to the peer, which stands now.
    virtual void send_waiting(Peer& peer) = 0;

  protected:
    ~ConnectionUser() = default;
};

class Connections final : public LaneHost {
  public:
    Connections(const Setup& setup, WorkerState& state, Operations& operations,
                PeerProcesses& peers, Lanes& lanes, ConnectionUser& user)
        : setup_(setup), state_(state), operations_(operations), peers_(peers), lanes_(lanes),
          user_(user) {}
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    /// Connects to the peer, unless there is a connection. Returns false when the peer has failed,
    /// or when it is to be tried again later: then its failure is ok.
    bool connect(Peer& peer) { return peer.endpoint != nullptr || make(peer); }

    /// Sends a control message. REQUIRES: the peer is connected.
    void send_control(Peer& peer, Control what, std::uint32_t detail, std::string_view payload);
    void tell_peer(Peer& peer, Control what, std::uint32_t detail, std::string payload) override;

    /// Fails the messages that wait here to be sent to the peer, or to come from it. Returns how
    /// many they are.
    static unsigned fail(Peer& peer, const Status& why);
    void fail_connection(Peer& peer, ucs_status_t status) override;

    /// Begins to close the peer's endpoint, if there is one; if the peer has failed, its messages
    /// are given up once it is closed. REQUIRES: the peer has failed, or nothing that matters is on
    /// the way.
    void close(Peer& peer, bool failed);

    /// Closes the connections of peers that have not let go of the group's messages, so that UCX
    /// gives back what it held for them. Returns whether there are such peers.
    bool drop_holders(const GroupState& group);

    /// The peer has told that it could not connect at first. If this process had connected by then,
    /// UCX there could not answer, and what waits here for the answer would wait for ever, unsent.
    /// If the peer's connection has been made since, the two connections are one, which must not be
    /// closed: then a probe goes out.
    void doubt(Peer& peer);

    /// Notes that an earlier connection gave back something unsent, which goes by the next one:
    /// what the ConnectionUser has, or a control message.
    void resend(Peer& peer) { to_resend_.push_back(&peer); }
    void resend(Peer& peer, ControlMessage message);

    /// Have endpoints reported errors?
    bool have_errors() const { return !errors_.empty(); }
    void handle_errors();

    /// Are there connections to be made again, or to be looked after until they stand?
    bool are_due() const { return !to_resend_.empty() || !doubted_.empty() || !refused_.empty(); }
    void work_off();

    /// Are endpoints being closed?
    bool are_closing() const { return !closing_.empty(); }
    void reap_closing();
    /// Gives up the connections that have not closed in time.
    void abandon_closing();

    /// Does UCX hold something for the peer of which the end will lead to it?
    bool hold(const Peer& peer) const;
    /// To be called before the peer is destroyed. REQUIRES: not hold(peer).
    void forget(const Peer& peer);

  private:
    /// An endpoint that UCP is closing.
    struct Closing {
        void* request;
        Peer* peer;
        bool failed; ///< The messages to and from the peer are given up once it is closed.
    };

    using Clock = std::chrono::steady_clock;

    bool make(Peer& peer);
    bool must_wait(Peer& peer);
    void refuse(Peer& peer, ucs_status_t status, Clock::time_point begin);
    void begin_tries(Refusal& refusal, Clock::time_point begin) const;
    bool put_off(Peer& peer, ucs_status_t status, Clock::time_point begin);
    static bool is_awaited(const Peer& peer);
    void retry_refused();
    void settle_doubts();
    void start_over(Peer& peer);
    void send_unsent(Peer& peer);
    void give_up_all(const Peer& peer);
    bool may_drop(const Peer& peer) const;
    static void on_error(void* argument, ucp_ep_h endpoint, ucs_status_t status);

    const Setup& setup_;
    WorkerState& state_;
    Operations& operations_;
    PeerProcesses& peers_;
    Lanes& lanes_;
    ConnectionUser& user_;
    std::unordered_map<ucp_ep_h, Peer*> owners_;
    std::vector<std::pair<ucp_ep_h, ucs_status_t>> errors_; ///< That callbacks leave behind.
    std::vector<Peer*> refused_; ///< Those with a refusal: connections to be tried again.
    Clock::duration spent_{};    ///< What tries that were refused have taken, of all peers.
    Clock::time_point rest_end_; ///< No connection is tried before: one has taken long.
    std::vector<Peer*> doubted_; ///< Those to which our connection may wait for an answer for ever.
    std::vector<Peer*> to_resend_; ///< Those to which what came back unsent is to be sent again.
    std::vector<Closing> closing_;
};

} // namespace ucg::transport::ucx
