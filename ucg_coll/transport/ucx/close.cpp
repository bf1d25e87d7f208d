// Parting from the peers. Whoever ends flushes, while the peers still make progress: a flush may
// need their help (TCP acknowledges on demand). Then it says bye and waits for the answer, which
// means that the peer has taken everything out of buffers that go with this process (shared-memory
// transports) or with its sockets. Closing the endpoints then needs nobody: UCX is told to drop
// them, since its own flush would ask peers who may have stopped listening. All of it is bounded in
// time.
#include "ucg_coll/transport/ucx/core.hpp"

namespace ucg::transport::ucx {

void Core::begin_close() {
    if (!state_.running()) {
        return;
    }
    state_.stop();
    phase_ = Phase::parting;
    close_deadline_ = Clock::now() + setup_.options.close_timeout;
    flushing_.reserve(peers_.size());
    peers_.visit([this](Peer& peer) { part_from(peer); });
    lanes_.say_byes();
}

/// Flushes the connection to the peer, if there is one, and says bye.
void Core::part_from(Peer& peer) {
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

void Core::reap_flushing() {
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

void Core::say_bye(Peer& peer) {
    if (peer.endpoint == nullptr || !peer.failure.ok()) {
        return;
    }
    peer.lane_bye_due = peer.lane_state == LaneState::open;
    send_control(peer, Control::bye, peer.lane_bye_due ? 1 : 0, setup_.self.ucp);
}

bool Core::all_parted() const {
    bool all = true;
    peers_.visit([&](const Peer& peer) {
        all = all && (peer.endpoint == nullptr || !peer.failure.ok() || peer.bye_answered);
    });
    return all;
}

bool Core::close_progress() {
    begin_close();
    progress();
    const bool late = Clock::now() >= close_deadline_;
    switch (phase_) {
    case Phase::parting:
        lanes_.say_byes();
        if ((all_parted() && operations_.active() == 0) || late) {
            start_closing();
        }
        return false;
    case Phase::closing:
        if (closing_.empty() || late) {
            abandon_closing();
            phase_ = Phase::closed;
        }
        return phase_ == Phase::closed;
    case Phase::running:
    case Phase::closed: break;
    }
    return true;
}

void Core::start_closing() {
    phase_ = Phase::closing;
    for (const Flushing& flushing : std::exchange(flushing_, {})) { // Time was up.
        ucp_request_free(flushing.request);
    }
    close_deadline_ = Clock::now() + setup_.options.close_timeout;
    peers_.visit([this](Peer& peer) {
        lanes_.end(peer, false);
        close_endpoint(peer, false);
    });
}

/// Begins to close the peer's endpoint, if there is one. REQUIRES: the peer has failed, or nothing
/// that matters is on the way.
void Core::close_endpoint(Peer& peer, bool failed) {
    if (peer.endpoint == nullptr) {
        return;
    }
    ucp_request_param_t parameters;
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = setup_.detects_failures ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    closing_.reserve(closing_.size() + 1);
    const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &parameters);
    endpoint_owners_.erase(peer.endpoint);
    peer.endpoint = nullptr;
    if (UCS_PTR_IS_PTR(request)) {
        closing_.push_back({request, &peer, failed});
        return;
    }
    peers_.note_departed(peer);
    if (failed) {
        give_up_all(peer);
    }
}

void Core::reap_closing() {
    std::erase_if(closing_, [&](const Closing& closing) {
        if (ucp_request_check_status(closing.request) == UCS_INPROGRESS) {
            return false;
        }
        ucp_request_free(closing.request);
        peers_.note_departed(*closing.peer);
        if (closing.failed) {
            give_up_all(*closing.peer);
        }
        return true;
    });
}

/// Gives up the connections that have not closed in time. UCX completes what is left of them while
/// it destroys the worker, and by then wants it to be nobody's.
void Core::abandon_closing() {
    if (closing_.empty()) {
        return;
    }
    log(LogLevel::debug, "ucx: {} connections did not close in time", closing_.size());
    for (const Closing& closing : std::exchange(closing_, {})) {
        ucp_request_free(closing.request);
        give_up_all(*closing.peer);
    }
}

} // namespace ucg::transport::ucx
