#include "ucg_coll/transport/ucx/connections.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ucg_coll/transport/ucx/context.hpp"

namespace ucg::transport::ucx {

namespace {

using Clock = std::chrono::steady_clock;

} // namespace

bool Connections::make(Peer& peer) {
    if (peer.refusal && Clock::now() < peer.refusal->next_try) {
        return false;
    }
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.address = reinterpret_cast<const ucp_address_t*>(peer.address.ucp.data());
    parameters.err_mode =
        setup_.detects_failures ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    parameters.err_handler.cb = on_error;
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
    owners_[peer.endpoint] = &peer;
    lanes_.start(peer);
    if (peer.refusal) {
        send_unsent(peer);
    }
    return true;
}

/// Notes that a connection could not be made. Returns whether it is to be tried again: a peer
/// without a route may have one soon.
bool Connections::put_off(Peer& peer, ucs_status_t status) {
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

void Connections::retry_refused() {
    for (Peer* peer : std::vector<Peer*>(refused_)) {
        if (peer->failure.ok()) {
            connect(*peer);
        }
    }
    std::erase_if(refused_, [](const Peer* peer) { return !peer->refusal || !peer->failure.ok(); });
}

void Connections::doubt(Peer& peer) {
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

void Connections::settle_doubts() {
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

void Connections::start_over(Peer& peer) {
    log(LogLevel::info, "ucx: a peer could not answer a connection, which is made again");
    ++peer.connection;
    close(peer, false);
    peer.refusal.emplace();
    peer.refusal->next_try = Clock::now();
    peer.refusal->give_up = peer.refusal->next_try + setup_.options.connect_timeout;
    refused_.push_back(&peer);
}

void Connections::send_unsent(Peer& peer) {
    if (peer.refusal) {
        const Refusal refusal = *std::exchange(peer.refusal, std::nullopt);
        for (const ControlMessage& message : refusal.owed) {
            send_control(peer, message.what, message.detail, message.payload);
        }
    }
    for (const ControlMessage& message : std::exchange(peer.unsaid, {})) {
        send_control(peer, message.what, message.detail, message.payload);
    }
    user_.send_waiting(peer);
}

unsigned Connections::fail(Peer& peer, const Status& why) {
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

void Connections::on_error(void* argument, ucp_ep_h endpoint, ucs_status_t status) {
    Connections& self = *static_cast<Connections*>(argument);
    self.state_.attempt([&] { self.errors_.emplace_back(endpoint, status); });
}

void Connections::fail_connection(Peer& peer, ucs_status_t status) {
    const Status why = failure(Code::io_error, "the connection to a peer process broke: {}",
                               ucs_status_string(status));
    if (fail(peer, why) > 0) {
        log(LogLevel::warn, "ucx: {}", why.message());
    }
    lanes_.end(peer, false);
    close(peer, true);
}

void Connections::send_control(Peer& peer, Control what, std::uint32_t detail,
                               std::string_view payload) {
    Operation& operation = operations_.take_send(peer);
    operation.is_control = true;
    operation.control = {what, detail, setup_.self.process, peer.address.process};
    operation.payload = payload;
    operations_.put_word(operation, kUcpControl, std::as_bytes(std::span(&operation.control, 1)),
                         std::as_bytes(std::span(operation.payload)));
}

void Connections::tell_peer(Peer& peer, Control what, std::uint32_t detail, std::string payload) {
    if (connect(peer)) {
        send_control(peer, what, detail, payload);
    } else if (peer.refusal) {
        peer.refusal->owed.push_back({what, detail, std::move(payload)});
    }
}

void Connections::resend(Peer& peer, ControlMessage message) {
    resend(peer);
    peer.unsaid.push_back(std::move(message));
}

void Connections::handle_errors() {
    for (const auto& [endpoint, status] : std::exchange(errors_, {})) {
        const auto owner = owners_.find(endpoint);
        if (owner != owners_.end()) { // Otherwise it is being closed already.
            fail_connection(*owner->second, status);
        }
    }
}

void Connections::work_off() {
    if (!to_resend_.empty()) {
        for (Peer* peer : std::exchange(to_resend_, {})) {
            if (peer->failure.ok() && connect(*peer)) {
                send_unsent(*peer);
            }
        }
    }
    if (!doubted_.empty()) {
        settle_doubts();
    }
    if (!refused_.empty()) {
        retry_refused();
    }
}

void Connections::close(Peer& peer, bool failed) {
    if (peer.endpoint == nullptr) {
        return;
    }
    ucp_request_param_t parameters;
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = setup_.detects_failures ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    closing_.reserve(closing_.size() + 1);
    const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &parameters);
    owners_.erase(peer.endpoint);
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

void Connections::reap_closing() {
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

/// UCX completes what is left of the connections while it destroys the worker, and by then wants it
/// to be nobody's.
void Connections::abandon_closing() {
    if (closing_.empty()) {
        return;
    }
    log(LogLevel::debug, "ucx: {} connections did not close in time", closing_.size());
    for (const Closing& closing : std::exchange(closing_, {})) {
        ucp_request_free(closing.request);
        give_up_all(*closing.peer);
    }
}

void Connections::give_up_all(const Peer& peer) {
    operations_.give_up_if([&](const Link& link) { return &link.peer == &peer; });
}

/// If the connection to the peer is closed, does UCX let go of all that it holds for the peer, and
/// without harm? Where UCX detects no failures, it takes nothing back. And when UCX 1.13 is in the
/// middle of what it sends from a caller's memory over TCP, it sends the end of the connection,
/// which the peer takes for the rest of the message, and everything behind it for messages.
bool Connections::may_drop(const Peer& peer) const {
    const bool by_tcp = setup_.self.only_tcp && peer.address.only_tcp;
    return setup_.detects_failures && peer.endpoint != nullptr &&
           !(by_tcp && operations_.sends_to(peer));
}

bool Connections::drop_holders(const Group& group) {
    bool dropped = false;
    operations_.visit_messages([&](const Operation& operation) {
        Peer& peer = operation.link->peer;
        if (&operation.link->group != &group || !may_drop(peer)) {
            return;
        }
        const Status why(Code::io_error, "a peer process was given up, which did not go on with "
                                         "a message of a collective that has failed");
        log(LogLevel::warn, "ucx: {}", why.message());
        fail(peer, why);
        lanes_.end(peer, false);
        close(peer, false);
        dropped = true;
    });
    return dropped;
}

bool Connections::hold(const Peer& peer) const {
    return peer.endpoint != nullptr || operations_.sends_to(peer) ||
           std::any_of(closing_.begin(), closing_.end(),
                       [&](const Closing& each) { return each.peer == &peer; });
}

void Connections::forget(const Peer& peer) {
    for (std::vector<Peer*>* list : {&refused_, &doubted_, &to_resend_}) {
        std::erase(*list, &peer);
    }
}

} // namespace ucg::transport::ucx
