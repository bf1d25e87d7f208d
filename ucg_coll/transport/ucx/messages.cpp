#include "ucg_coll/transport/ucx/messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ucg_coll/base/copy.hpp"
#include "ucg_coll/transport/ucx/envelope.hpp"

namespace ucg::transport::ucx {

namespace {

/// Ends a message within post(): its state says so, and progress() does not count it.
void end_at_once(GroupState& group, Message& message, const Status& outcome) {
    if (!outcome.ok() && group.status.ok()) {
        group.status = outcome;
    }
    end(message, outcome);
}

} // namespace

UcxMessages::UcxMessages(const Setup& setup, WorkerState& state, Operations& operations,
                         UcxEarlyPool& early, Connections& connections, GroupTable& groups,
                         LongMessages& long_messages)
    : worker_(setup.worker),
      eager_bytes_(setup.self.only_tcp
                       ? std::max(setup.options.eager_bytes, setup.options.eager_bytes_tcp)
                       : setup.options.eager_bytes),
      window_bytes_(setup.options.window_bytes), state_(state), operations_(operations),
      early_(early), connections_(connections), groups_(groups), long_messages_(long_messages) {}

/// Ends an operation that UCX has given back. If there is no memory for what is to be done with its
/// message, the message fails.
void UcxMessages::operation_ended(Operation& operation, ucs_status_t status) {
    RankLink* link = operation.link;
    if (!state_.attempt([&] { settle(operation, status); }) && operation.message != nullptr) {
        --link->group.in_flight;
        link->group.complete(*operation.message, memory_ran_out());
    }
}

/// Ends the message of an operation that has ended, or goes on with it. Throws only while the
/// message is still the operation's.
void UcxMessages::settle(Operation& operation, ucs_status_t status) {
    Peer* peer = operation.peer;
    const bool present = peer != nullptr && operation.connection == peer->connection;
    if (present && status == UCS_OK) {
        peer->carried = true;
    }
    if (peer != nullptr && !present && status != UCS_OK && peer->failure.ok() && state_.running()) {
        take_back(operation);
        return;
    }
    Message* message = operation.message;
    if (message == nullptr) {
        if (peer != nullptr) {
            operations_.note_loss(*peer, status);
        }
        return;
    }
    RankLink& link = *operation.link;
    GroupState& group = link.group;
    const bool is_part = operation.header.envelope.kind == Kind::fragment && status == UCS_OK &&
                         message->moved < message->bytes;
    if (is_part && !group.abandoned) {
        long_messages_.go_on(link, *message);
        --group.in_flight;
        operation.message = nullptr;
        return;
    }
    const Status outcome = is_part ? group.status
                           : status == UCS_OK
                               ? Status()
                               : failure_of(link.peer, [&] {
                                     return transfer_failed(link, "a message to or from", status);
                                 });
    operation.message = nullptr;
    --group.in_flight;
    group.complete(*message, outcome);
}

/// Takes back what an earlier connection did not send: it goes by the next one.
void UcxMessages::take_back(Operation& operation) {
    Peer& peer = *operation.peer;
    const Kind kind = operation.header.envelope.kind;
    if (operation.message != nullptr || kind == Kind::ready_to_receive) {
        connections_.resend(peer);
    }
    if (operation.is_control && is_about_lane(operation.control.what)) {
        connections_.resend(
            peer, {operation.control.what, operation.control.detail, std::move(operation.payload)});
    }
    if (kind == Kind::request_to_send || kind == Kind::declined) {
        long_messages_.say_later(peer, operation.header);
    }
    if (Message* message = operation.message) {
        RankLink& link = *operation.link;
        if (kind == Kind::fragment) { // The first: nothing had gone out.
            link.note_ready(key_of(*message), message->bytes);
        }
        if (operation.credit) { // It is taken again when the message is sent again.
            link.sent -= credit_cost(message->bytes);
        }
        operation.message = nullptr;
        --link.group.in_flight;
        if (link.group.abandoned) {
            link.group.complete(*message, link.group.status);
        } else {
            link.unsent.push(*message);
        }
    }
}

void UcxMessages::send(GroupState& group, Message& message) {
    RankLink& to = link_to(group, message.peer);
    message.state = MessageState::posted;
    if (to.peer.failure.ok() && connections_.connect(to.peer)) {
        transmit(to, message);
    } else if (to.peer.failure.ok()) {
        to.unsent.push(message);
    } else {
        end_at_once(group, message, to.peer.failure);
    }
}

/// Sends a message by the way that fits it. Returns whether the message has ended, uncounted, and
/// is its group's again. REQUIRES: the peer is connected.
bool UcxMessages::transmit(RankLink& to, Message& message) {
    if (long_messages_.receiver_begins(to.peer, message.bytes)) {
        long_messages_.send(to, message);
        return false;
    }
    const std::uint32_t cost = credit_cost(message.bytes);
    const bool credit = message.bytes <= eager_bytes_ && to.has_credit(cost, window_bytes_);
    const Envelope envelope = envelope_of(to, message);
    const bool by_lane = credit && send_short(to, message, envelope);
    if (by_lane) {
        end(message, Status());
    }
    const bool ended = by_lane || send_ucp(to, message, envelope, credit);
    if (credit) {
        to.sent += cost;
    }
    to.reported = envelope.released;
    return ended;
}

/// Sends a message by the short lane. Returns false when the lane cannot take it now.
bool UcxMessages::send_short(RankLink& to, const Message& message, const Envelope& envelope) {
    return to.peer.lane_state == LaneState::open && message.bytes <= to.peer.lane_bytes_max &&
           (put_line(to.peer, message, envelope) ||
            ShortLane::send(to.peer.lane.get(), envelope, message.data, message.bytes) == UCS_OK);
}

/// Puts a message into a line of the peer. Returns false when the peer has no line for it now.
bool UcxMessages::put_line(Peer& peer, const Message& message, const Envelope& envelope) {
    if (!peer.lines_key || message.bytes > kLineDataBytes || !peer.lines_out.has_room()) {
        return false;
    }
    RingLine line;
    line.bytes = static_cast<std::uint32_t>(message.bytes);
    line.taken = peer.lines_in ? peer.lines_in->taken() : 0;
    line.envelope = envelope;
    if (message.bytes > 0) {
        std::memcpy(line.data.data(), message.data, message.bytes);
    }
    peer.lines_out.seal(line);
    if (uct_ep_put_short(peer.lane.get(), &line, sizeof(line),
                         peer.lines_at + peer.lines_out.offset(),
                         peer.lines_key.value()) != UCS_OK) {
        return false;
    }
    peer.lines_out.advance();
    if (peer.lines_in) {
        peer.lines_in->reported(line.taken);
    }
    return true;
}

/// Sends a message by UCP. Returns whether the message has ended. Without credit it goes by
/// rendezvous, whatever its size: the receiver then holds a handle instead of data, and nobody
/// waits for anybody who does not wait for this very message. (A queue of messages waiting for
/// credit could block the one that the receiver needs first.)
bool UcxMessages::send_ucp(RankLink& to, Message& message, const Envelope& envelope, bool credit) {
    Operation& operation = operations_.take_send(to.peer);
    operation.header.envelope = envelope;
    operation.link = &to;
    operation.message = &message;
    const bool empty = !credit && message.bytes == 0;
    operation.header.envelope.kind = empty ? Kind::empty : Kind::data;
    operation.credit = credit;
    const std::byte* data = empty ? &operation.nothing : message.data;
    const ucs_status_ptr_t request = Operations::put(
        operation, kUcpData, operation.short_header(), {data, empty ? 1 : message.bytes},
        credit ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_RNDV);
    if (UCS_PTR_IS_PTR(request)) {
        ++to.group.in_flight;
        return false;
    }
    operations_.release(operation);
    end_at_once(to.group, message,
                request == nullptr ? Status()
                                   : transfer_failed(to, "sending to", UCS_PTR_STATUS(request)));
    return true;
}

void UcxMessages::send_waiting(Peer& peer) {
    for (RankLink* link : peer.links) {
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
            long_messages_.tell_ready(*link, *message);
        }
    }
}

