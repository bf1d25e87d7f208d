// The inside of UcxWorker: owns the UCX objects, the peers and the operations that UCX holds, and
// turns arrivals into message states.
//
// UCX's callbacks run inside ucp_worker_progress() and uct_worker_progress(). They change states
// and append to the lists under "what callbacks leave behind"; they never call UCX. run_deferred()
// then does the work from outside. Nor do they throw: what they do goes through
// WorkerState::attempt().
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/optional_mutex.hpp"
#include "ucg_coll/transport/ucx/address.hpp"
#include "ucg_coll/transport/ucx/close.hpp"
#include "ucg_coll/transport/ucx/connections.hpp"
#include "ucg_coll/transport/ucx/context.hpp"
#include "ucg_coll/transport/ucx/due.hpp"
#include "ucg_coll/transport/ucx/early.hpp"
#include "ucg_coll/transport/ucx/exhaustion.hpp"
#include "ucg_coll/transport/ucx/groups.hpp"
#include "ucg_coll/transport/ucx/lanes.hpp"
#include "ucg_coll/transport/ucx/matching.hpp"
#include "ucg_coll/transport/ucx/operations.hpp"
#include "ucg_coll/transport/ucx/peer.hpp"
#include "ucg_coll/transport/ucx/peers.hpp"
#include "ucg_coll/transport/ucx/short_lane.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"
#include "ucg_coll/transport/ucx/worker.hpp"

namespace ucg::transport::ucx {

class Core final : private LaneSink, private OperationEnd, private ConnectionUser {
  public:
    static Result<std::unique_ptr<Core>> create(const UcxOptions& options);
    ~Core();

    std::string_view address() const { return packed_address_; }
    /// The caller holds it during every call below that changes something, except detach() and
    /// abandon(), which take it themselves.
    OptionalMutex& mutex() { return mutex_; }
    unsigned progress();
    void begin_close();
    bool close_progress();
    const std::vector<InterfaceInfo>& interfaces() const { return lanes_.interfaces(); }
    bool only_tcp() const { return setup_.self.only_tcp; }
    std::string describe() const;

    // Groups.
    Status attach(Group& group, const std::vector<PeerAddress>& peers);
    void detach(Group& group);
    void abandon(Group& group);

    // Messages: messages.cpp.
    void send(Group& group, Message& message);
    void receive(Group& group, Message& message);
    /// Does the work that callbacks left to be done. To be called after a batch of send() and
    /// receive().
    void run_deferred();

  private:
    using Clock = std::chrono::steady_clock;

    Core(const UcxOptions& options, Ucp ucp, std::uint64_t process);
    static Setup setup_of(const UcxOptions& options, const Ucp& ucp, std::uint64_t process);
    Status open();
    bool ucp_is_due(unsigned by_lane);
    void work_off();
    void fail_all();

    // Ended operations.
    void operation_ended(Operation& operation, ucs_status_t status) override;
    void settle(Operation& operation, ucs_status_t status);
    void take_back(Operation& operation);
    void send_waiting(Peer& peer) override;

    // Messages.
    bool transmit(Link& to, Message& message);
    static bool send_short(Link& to, const Message& message, const Envelope& envelope);
    static bool put_line(Peer& peer, const Message& message, const Envelope& envelope);
    bool send_ucp(Link& to, Message& message, const Envelope& envelope, bool credit);
    void send_credit(Link& to);
    void arrive(const Envelope& envelope, const void* data, std::size_t bytes);
    void arrive_rendezvous(const Envelope& envelope, void* handle, std::size_t bytes);
    Status copy_in(Link& from, Message& message, const void* data, std::uint64_t bytes);
    void pull_into(Link& from, Message& message, void* handle, std::uint64_t bytes);

    // Long messages where TCP alone carries them: rendezvous.cpp.
    bool receiver_begins(const Peer& peer, std::uint64_t bytes) const;
    void send_long(Link& to, Message& message);
    void tell_ready(Link& from, const Message& message);
    void tell_expected(Link& from, const Message& message);
    void tell(Link& to, const LongHeader& header);
    void say(Peer& peer, const LongHeader& header);
    void send_fragments(Link& to, Message& message);
    void continue_long();
    void say_due();
    void arrive_long(const LongHeader& header, std::span<const std::byte> data);
    void arrive_without_group(const LongHeader& header);
    void decline(const Group& group, const Envelope& request);
    void arrive_request(Link& from, const Envelope& envelope, std::uint64_t bytes);
    Status check_request(Link& from, const Message& message, const Early& request);
    void arrive_ready(Link& to, const Envelope& envelope, std::uint64_t bytes);
    static void arrive_declined(Link& to, const Envelope& envelope);
    static void arrive_fragment(Link& from, const LongHeader& header,
                                std::span<const std::byte> data);

    // Groups.
    void release_peers(Group& group);
    void discard_early(const Group& group);
    void decline_early(const Group& group);
    bool let_go(const Group& group, std::unique_lock<OptionalMutex>& lock);
    void give_up(const Group& group, const char* what);

    // Peers and what comes from them.
    Peer& meet(ProcessAddress address);
    void forget_if_unused(Peer& peer);
    void forget(Peer& peer);
    void forget_departed();
    void handle_control(const ControlHeader& header, const std::string& payload);
    void handle_arrivals();

    // LaneSink.
    void lane_data(const Envelope& envelope, const void* data, std::size_t bytes) override;
    void lane_notice(const LaneNotice& notice) override;
    void lane_error(uct_ep_h endpoint, ucs_status_t status) override;

    // UCP's callbacks.
    static ucs_status_t on_data(void* argument, const void* header, std::size_t header_bytes,
                                void* data, std::size_t bytes,
                                const ucp_am_recv_param_t* parameters);
    static ucs_status_t on_control(void* argument, const void* header, std::size_t header_bytes,
                                   void* data, std::size_t bytes,
                                   const ucp_am_recv_param_t* parameters);

    OptionalMutex mutex_;
    std::string packed_address_;

    Ucp ucp_;
    const Setup setup_;
    WorkerState state_;
    Operations operations_;
    EarlyArrivals early_;
    const std::size_t eager_bytes_;
    Peers peers_;
    Connections connections_;
    Lanes lanes_;
    Parting parting_;
    GroupTable groups_;

    // What callbacks leave behind.
    struct Pull {
        Link* from;
        Message* message;
        Early* early;
    };
    Due<Pull> pulls_; ///< Rendezvous whose receives are posted.
    /// Headers about long messages, which are sent as soon as there is a connection to the peer.
    Due<std::pair<Peer*, LongHeader>> to_say_;
    /// Long messages whose next fragment is to be sent.
    Due<std::pair<Link*, Message*>> to_continue_;
    Due<Link*> credits_due_; ///< Links that owe their peers a credit message.
    Fifo<Early> unwanted_;   ///< Arrivals that nobody will receive, to be discarded.
    std::vector<LaneNotice> notices_;
    std::vector<ControlArrival> controls_;

    unsigned ucp_busy_turns_ = 0; ///< So many calls of progress() still always poll UCP.
    unsigned turn_ = 0;           ///< Counts calls of progress() while the short lane is in use.
    bool in_progress_ = false;
    Status broken_; ///< Why no more groups are taken; ok while they are.
};

} // namespace ucg::transport::ucx
