#include "ucg_coll/transport/ucx/long_messages.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "ucg_coll/transport/ucx/envelope.hpp"

namespace ucg::transport::ucx {

namespace {

LongHeader about(const RankLink& link, const Message& message, Kind what) {
    LongHeader header = {envelope_of(link, message), message.bytes};
    header.envelope.kind = what;
    return header;
}

} // namespace

void LongMessages::send(RankLink& to, Message& message) {
    message.moved = 0;
    const std::optional<std::uint64_t> ready = to.take_ready(key_of(message));
    if (ready == message.bytes) {
        send_fragments(to, message);
        return;
    }
    tell(to, about(to, message, Kind::request_to_send));
    if (ready) {
        to.group.complete(message, length_mismatch(to, message, *ready));
    } else if (to.ready_contradicts(key_of(message))) {
        to.group.complete(message, plan_mismatch(to, message.sequence));
    } else {
        to.held.push(message);
    }
}

void LongMessages::say_ready(RankLink& from, const Message& message) {
    tell(from, about(from, message, Kind::ready_to_receive));
}

void LongMessages::tell_expected(RankLink& from, const Message& message) {
    say_later(from.peer, about(from, message, Kind::ready_to_receive));
}

void LongMessages::tell(RankLink& to, const LongHeader& header) {
    to.reported = header.envelope.released;
    say(to.peer, header);
}

/// Sends a header without data. REQUIRES: the peer is connected.
void LongMessages::say(Peer& peer, const LongHeader& header) {
    Operation& operation = operations_.take_send(peer);
    operation.header = header;
    operations_.put_word(operation, kUcpData, operation.long_header());
}

/// Sends the rest of a long message, one fragment after the other: UCX holds one fragment at most,
/// behind which other messages to the peer wait.
void LongMessages::send_fragments(RankLink& to, Message& message) {
    while (message.moved < message.bytes) {
        Operation& operation = operations_.take_send(to.peer);
        operation.link = &to;
        operation.message = &message;
        operation.header = {envelope_of(to, message), message.moved};
        operation.header.envelope.kind = Kind::fragment;
        to.reported = operation.header.envelope.released;
        const std::size_t bytes = std::min(kFragmentBytes, message.bytes - message.moved);
        const std::span<const std::byte> data(message.data + message.moved, bytes);
        message.moved += bytes;
        const ucs_status_ptr_t request = Operations::put(
            operation, kUcpData, operation.long_header(), data, UCP_AM_SEND_FLAG_EAGER);
        if (UCS_PTR_IS_PTR(request)) {
            ++to.group.in_flight;
            return;
        }
        operations_.release(operation);
        if (request != nullptr) {
            to.group.complete(message, transfer_failed(to, "sending to", UCS_PTR_STATUS(request)));
            return;
        }
    }
    to.group.complete(message, Status());
}

/// Sends the headers that callbacks found due. A worker that has said good-bye says nothing more.
void LongMessages::say_due() {
    to_say_.take_all([this](const std::pair<Peer*, LongHeader>& due) {
        Peer& peer = *due.first;
        state_.attempt([&] {
            if (!peer.failure.ok() || !state_.running()) {
                return;
            }
            if (connections_.connect(peer)) {
                say(peer, due.second);
            } else if (peer.failure.ok()) {
                to_say_.add(due);
            }
        });
    });
}

/// Sends the fragments that callbacks found due.
void LongMessages::continue_due() {
    to_continue_.take_all([this](const std::pair<RankLink*, Message*>& due) {
        RankLink& link = *due.first;
        if (!link.peer.failure.ok() || link.peer.endpoint == nullptr) {
            link.group.complete(*due.second, failure_of(link.peer, [] {
                return Status(Code::io_error, "the connection is gone");
            }));
        } else if (!state_.attempt([&] { send_fragments(link, *due.second); })) {
            link.group.complete(*due.second, memory_ran_out());
        }
    });
}

void LongMessages::work_off() {
    if (!to_say_.empty()) {
        say_due();
    }
    if (!to_continue_.empty()) {
        continue_due();
    }
}

void LongMessages::forget(const Peer& peer) {
    to_say_.drop_if([&](const auto& due) { return due.first == &peer; });
}

void LongMessages::arrive(RankLink& from, const LongHeader& header,
                          std::span<const std::byte> data) {
    switch (header.envelope.kind) {
    case Kind::request_to_send: arrive_request(from, header.envelope, header.bytes); return;
    case Kind::ready_to_receive: arrive_ready(from, header.envelope, header.bytes); return;
    case Kind::declined: arrive_declined(from, header.envelope); return;
    case Kind::fragment: arrive_fragment(from, header, data); return;
    case Kind::data:
    case Kind::empty:
    case Kind::credit: return; // These have no LongHeader.
    }
}

void LongMessages::decline(const GroupState& group, const Envelope& request) {
    const auto source = static_cast<std::size_t>(request.source);
    Peer* const sender = source < group.members.size() ? group.members[source].peer() : nullptr;
    if (request.kind != Kind::request_to_send || sender == nullptr) {
        return;
    }
    LongHeader answer;
    answer.envelope = request;
    answer.envelope.group = group.ids[request.source];
    answer.envelope.source = group.self;
    answer.envelope.released = 0;
    answer.envelope.kind = Kind::declined;
    say_later(*sender, answer);
}

void LongMessages::decline_early(const GroupState& group) {
    for (const std::unique_ptr<RankLink>& link : group.links) {
        for (const Early* early = link->early.front(); early != nullptr; early = early->next) {
            decline(group, early->envelope);
        }
    }
}

/// Takes a request to send. It needs no answer where all is well: the sender knows, or hears soon,
/// whether the receive is posted.
void LongMessages::arrive_request(RankLink& from, const Envelope& envelope, std::uint64_t bytes) {
    const Key key = key_of(envelope);
    Message* message = from.posted.find(key);
    if (message == nullptr) {
        if (const Message* other = from.posted.contradicting(key)) {
            tell_expected(from, *other);
        }
        end_contradicted(from, envelope);
        from.early.push(*early_.hold(envelope, &bytes, sizeof(bytes)));
    } else if (message->bytes != bytes) {
        tell_expected(from, *message);
        from.posted.take(key);
        from.group.complete(*message, length_mismatch(from, *message, bytes));
    }
}

Status LongMessages::check_request(RankLink& from, const Message& message, const Early& request) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, request.data().data(), sizeof(bytes));
    if (bytes == message.bytes) {
        return {};
    }
    tell_expected(from, message);
    return length_mismatch(from, message, bytes);
}