void UcxMessages::receive(GroupState& group, Message& message) {
    RankLink& from = link_to(group, message.peer);
    message.moved = 0;
    Early* early = from.early.take(key_of(message));
    if (early != nullptr && early->envelope.kind == Kind::request_to_send) {
        const Status expected = long_messages_.check_request(from, message, *early);
        early_.release(std::exchange(early, nullptr));
        if (!expected.ok()) {
            end_at_once(group, message, expected);
            return;
        }
    }
    if (early != nullptr) {
        if (early->rendezvous != nullptr) {
            message.state = MessageState::posted;
            pull_into(from, message, early->rendezvous, early->bytes);
            early->rendezvous = nullptr;
        } else {
            const Status outcome = copy_in(from, message, early->data().data(), early->bytes);
            end_at_once(group, message, outcome);
        }
        early_.release(early);
        return;
    }
    if (const Early* other = from.early.contradicting(key_of(message))) {
        if (other->envelope.kind == Kind::request_to_send) {
            long_messages_.tell_expected(from, message);
        }
        end_at_once(group, message, plan_mismatch(from, message.sequence));
        return;
    }
    // A connection even for a receive: only so does one hear of the peer's death.
    if (from.peer.failure.ok()) {
        connections_.connect(from.peer);
    }
    if (!from.peer.failure.ok()) {
        end_at_once(group, message, from.peer.failure);
        return;
    }
    message.state = MessageState::posted;
    from.posted.push(message);
    long_messages_.tell_ready(from, message);
}

