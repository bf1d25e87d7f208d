// Long messages where TCP alone carries them. The receiver begins their rendezvous: it tells that
// the receive is posted, and the sender sends fragments then. Whoever sends first asks to send, so
// that lengths and plans that differ are noticed; nobody waits for the answer.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ucg_coll/transport/ucx/core.hpp"
#include "ucg_coll/transport/ucx/envelope.hpp"

namespace ucg::transport::ucx {

namespace {

LongHeader about(const Link& link, const Message& message, Kind what) {
    LongHeader header = {envelope_of(link, message), message.bytes};
    header.envelope.kind = what;
    return header;
}

} // namespace

/// Does the receiver begin the rendezvous of a message of so many bytes? Both ends come to the same
/// answer.
bool Core::receiver_begins(const Peer& peer, std::uint64_t bytes) const {
    return bytes > std::max(setup_.options.eager_bytes, setup_.options.eager_bytes_tcp) &&
           setup_.self.only_tcp && peer.address.only_tcp;
}

/// Sends a long message, now or when the peer is ready. REQUIRES: the peer is connected.
void Core::send_long(Link& to, Message& message) {
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

/// Tells the sender that the receive of a long message is posted. Without a connection that is told
/// when there is one.
void Core::tell_ready(Link& from, const Message& message) {
    if (from.peer.endpoint != nullptr && receiver_begins(from.peer, message.bytes)) {
        tell(from, about(from, message, Kind::ready_to_receive));
    }
}

/// Tells the sender of something that does not fit this receive what is expected: otherwise it
/// would wait. To be called before the message ends.
void Core::tell_expected(Link& from, const Message& message) {
    to_say_.add({&from.peer, about(from, message, Kind::ready_to_receive)});
}

void Core::tell(Link& to, const LongHeader& header) {
    to.reported = header.envelope.released;
    say(to.peer, header);
}

/// Sends a header without data. REQUIRES: the peer is connected.
void Core::say(Peer& peer, const LongHeader& header) {
    Operation& operation = operations_.take_send(peer);
    operation.header = header;
    operations_.put_word(operation, kUcpData, operation.long_header());
}

/// Sends the rest of a long message, one fragment after the other: UCX holds one fragment at most,
/// behind which other messages to the peer wait.
void Core::send_fragments(Link& to, Message& message) {
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
            to.group.complete(message, sending_failed(to, UCS_PTR_STATUS(request)));
            return;
        }
        to.peer.carried = true;
    }
    to.group.complete(message, Status());
}

/// Sends the headers that callbacks found due. A worker that has said good-bye says nothing more.
void Core::say_due() {
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
void Core::continue_long() {
    to_continue_.take_all([this](const std::pair<Link*, Message*>& due) {
        Link& link = *due.first;
        if (!link.peer.failure.ok() || link.peer.endpoint == nullptr) {
            link.group.complete(*due.second,
                                !link.peer.failure.ok() ? link.peer.failure : described([] {
                                    return failure(Code::io_error, "the connection is gone");
                                }));
        } else if (!state_.attempt([&] { send_fragments(link, *due.second); })) {
            link.group.complete(*due.second, memory_ran_out());
        }
    });
}

void Core::arrive_long(const LongHeader& header, std::span<const std::byte> data) {
    const Envelope& envelope = header.envelope;
    Group* group = groups_.find(envelope.group);
    if (group == nullptr) {
        arrive_without_group(header);
        return;
    }
    if (group->abandoned) {
        decline(*group, envelope);
        return;
    }
    Link* from = receiver_of(*group, envelope);
    if (from == nullptr) {
        return;
    }
    if (envelope.kind != Kind::declined) { // It gives nothing back.
        from->acknowledge(envelope.released);
    }
    switch (envelope.kind) {
    case Kind::request_to_send: arrive_request(*from, envelope, header.bytes); return;
    case Kind::ready_to_receive: arrive_ready(*from, envelope, header.bytes); return;
    case Kind::declined: arrive_declined(*from, envelope); return;
    case Kind::fragment: arrive_fragment(*from, header, data); return;
    case Kind::data:
    case Kind::empty:
    case Kind::credit: return; // These have no LongHeader.
    }
}

/// Takes what comes for a group that does not exist here yet, or that was abandoned and has ended.
void Core::arrive_without_group(const LongHeader& header) {
    const Envelope& envelope = header.envelope;
    if (const Group* ended = groups_.find_abandoned(envelope.group)) {
        decline(*ended, envelope);
    } else if (envelope.kind == Kind::request_to_send || envelope.kind == Kind::ready_to_receive) {
        groups_.keep(*early_.hold(envelope, &header.bytes, sizeof(header.bytes)));
    }
}

/// Answers a request to send to a group that was abandoned. Other things that come for the group
/// need no answer.
void Core::decline(const Group& group, const Envelope& request) {
    const auto source = static_cast<std::size_t>(request.source);
    if (request.kind != Kind::request_to_send || source >= group.peers.size() ||
        group.peers[source] == nullptr) {
        return;
    }
    LongHeader answer;
    answer.envelope = request;
    answer.envelope.group = group.ids[source];
    answer.envelope.source = group.self;
    answer.envelope.released = 0;
    answer.envelope.kind = Kind::declined;
    to_say_.add({group.peers[source], answer});
}

/// Takes a request to send. It needs no answer where all is well: the sender knows, or hears soon,
/// whether the receive is posted.
void Core::arrive_request(Link& from, const Envelope& envelope, std::uint64_t bytes) {
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

/// Returns ok if a receive that is about to be posted expects what its sender has asked to send.
Status Core::check_request(Link& from, const Message& message, const Early& request) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, request.data().data(), sizeof(bytes));
    if (bytes == message.bytes) {
        return {};
    }
    tell_expected(from, message);
    return length_mismatch(from, message, bytes);
}

void Core::arrive_ready(Link& to, const Envelope& envelope, std::uint64_t bytes) {
    const Key key = key_of(envelope);
    if (Message* message = to.held.find(key)) {
        if (message->bytes == bytes) {
            to_continue_.add({&to, message});
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
void Core::arrive_declined(Link& to, const Envelope& envelope) {
    if (Message* message = to.held.take(key_of(envelope))) {
        to.group.complete(*message, described([&] {
            return failure(Code::io_error,
                           "rank {} takes no more messages of group {}: a collective has failed "
                           "there",
                           to.rank, to.group.id);
        }));
    }
}

void Core::arrive_fragment(Link& from, const LongHeader& header, std::span<const std::byte> data) {
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
