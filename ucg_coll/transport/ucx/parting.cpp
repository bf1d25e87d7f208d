#include "ucg_coll/transport/ucx/parting.hpp"

#include <algorithm>
#include <utility>

namespace ucg::transport::ucx {

void Parting::begin() {
    if (!state_.running()) {
        return;
    }
    state_.stop();
    phase_ = Phase::parting;
    deadline_ = Clock::now() + setup_.options.close_timeout;
    flushing_.reserve(peers_.size());
    peers_.visit([this](Peer& peer) { part_from(peer); });
    lanes_.say_byes();
}

/// Flushes the connection to the peer, if there is one, and says bye.
void Parting::part_from(Peer& peer) {
    if (peer.endpoint == nullptr || !peer.failure.ok()) {
        return;
    }
    ucp_request_param_t parameters;
    parameters.op_attr_mask = 0;
    const ucs_status_ptr_t request = ucp_ep_flush_nbx(peer.endpoint, &parameters);
    if (UCS_PTR_IS_PTR(request)) {
        flushing_.push_back({request, &peer});
    } else {
        say_bye(peer);
    }
}

void Parting::reap_flushing() {
    for (auto next = flushing_.begin(); next != flushing_.end();) {
        if (ucp_request_check_status(next->request) == UCS_INPROGRESS) {
            ++next;
            continue;
        }
        const Flushing flushed = *next;
        next = flushing_.erase(next); // Before the bye, which may find no memory.
        ucp_request_free(flushed.request);
        say_bye(*flushed.peer);
    }
}

void Parting::say_bye(Peer& peer) {
    if (peer.endpoint == nullptr || !peer.failure.ok()) {
        return;
    }
    peer.lane_bye_due = peer.lane_state == LaneState::open;
    connections_.send_control(peer, Control::bye, peer.lane_bye_due ? 1 : 0, setup_.self.ucp);
}

bool Parting::all_parted() const {
    bool all = true;
    peers_.visit([&](const Peer& peer) {
        all = all && (peer.endpoint == nullptr || !peer.failure.ok() || peer.bye_answered);
    });
    return all;
}

bool Parting::advance() {
    const bool late = Clock::now() >= deadline_;
    switch (phase_) {
    case Phase::parting:
        lanes_.say_byes();
        if ((all_parted() && operations_.active() == 0) || late) {
            start_closing();
        }
        return false;
    case Phase::closing:
        if (!connections_.are_closing() || late) {
            connections_.abandon_closing();
            phase_ = Phase::closed;
        }
        return phase_ == Phase::closed;
    case Phase::running:
    case Phase::closed: break;
    }
    return true;
}

void Parting::start_closing() {
    phase_ = Phase::closing;
    for (const Flushing& flushing : std::exchange(flushing_, {})) { // Time was up.
        ucp_request_free(flushing.request);
    }
    deadline_ = Clock::now() + setup_.options.close_timeout;
    peers_.visit([this](Peer& peer) {
        lanes_.end(peer, false);
        connections_.close(peer, false);
    });
}

void Parting::leave(Peer& peer) {
    if (!state_.running()) {
        return;
    }
    lanes_.end(peer, false);
    if (peer.endpoint != nullptr || (!peer.connected && connections_.connect(peer))) {
        connections_.send_control(peer, Control::bye, 0, setup_.self.ucp);
    }
}

void Parting::take_bye(Peer& peer, bool also_by_lane) {
    peer.ucp_bye_came = true;
    peer.lane_bye_expected = also_by_lane;
    handle_bye(peer);
}

void Parting::take_lane_bye(Peer& peer) {
    peer.lane_bye_came = true;
    handle_bye(peer);
}

void Parting::take_answer(Peer& peer) {
    peer.bye_answered = true;
    peer.lane_bye_came = true; // Before it answered, the peer closed its end of the lane.
    handle_bye(peer);
}

/// Parts from a peer once its bye has come by all ways: then everything that it sent is here.
void Parting::handle_bye(Peer& peer) {
    if (peer.left || !peer.ucp_bye_came || (peer.lane_bye_expected && !peer.lane_bye_came)) {
        return;
    }
    const bool was_well = peer.failure.ok();
    peer.left = true;
    peers_.note_departed(peer);
    if (Connections::fail(peer, closed_by_peer()) > 0) {
        log(LogLevel::warn, "ucx: a peer process closed while messages were expected from it");
    }
    // While closing, an endpoint that is gone is answer enough.
    const bool may_connect = peer.endpoint != nullptr || !peer.connected;
    // Before the answer, after which the peer stops listening: UCT would go on trying to connect.
    lanes_.end(peer, true);
    if (was_well && may_connect && connections_.connect(peer)) {
        connections_.send_control(peer, Control::bye_answer, 0, {});
    }
}

bool Parting::is_flushing(const Peer& peer) const {
    return std::any_of(flushing_.begin(), flushing_.end(),
                       [&](const Flushing& each) { return each.peer == &peer; });
}

} // namespace ucg::transport::ucx