/// Copies eager data to where a message receives it, and counts what may be given back to the
/// sender.
Status UcxMessages::copy_in(RankLink& from, Message& message, const void* data,
                            std::uint64_t bytes) {
    from.consumed += credit_cost(bytes);
    if (!from.credit_due && from.consumed - from.reported >= window_bytes_ / 2) {
        from.credit_due = state_.attempt([&] { credits_due_.add(&from); });
    }
    if (bytes != message.bytes) {
        return length_mismatch(from, message, bytes);
    }
    if (bytes > 0) {
        copy_bytes(static_cast<std::byte*>(message.data), static_cast<const std::byte*>(data),
                   bytes);
    }
    return {};
}

void UcxMessages::arrive(const Envelope& envelope, const void* data, std::size_t bytes) {
    GroupState* group = groups_.find(envelope.group);
    if (group == nullptr) {
        // A credit for a group that has ended is of no more use.
        if (envelope.kind == Kind::data && groups_.find_abandoned(envelope.group) == nullptr) {
            groups_.keep(*early_.hold(envelope, data, bytes));
        }
        return;
    }
    RankLink* from = receiver_of(*group, envelope);
    if (from == nullptr) {
        return;
    }
    from->acknowledge(envelope.released);
    if (envelope.kind == Kind::credit) {
        return;
    }
    if (Message* message = from->posted.take(key_of(envelope))) {
        group->complete(*message, copy_in(*from, *message, data, bytes));
    } else {
        end_contradicted(*from, envelope);
        from->early.push(*early_.hold(envelope, data, bytes));
    }
}

void UcxMessages::arrive_rendezvous(const Envelope& envelope, void* handle, std::size_t bytes) {
    Early* early =
        early_.hold_rendezvous(envelope, handle, envelope.kind == Kind::empty ? 0 : bytes);
    GroupState* group = groups_.find(envelope.group);
    if (group == nullptr) {
        if (groups_.find_abandoned(envelope.group) != nullptr) {
            unwanted_.push(*early);
        } else {
            groups_.keep(*early);
        }
        return;
    }
    RankLink* from = receiver_of(*group, envelope);
    if (from == nullptr) {
        unwanted_.push(*early);
        return;
    }
    from->acknowledge(envelope.released);
    Message* message = from->posted.find(key_of(envelope));
    if (message == nullptr) {
        end_contradicted(*from, envelope);
        from->early.push(*early);
        return;
    }
    pulls_.add({from, message, early});
    from->posted.take(key_of(envelope));
}

