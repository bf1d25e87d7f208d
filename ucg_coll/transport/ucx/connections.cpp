// Peers: endpoints made on first use, good-byes and failures.
#include <algorithm>
#include <cstring>

#include "ucg_coll/transport/ucx/core.hpp"

namespace ucg::transport::ucx {

void Core::forget_if_unused(Peer& peer) {
    if (peer.groups == 0 && !peer.connected) {
        forget(peer);
    }
}

/// Returns the peer with this address, which may be new. What came from it before goes back to
/// where arrivals wait.
Peer& Core::meet(ProcessAddress address) {
    Peer& peer = peers_.intern(std::move(address));
    const std::uint64_t process = peer.address.process;
    if (const Stranger* stranger = lanes_.find_stranger(process)) {
        if (stranger->greeting) {
            notices_.push_back(*stranger->greeting);
        }
        if (stranger->offer) {
            controls_.push_back(*stranger->offer);
        }
        lanes_.forget_stranger(process);
    }
    return peer;
}

/// Destroys the peer. REQUIRES: no group has it, and it is not held.
void Core::forget(Peer& peer) {
    for (std::vector<Peer*>* list : {&refused_, &doubted_, &to_resend_}) {
        std::erase(*list, &peer);
    }
    to_say_.drop_if([&](const auto& due) { return due.first == &peer; });
    lanes_.forget(peer);
    peers_.erase(peer);
}

/// Does UCX hold something of which the end will lead to the peer?
bool Core::is_held(const Peer& peer) const {
    const auto names = [&](const auto& each) { return each.peer == &peer; };
    return peer.endpoint != nullptr || std::any_of(closing_.begin(), closing_.end(), names) ||
           std::any_of(flushing_.begin(), flushing_.end(), names) || operations_.sends_to(peer);
}

/// Forgets the peers that have left and that nothing names any more, but for their ids: a program
/// may start and end other processes as long as it runs. Where UCX does not tell that a connection
/// is gone, which is so where it shares memory, the endpoint stays, and with it the peer.
void Core::forget_departed() {
    peers_.visit_departed([this](Peer& peer) {
        if (state_.running() && !is_held(peer) && peers_.remember(peer)) {
            forget(peer);
        }
    });
}

/// Connects to the peer, unless there is a connection. Returns false when the peer has failed, or
/// when it is to be tried again later: then its failure is ok.
bool Core::connect(Peer& peer) {
    if (peer.endpoint != nullptr) {
        return true;
    }
    if (peer.refusal && Clock::now() < peer.refusal->next_try) {
        return false;
    }
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.address = reinterpret_cast<const ucp_address_t*>(peer.address.ucp.data());
    parameters.err_mode =
        setup_.detects_failures ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    parameters.err_handler.cb = on_endpoint_error;
    parameters.err_handler.arg = this;
    const ucs_status_t status = ucp_ep_create(setup_.worker, &parameters, &peer.endpoint);
    if (status != UCS_OK) {
        peer.endpoint = nullptr;
        if (put_off(peer, status)) {
            return false;
        }
        const Status why = ucx_failure(status, "connecting to a peer");
        log(LogLevel::warn, "ucx: {}; ucg_info shows the transports that were found",
            why.message());
        fail(peer, why);
        return false;
    }
    peer.connected = true;
    peer.carried = false;
    ++peer.connection;
    endpoint_owners_[peer.endpoint] = &peer;
    lanes_.start(peer);
    if (peer.refusal) {
        send_unsent(peer);
    }
    return true;
}

/// Notes that a connection could not be made. Returns whether it is to be tried again: a peer
/// without a route may have one soon.
bool Core::put_off(Peer& peer, ucs_status_t status) {
    constexpr std::chrono::milliseconds kPauseMax{2000};
    constexpr unsigned kTriesMin = 8; // Time passes also while nobody makes progress here.
    const Clock::time_point now = Clock::now();
    if (status != UCS_ERR_UNREACHABLE || !state_.running()) {
        return false;
    }
    if (!peer.refusal) {
        peer.refusal.emplace();
        peer.refusal->give_up = now + setup_.options.connect_timeout;
        peer.refusal->owed.push_back({Control::start_over, 0, {}});
        refused_.push_back(&peer);
        log(LogLevel::warn,
            "ucx: connecting to a peer: {}; it is tried again for {} s (timeout), and {} times at "
            "least",
            ucs_status_string(status), setup_.options.connect_timeout.count() / 1000,
            kTriesMin - 1);
    }
    Refusal& refusal = *peer.refusal;
    ++refusal.tries;
    if (now >= refusal.give_up && refusal.tries >= kTriesMin) {
        return false;
    }
    refusal.next_try = now + refusal.pause;
    refusal.pause = std::min(2 * refusal.pause, kPauseMax);
    return true;
}

void Core::retry_refused() {
    for (Peer* peer : std::vector<Peer*>(refused_)) {
        if (peer->failure.ok()) {
            connect(*peer);
        }
    }
    std::erase_if(refused_, [](const Peer* peer) { return !peer->refusal || !peer->failure.ok(); });
}

/// The peer has told that it could not connect at first. If this process had connected by then, UCX
/// there could not answer, and what waits here for the answer would wait for ever, unsent. If the
/// peer's connection has been made since, the two connections are one, which must not be closed:
/// then a probe goes out.
void Core::doubt(Peer& peer) {
    constexpr std::chrono::seconds kAnswer{1};
    if (peer.carried || peer.endpoint == nullptr || !peer.failure.ok() ||
        !setup_.detects_failures || !state_.running()) {
        return;
    }
    if (!peer.doubted_until) {
        doubted_.push_back(&peer);
    }
    peer.doubted_until = Clock::now() + kAnswer;
    send_control(peer, Control::probe, 0, {});
}

void Core::settle_doubts() {
    for (Peer* peer : std::vector<Peer*>(doubted_)) {
        const bool standing =
            peer->carried || peer->endpoint == nullptr || !peer->failure.ok() || !state_.running();
        if (standing || Clock::now() >= *peer->doubted_until) {
            peer->doubted_until.reset();
            if (!standing) {
                start_over(*peer);
            }
        }
    }
    std::erase_if(doubted_, [](const Peer* peer) { return !peer->doubted_until; });
}

void Core::start_over(Peer& peer) {
    log(LogLevel::info, "ucx: a peer could not answer a connection, which is made again");
    ++peer.connection;
    close_endpoint(peer, false);
    peer.refusal.emplace();
    peer.refusal->next_try = Clock::now();
    peer.refusal->give_up = peer.refusal->next_try + setup_.options.connect_timeout;
    refused_.push_back(&peer);
}

/// Sends what has waited for the connection.
void Core::send_unsent(Peer& peer) {
    if (peer.refusal) {
        const Refusal refusal = *std::exchange(peer.refusal, std::nullopt);
        for (const ControlMessage& message : refusal.owed) {
            send_control(peer, message.what, message.detail, message.payload);
        }
    }
    for (const ControlMessage& message : std::exchange(peer.unsaid, {})) {
        send_control(peer, message.what, message.detail, message.payload);
    }
    for (Link* link : peer.links) {
        Fifo<Message> unsent = std::exchange(link->unsent, {});
        while (Message* message = unsent.pop()) {
            bool ended = false;
            if (!state_.attempt([&] { ended = transmit(*link, *message); })) {
                link->group.complete(*message, memory_ran_out());
            }
            link->group.completed += ended ? 1 : 0;
        }
        for (const Message* message = link->posted.front(); message != nullptr;
             message = message->next) {
            tell_ready(*link, *message);
        }
    }
}

/// Returns how many messages failed with the peer.
unsigned Core::fail(Peer& peer, const Status& why) {
    if (peer.failure.ok()) {
        peer.failure = why;
    }
    unsigned failed = 0;
    for (Link* link : peer.links) {
        for (Fifo<Message>* messages : {&link->posted, &link->unsent, &link->held}) {
            while (Message* message = messages->pop()) {
                link->group.complete(*message, peer.failure);
                ++failed;
            }
        }
    }
    return failed;
}

void Core::on_endpoint_error(void* argument, ucp_ep_h endpoint, ucs_status_t status) {
    Core& core = *static_cast<Core*>(argument);
    core.state_.attempt([&] { core.endpoint_errors_.emplace_back(endpoint, status); });
}

void Core::handle_endpoint_error(ucp_ep_h endpoint, ucs_status_t status) {
    const auto owner = endpoint_owners_.find(endpoint);
    if (owner != endpoint_owners_.end()) { // Otherwise it is being closed already.
        fail_connection(*owner->second, status);
    }
}

void Core::fail_connection(Peer& peer, ucs_status_t status) {
    const Status why = failure(Code::io_error, "the connection to a peer process broke: {}",
                               ucs_status_string(status));
    if (fail(peer, why) > 0) {
        log(LogLevel::warn, "ucx: {}", why.message());
    }
    lanes_.end(peer, false);
    close_endpoint(peer, true);
}

/// Sends a control message. REQUIRES: the peer is connected.
void Core::send_control(Peer& peer, Control what, std::uint32_t detail, std::string_view payload) {
    Operation& operation = operations_.take_send(peer);
    operation.is_control = true;
    operation.control = {what, detail, setup_.self.process, peer.address.process};
    operation.payload = payload;
    operations_.put_word(operation, kUcpControl, std::as_bytes(std::span(&operation.control, 1)),
                         std::as_bytes(std::span(operation.payload)));
}

/// Sends a control message, now or as soon as there is a connection.
void Core::tell_peer(Peer& peer, Control what, std::uint32_t detail, std::string payload) {
    if (connect(peer)) {
        send_control(peer, what, detail, payload);
    } else if (peer.refusal) {
        peer.refusal->owed.push_back({what, detail, std::move(payload)});
    }
}

ucs_status_t Core::on_control(void* argument, const void* header, std::size_t header_bytes,
                              void* data, std::size_t bytes,
                              const ucp_am_recv_param_t* /*parameters*/) {
    Core& core = *static_cast<Core*>(argument);
    if (header_bytes == sizeof(ControlHeader)) {
        core.state_.attempt([&] {
            ControlArrival arrival;
            std::memcpy(&arrival.header, header, sizeof(arrival.header));
            arrival.payload.assign(static_cast<const char*>(data), bytes);
            core.controls_.push_back(std::move(arrival));
        });
    }
    return UCS_OK;
}

void Core::handle_control(const ControlHeader& header, const std::string& payload) {
    if (header.target != setup_.self.process) {
        return;
    }
    Peer* peer = peers_.find(header.source);
    if (header.what == Control::bye && peer == nullptr) {
        ProcessAddress address;
        address.process = header.source;
        address.ucp = payload;
        peer = &meet(std::move(address));
    }
    if (peer == nullptr) {
        lanes_.handle_stranger(header, payload);
        return;
    }
    switch (header.what) {
    case Control::lane_answer:
    case Control::lane_offer:
    case Control::lane_acceptance:
    case Control::lane_refusal:
    case Control::lane_withdrawal: lanes_.handle_control(*peer, header, payload); break;
    case Control::bye:
        peer->ucp_bye_came = true;
        peer->lane_bye_expected = header.detail != 0;
        handle_bye(*peer);
        break;
    case Control::bye_answer:
        peer->bye_answered = true;
        peer->lane_bye_came = true; // Before it answered, the peer closed its end of the lane.
        handle_bye(*peer);
        if (!broken_.ok()) {
            close_endpoint(*peer, true);
        }
        break;
    case Control::start_over: doubt(*peer); break;
    case Control::probe: break;
    }
}

/// Parts from a peer once its bye has come by all ways: then everything that it sent is here.
void Core::handle_bye(Peer& peer) {
    if (peer.left || !peer.ucp_bye_came || (peer.lane_bye_expected && !peer.lane_bye_came)) {
        return;
    }
    const bool was_well = peer.failure.ok();
    peer.left = true;
    peers_.note_departed(peer);
    if (fail(peer, closed_by_peer()) > 0) {
        log(LogLevel::warn, "ucx: a peer process closed while messages were expected from it");
    }
    // While closing, an endpoint that is gone is answer enough.
    const bool may_connect = peer.endpoint != nullptr || !peer.connected;
    // Before the answer, after which the peer stops listening: UCT would go on trying to connect.
    lanes_.end(peer, true);
    if (was_well && may_connect && connect(peer)) {
        send_control(peer, Control::bye_answer, 0, {});
    }
}

/// Handles what the callbacks have left, in the order that keeps good-byes behind data.
void Core::handle_arrivals() {
    for (const auto& [endpoint, status] : std::exchange(endpoint_errors_, {})) {
        handle_endpoint_error(endpoint, status);
    }
    for (const LaneNotice& notice : std::exchange(notices_, {})) {
        if (notice.what == LaneNotice::What::greeting) {
            lanes_.answer_greeting(notice);
        } else if (Peer* peer = peers_.find(notice.source)) {
            peer->lane_bye_came = true;
            handle_bye(*peer);
        }
    }
    for (const ControlArrival& arrival : std::exchange(controls_, {})) {
        handle_control(arrival.header, arrival.payload);
    }
    lanes_.handle_errors();
}

} // namespace ucg::transport::ucx
