// Sending, receiving and matching: each message goes by the way that fits it (a line, the short
// lane, UCP eagerly or by rendezvous, or as LongMessages has it), and each arrival to the receive
// that it belongs to.
//
// UcxMessages owns what is due for messages that are neither waiting in a link nor with UCX: pulls
// of rendezvous whose receives are posted, links that owe their peers credits, and arrivals that
// nobody will receive.
//
// Invariants: those of a RankLink (matching.hpp). A group's `in_flight` counts the operations that
// have a message of it.
//
// Called by transports, through UcxCore, with what is to be sent and received; by UcxCore with what
// came by the short lane; by UCP's callbacks; and by Operations and Connections. What arrives, and
// operation_ended(), come within UCX's callbacks, so they list what needs UCX.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ucp/api/ucp.h>

#include "ucg_coll/transport/ucx/connections.hpp"
#include "ucg_coll/transport/ucx/due.hpp"
#include "ucg_coll/transport/ucx/early.hpp"
#include "ucg_coll/transport/ucx/groups.hpp"
#include "ucg_coll/transport/ucx/long_messages.hpp"
#include "ucg_coll/transport/ucx/matching.hpp"
#include "ucg_coll/transport/ucx/operations.hpp"
#include "ucg_coll/transport/ucx/worker.hpp"

namespace ucg::transport::ucx {

class UcxMessages final : public OperationEnd, public ConnectionUser {
  public:
    /// What it refers to but `setup` may still be to be constructed.
    UcxMessages(const Setup& setup, WorkerState& state, Operations& operations, UcxEarlyPool& early,
                Connections& connections, GroupTable& groups, LongMessages& long_messages);
    UcxMessages(const UcxMessages&) = delete;
    UcxMessages& operator=(const UcxMessages&) = delete;

    void send(GroupState& group, Message& message);
    void receive(GroupState& group, Message& message);

    /// Takes a message, or a credit, whose data is here and will be gone on return.
    void arrive(const Envelope& envelope, const void* data, std::size_t bytes);

    /// UCP's handler for kUcpData. `messages` is the object.
    static ucs_status_t on_data(void* messages, const void* header, std::size_t header_bytes,
                                void* data, std::size_t bytes,
                                const ucp_am_recv_param_t* parameters);

    void operation_ended(Operation& operation, ucs_status_t status) override;
    void send_waiting(Peer& peer) override;

    bool are_pulls_due() const { return !pulls_.empty(); }
    void pull_due();
    bool are_credits_due() const { return !credits_due_.empty(); }
    void send_credits();
    void discard_unwanted() { early_.discard(unwanted_); }

  private:
    /// A rendezvous whose receive is posted.
    struct Pull {
        RankLink* from;
        Message* message;
        Early* early;
    };

    void settle(Operation& operation, ucs_status_t status);
    void take_back(Operation& operation);
    bool transmit(RankLink& to, Message& message);
    static bool send_short(RankLink& to, const Message& message, const Envelope& envelope);
    static bool put_line(Peer& peer, const Message& message, const Envelope& envelope);
    bool send_ucp(RankLink& to, Message& message, const Envelope& envelope, bool credit);
    void send_credit(RankLink& to);
    void arrive_rendezvous(const Envelope& envelope, void* handle, std::size_t bytes);
    void arrive_long(const LongHeader& header, std::span<const std::byte> data);
    void arrive_without_group(const LongHeader& header);
    Status copy_in(RankLink& from, Message& message, const void* data, std::uint64_t bytes);
    void pull_into(RankLink& from, Message& message, void* handle, std::uint64_t bytes);

    const ucp_worker_h worker_;
    const std::size_t eager_bytes_;
    const std::uint32_t window_bytes_;
    WorkerState& state_;
    Operations& operations_;
    UcxEarlyPool& early_;
    Connections& connections_;
    GroupTable& groups_;
    LongMessages& long_messages_;
    Due<Pull> pulls_;
    Due<RankLink*> credits_due_; ///< Links that owe their peers a credit message.
    Fifo<Early> unwanted_;       ///< Arrivals that nobody will receive.
};

} // namespace ucg::transport::ucx