void UcxMessages::arrive_long(const LongHeader& header, std::span<const std::byte> data) {
    const Envelope& envelope = header.envelope;
    GroupState* group = groups_.find(envelope.group);
    if (group == nullptr) {
        arrive_without_group(header);
        return;
    }
    if (group->abandoned) {
        long_messages_.decline(*group, envelope);
        return;
    }
    RankLink* from = receiver_of(*group, envelope);
    if (from == nullptr) {
        return;
    }
    if (envelope.kind != Kind::declined) { // It gives nothing back.
        from->acknowledge(envelope.released);
    }
    long_messages_.arrive(*from, header, data);
}

/// Takes what comes for a group that does not exist here yet, or that was abandoned and has ended.
void UcxMessages::arrive_without_group(const LongHeader& header) {
    const Envelope& envelope = header.envelope;
    if (const GroupState* ended = groups_.find_abandoned(envelope.group)) {
        long_messages_.decline(*ended, envelope);
    } else if (envelope.kind == Kind::request_to_send || envelope.kind == Kind::ready_to_receive) {
        groups_.keep(*early_.hold(envelope, &header.bytes, sizeof(header.bytes)));
    }
}

void UcxMessages::pull_into(RankLink& from, Message& message, void* handle, std::uint64_t bytes) {
    Operation* taken = nullptr;
    // Only by an endpoint can it be taken back: see Connections::drop_holders().
    if (from.peer.failure.ok()) {
        state_.attempt([&] { connections_.connect(from.peer); });
    }
    if (bytes != message.bytes || !state_.attempt([&] { taken = &operations_.take(); })) {
        ucp_am_data_release(worker_, handle);
        from.group.complete(message, bytes == message.bytes
                                         ? memory_ran_out()
                                         : length_mismatch(from, message, bytes));
        return;
    }
    Operation& operation = *taken;
    operation.link = &from;
    operation.message = &message;
    ++from.group.in_flight;
    operations_.pull(operation, worker_, handle, bytes);
}

void UcxMessages::pull_due() {
    pulls_.take_all([this](const Pull& pull) {
        pull_into(*pull.from, *pull.message, pull.early->rendezvous, pull.early->bytes);
        early_.release(pull.early);
    });
}

ucs_status_t UcxMessages::on_data(void* messages, const void* header, std::size_t header_bytes,
                                  void* data, std::size_t bytes,
                                  const ucp_am_recv_param_t* parameters) {
    UcxMessages& self = *static_cast<UcxMessages*>(messages);
    if (!self.state_.broken().ok()) {
        return UCS_OK; // Nobody waits for it, and its sender need not.
    }
    if (header_bytes == sizeof(LongHeader)) {
        LongHeader head;
        std::memcpy(&head, header, sizeof(head));
        self.state_.attempt([&] {
            self.arrive_long(head, {static_cast<const std::byte*>(data), bytes});
        });
        return UCS_OK;
    }
    Envelope envelope;
    if (header_bytes != sizeof(envelope)) {
        return UCS_OK;
    }
    std::memcpy(&envelope, header, sizeof(envelope));
    if ((parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        // The data stays ours until it is pulled or released.
        return self.state_.attempt([&] { self.arrive_rendezvous(envelope, data, bytes); })
                   ? UCS_INPROGRESS
                   : UCS_OK;
    }
    self.state_.attempt([&] { self.arrive(envelope, data, bytes); });
    return UCS_OK;
}

void UcxMessages::send_credits() {
    credits_due_.take_all([this](RankLink* link) { state_.attempt([&] { send_credit(*link); }); });
}

/// Gives back credits that no message of ours has carried.
void UcxMessages::send_credit(RankLink& to) {
    to.credit_due = false;
    if (to.consumed == to.reported || !to.peer.failure.ok() || !connections_.connect(to.peer)) {
        return;
    }
    Envelope envelope;
    envelope.group = to.group_there;
    envelope.source = to.group.self;
    envelope.released = to.consumed;
    envelope.kind = Kind::credit;
    to.reported = to.consumed;
    if (to.peer.lane_state == LaneState::open &&
        ShortLane::send(to.peer.lane.get(), envelope, nullptr, 0) == UCS_OK) {
        return;
    }
    Operation& operation = operations_.take_send(to.peer);
    operation.header.envelope = envelope;
    operations_.put_word(operation, kUcpData, operation.short_header());
}

} // namespace ucg::transport::ucx
