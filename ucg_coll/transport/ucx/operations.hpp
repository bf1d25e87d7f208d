// The operations that UCP has in progress: it sends an active message, or pulls the data of a
// rendezvous. Operations owns them, and whatever of them UCX reads or writes; it knows nothing of
// what their ends mean, which an OperationEnd is told.
//
// Invariants: an operation is active from take() to release(), and not moved. UCX may complete
// operations while its worker is destroyed, so this object must outlive the worker.
//
// Called by whoever sends or pulls. UCX calls back within ucp_worker_progress(), or within the call
// that closes an endpoint; its callbacks lead to OperationEnd, which must not call UCX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include <ucp/api/ucp.h>

#include "ucg_coll/transport/ucx/matching.hpp"
#include "ucg_coll/transport/ucx/peer.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"
#include "ucg_coll/transport/ucx/worker.hpp"

namespace ucg::transport::ucx {

class Operations;

/// UCX 1.13 reads a header until the operation completes, so the header lives here.
struct Operation {
    explicit Operation(Operations& operations) : owner(operations) {}

    std::span<const std::byte> short_header() const {
        return std::as_bytes(std::span(&header.envelope, 1));
    }
    std::span<const std::byte> long_header() const { return std::as_bytes(std::span(&header, 1)); }

    Operations& owner;
    LongHeader header; ///< A message that is not long sends the envelope alone.
    ControlHeader control;
    std::string payload; ///< That of a control message.
    bool is_control = false;
    Peer* peer = nullptr;         ///< The receiver of what is sent; null for what is pulled.
    std::uint32_t connection = 0; ///< Sends: Peer::connection when it was made.
    RankLink* link = nullptr;     ///< That of `message`; null where that is null.
    std::byte nothing{};          ///< The byte that an empty rendezvous moves.
    Message* message = nullptr;   ///< Null for what is no message, and once it was given up.
    bool credit = false;          ///< The message has taken credit from its link's window.
    bool active = false;          ///< In progress: not in the list of free operations.
    Operation* next = nullptr;    ///< In the list of free operations.
};

/// Learns of the end of each operation that UCX had in progress.
class OperationEnd {
  public:
    /// Called while the operation is still the caller's, which releases it afterwards. Throws
    /// nothing, and must not call UCX.
    virtual void operation_ended(Operation& operation, ucs_status_t status) = 0;

  protected:
    ~OperationEnd() = default;
};

class Operations {
  public:
    Operations(WorkerState& state, OperationEnd& end) : state_(state), end_(end) {}
    Operations(const Operations&) = delete;
    Operations& operator=(const Operations&) = delete;

    /// Returns an operation with an empty header, for no peer and no message.
    Operation& take();
    /// Returns one that sends to the peer.
    Operation& take_send(Peer& peer);
    void release(Operation& operation);

    /// Hands an active message to UCX. Returns a request while UCX holds the operation, in which
    /// the header lies, else how the operation ended: then the caller releases it. REQUIRES: the
    /// operation's peer is connected.
    static ucs_status_ptr_t put(Operation& operation, unsigned id,
                                std::span<const std::byte> header, std::span<const std::byte> data,
                                std::uint32_t flags);

    /// Hands UCX a word that is no message: nothing here waits for it. REQUIRES: as put().
    void put_word(Operation& operation, unsigned id, std::span<const std::byte> header,
                  std::span<const std::byte> data = {});

    /// Pulls the data of a rendezvous to where the operation's message receives it. OperationEnd
    /// may be called before this returns.
    void pull(Operation& operation, ucp_worker_h worker, void* handle, std::uint64_t bytes);

    /// Notes that a word may not have gone out: its peer may wait for it for ever, so the worker
    /// fails where UCX had no memory. An endpoint that has failed reports itself, and gives another
    /// status.
    void note_loss(const Peer& peer, ucs_status_t status);

    /// How many operations are active.
    std::uint64_t active() const { return active_; }
    /// Does one of them send to the peer?
    bool sends_to(const Peer& peer) const;

    /// Calls `visit` with each active operation that has a message.
    template <typename Visit>
    void visit_messages(Visit visit) {
        for (Operation& operation : all_) {
            if (operation.active && operation.message != nullptr) {
                visit(operation);
            }
        }
    }

    /// Ends the messages of the links for which `condition` is true. UCX keeps their operations
    /// until these end; the messages do not wait for that.
    template <typename Condition>
    void give_up_if(Condition condition) {
        visit_messages([&](Operation& operation) {
            if (condition(*operation.link)) {
                give_up(operation);
            }
        });
    }

  private:
    static void give_up(Operation& operation);
    void finish(Operation& operation, ucs_status_t status);
    static void on_sent(void* request, ucs_status_t status, void* operation);
    static void on_pulled(void* request, ucs_status_t status, std::size_t bytes, void* operation);

    WorkerState& state_;
    OperationEnd& end_;
    std::deque<Operation> all_;
    Operation* free_ = nullptr;
    std::uint64_t active_ = 0;
};

} // namespace ucg::transport::ucx