void LongMessages::arrive_ready(RankLink& to, const Envelope& envelope, std::uint64_t bytes) {
    const Key key = key_of(envelope);
    if (Message* message = to.held.find(key)) {
        if (message->bytes == bytes) {
            go_on(to, *message);
            to.held.take(key);
        } else {
            to.held.take(key);
            to.group.complete(*message, length_mismatch(to, *message, bytes));
        }
    } else if (const Message* contradicted = to.held.contradicting(key)) {
        Message* other = to.held.take(key_of(*contradicted));
        to.group.complete(*other, plan_mismatch(to, envelope.sequence));
    } else {
        to.note_ready(key, bytes);
    }
}

/// Fails a message, since the rank that would have received it has failed. If the message is not
/// held any more, that rank has asked for it before.
void LongMessages::arrive_declined(RankLink& to, const Envelope& envelope) {
    if (Message* message = to.held.take(key_of(envelope))) {
        to.group.complete(*message, described([&] {
            return failure(Code::io_error,
                           "rank {} takes no more messages of group {}: a collective has failed "
                           "there",
                           to.rank, to.group.id);
        }));
    }
}

void LongMessages::arrive_fragment(RankLink& from, const LongHeader& header,
                                   std::span<const std::byte> data) {
    const Key key = key_of(header.envelope);
    Message* message = from.posted.find(key);
    if (message == nullptr) {
        return; // Its receive has failed.
    }
    const std::uint64_t end = header.bytes + data.size();
    if (end > message->bytes) {
        from.posted.take(key);
        from.group.complete(*message, length_mismatch(from, *message, end));
        return;
    }
    std::memcpy(message->data + header.bytes, data.data(), data.size());
    message->moved += data.size();
    if (message->moved == message->bytes) {
        from.posted.take(key);
        from.group.complete(*message, Status());
    }
}

} // namespace ucg::transport::ucx
