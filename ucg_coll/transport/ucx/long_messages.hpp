// Long messages where TCP alone carries them. The receiver begins their rendezvous: it tells that
// the receive is posted, and the sender sends fragments then. Whoever sends first asks to send, so
// that lengths and plans that differ are noticed; nobody waits for the answer.
//
// LongMessages owns what is still to be said about such messages, and which of them go on; of a
// link, the sends that are held until the peer is ready, and what the peer is ready for.
//
// Invariants: a message is in one place only: held by its link, or to be continued, or of an
// operation. No more than one fragment of a message is with UCX.
//
// Called by UcxMessages and, for what is due, by UcxCore. Within UCX's callbacks may be called:
// arrive(), decline(), tell_expected(), say_later() and go_on(), which only list what is to be
// sent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "ucg_coll/transport/ucx/connections.hpp"
#include "ucg_coll/transport/ucx/due.hpp"
#include "ucg_coll/transport/ucx/early.hpp"
#include "ucg_coll/transport/ucx/matching.hpp"
#include "ucg_coll/transport/ucx/operations.hpp"
#include "ucg_coll/transport/ucx/worker.hpp"

namespace ucg::transport::ucx {

class LongMessages {
  public:
    LongMessages(const Setup& setup, WorkerState& state, Operations& operations,
                 UcxEarlyPool& early, Connections& connections)
        : state_(state), operations_(operations), early_(early), connections_(connections),
          bytes_max_of_others_(setup.self.only_tcp ? std::max(setup.options.eager_bytes,
                                                              setup.options.eager_bytes_tcp)
                                                   : std::numeric_limits<std::uint64_t>::max()) {}
    LongMessages(const LongMessages&) = delete;
    LongMessages& operator=(const LongMessages&) = delete;

    /// Does the receiver begin the rendezvous of a message of so many bytes? Only such messages are
    /// sent here. Both ends come to the same answer.
    bool receiver_begins(const Peer& peer, std::uint64_t bytes) const {
        return bytes > bytes_max_of_others_ && peer.address.only_tcp;
    }

    /// Sends a long message, now or when the peer is ready. REQUIRES: the peer is connected.
    void send(RankLink& to, Message& message);

    /// Tells the sender that the receive of a message is posted, if that is long. Without a
    /// connection that is told when there is one.
    void tell_ready(RankLink& from, const Message& message) {
        if (from.peer.endpoint != nullptr && receiver_begins(from.peer, message.bytes)) {
            say_ready(from, message);
        }
    }

    /// Tells the sender of something that does not fit this receive what is expected: otherwise it
    /// would wait. To be called before the message ends.
    void tell_expected(RankLink& from, const Message& message);

    /// Returns ok if a receive that is about to be posted expects what its sender has asked to
    /// send.
    Status check_request(RankLink& from, const Message& message, const Early& request);

    /// Takes what has come with a LongHeader for a group that takes messages.
    void arrive(RankLink& from, const LongHeader& header, std::span<const std::byte> data);

    /// Answers a request to send to a group that was abandoned. Other things that come for the
    /// group need no answer.
    void decline(const GroupState& group, const Envelope& request);
    /// Does so for all requests to send that have come.
    void decline_early(const GroupState& group);

    /// Notes that a header is to be sent as soon as there is a connection to the peer.
    void say_later(Peer& peer, const LongHeader& header) { to_say_.add({&peer, header}); }
    /// Notes that the next fragment of a message is to be sent.
    void go_on(RankLink& to, Message& message) { to_continue_.add({&to, &message}); }

    bool are_due() const { return !to_say_.empty() || !to_continue_.empty(); }
    /// Sends the headers and fragments that are due.
    void work_off();

    /// To be called before the peer is destroyed.
    void forget(const Peer& peer);

  private:
    void say_ready(RankLink& from, const Message& message);
    void tell(RankLink& to, const LongHeader& header);
    void say(Peer& peer, const LongHeader& header);
    void send_fragments(RankLink& to, Message& message);
    void say_due();
    void continue_due();
    void arrive_request(RankLink& from, const Envelope& envelope, std::uint64_t bytes);
    void arrive_ready(RankLink& to, const Envelope& envelope, std::uint64_t bytes);
    static void arrive_declined(RankLink& to, const Envelope& envelope);
    static void arrive_fragment(RankLink& from, const LongHeader& header,
                                std::span<const std::byte> data);

    WorkerState& state_;
    Operations& operations_;
    UcxEarlyPool& early_;
    Connections& connections_;
    const std::uint64_t bytes_max_of_others_;
    Due<std::pair<Peer*, LongHeader>> to_say_;
    Due<std::pair<RankLink*, Message*>> to_continue_;
};

} // namespace ucg::transport::ucx
