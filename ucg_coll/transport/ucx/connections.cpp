#include "ucg_coll/transport/ucx/connections.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ucg_coll/transport/ucx/context.hpp"

namespace ucg::transport::ucx {

namespace {

constexpr std::chrono::milliseconds kPauseMin{10};

} // namespace

/// Is the peer's turn yet to come? UCX may wait within a call for a host that does not answer, and
/// everything else with it. So after a try that has taken long the process sees to all else first.
bool Connections::must_wait(Peer& peer) {
    const Clock::time_point now = Clock::now();
    if (now >= rest_end_) {
        return peer.refusal && now < peer.refusal->next_try;
    }
    if (!peer.refusal) {
        begin_tries(peer.refusal.emplace(), rest_end_);
        refused_.push_back(&peer);
    }
    return true;
}

bool Connections::make(Peer& peer) {
    if (must_wait(peer)) {
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
    const Clock::time_point begin = Clock::now();
    const ucs_status_t status = ucp_ep_create(setup_.worker, &parameters, &peer.endpoint);
    if (status != UCS_OK) {
        peer.endpoint = nullptr;
        refuse(peer, status, begin);
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

/// A connection could not be made, which was tried since `begin`.
void Connections::refuse(Peer& peer, ucs_status_t status, Clock::time_point begin) {
    constexpr std::chrono::milliseconds kLong{100};
    const Clock::time_point now = Clock::now();
    if (now - begin >= kLong) {
        rest_end_ = now + kPauseMin;
    }
    const bool again = put_off(peer, status, begin);
    spent_ += now - begin;
    if (!again) {
        const Status why = ucx_failure(status, "connecting to a peer");
        log(LogLevel::warn, "ucx: {}; ucg_info shows the transports that were found",
            why.message());
        fail(peer, why);
    }
}

/// From now on the connection is to be tried for as long as UCG tries.
void Connections::begin_tries(Refusal& refusal, Clock::time_point begin) const {
    refusal.tries = 0;
    refusal.next_try = begin;
    refusal.give_up = begin + setup_.options.connect_timeout;
    refusal.spent_before = spent_;
}

/// Notes that a connection could not be made. Returns whether it is to be tried again: a peer
/// without a route may have one soon. Time passes also while nobody makes progress here, so it ends
/// nothing before there were some tries, or UCX itself has taken that time for tries.
bool Connections::put_off(Peer& peer, ucs_status_t status, Clock::time_point begin) {
    constexpr std::chrono::milliseconds kPauseMax{2000};
    constexpr unsigned kTriesMin = 8;
    if (status != UCS_ERR_UNREACHABLE || !state_.running()) {
        return false;
    }
    if (!peer.refusal) {
        begin_tries(peer.refusal.emplace(), begin);
        refused_.push_back(&peer);
    }
    const std::chrono::milliseconds limit = setup_.options.connect_timeout;
    Refusal& refusal = *peer.refusal;
    if (!refusal.told) {
        refusal.told = true;
        refusal.owed.push_back({Control::start_over, 0, {}});
        log(LogLevel::warn,
            "ucx: connecting to a peer: {}; it is tried again for {} s (timeout), and {} times at "
            "least, unless tries take as long",
            ucs_status_string(status), limit.count() / 1000, kTriesMin - 1);
    }
    ++refusal.tries;
    const Clock::time_point now = Clock::now();
    const Clock::duration spent = spent_ + (now - begin) - refusal.spent_before;
    if (now >= refusal.give_up && (refusal.tries >= kTriesMin || spent >= limit)) {
        return false;
    }
    refusal.next_try = now + refusal.pause;
    refusal.pause = std::min(2 * refusal.pause, kPauseMax);
    return true;
}

/// Does something wait for a connection to the peer? Otherwise it is not worth the time that a try
/// may take: those who waited may have been given up.
bool Connections::is_awaited(const Peer& peer) {
    const auto has_messages = [](const RankLink* link) {
        return !link->posted.empty() || !link->unsent.empty() || !link->held.empty();
    };
    return !peer.unsaid.empty() ||
           std::any_of(peer.links.begin(), peer.links.end(), has_messages) ||
           std::any_of(peer.refusal->owed.begin(), peer.refusal->owed.end(),
                       [](const ControlMessage& each) { return each.what != Control::start_over; });
}

/// Tries again those whose time has come; the longest due first, since there may be time for one
/// alone (must_wait()).
void Connections::retry_refused() {
    const Clock::time_point now = Clock::now();
    if (now < rest_end_) {
        return;
    }
    std::vector<Peer*> due;
    for (Peer* peer : refused_) {
        if (!is_awaited(*peer)) {
            begin_tries(*peer->refusal, now);
        } else if (now >= peer->refusal->next_try) {
            due.push_back(peer);
        }
    }
    std::sort(due.begin(), due.end(), [](const Peer* one, const Peer* other) {
        return one->refusal->next_try < other->refusal->next_try;
    });
    for (Peer* peer : due) {
        if (peer->failure.ok()) {
            connect(*peer);
        }
    }
    std::erase_if(refused_, [](const Peer* peer) { return !peer->failure.ok(); });
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
    begin_tries(peer.refusal.emplace(), Clock::now());
    refused_.push_back(&peer);
}

void Connections::send_unsent(Peer& peer) {
    if (peer.refusal) {
        const Refusal refusal = *std::exchange(peer.refusal, std::nullopt);
        std::erase(refused_, &peer);
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
    for (RankLink* link : peer.links) {
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
    operations_.give_up_if([&](const RankLink& link) { return &link.peer == &peer; });
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

bool Connections::drop_holders(const GroupState& group) {
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
