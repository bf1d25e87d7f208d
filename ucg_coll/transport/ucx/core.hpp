// The inside of UcxWorker: owns the UCP worker and all parts of it, connects these, and has the
// order in which they do their work.
//
//   UcxMessages     which way a message goes, and which receive an arrival belongs to
//   LongMessages    rendezvous that the receiver begins
//   GroupTable      the groups, and what has come for groups that are not there
//   Parting         good-byes
//   Connections     connections by UCP
//   Lanes           the short lane to each peer, and ShortLane, which uses UCT
//   PeerProcesses   the processes that this one has to do with
//   Operations      what UCP has in progress
//   UcxEarlyPool    what came before its receive was posted
//
// Each calls only those below it. Three interfaces lead upwards: OperationEnd and ConnectionUser to
// UcxMessages, LaneHost to Connections. All know the Setup, which is constant, or the WorkerState.
//
// UCX's callbacks run inside ucp_worker_progress() and uct_worker_progress(). They change states
// and append to lists of what is due, of which each part has its own; they never call UCX.
// run_deferred() then does the work from outside. Nor do they throw: what they do goes through
// WorkerState::attempt().
//
// Threading: whoever calls holds mutex(), unless a function says that it takes it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/optional_mutex.hpp"
#include "ucg_coll/transport/ucx/connections.hpp"
#include "ucg_coll/transport/ucx/context.hpp"
#include "ucg_coll/transport/ucx/early.hpp"
#include "ucg_coll/transport/ucx/groups.hpp"
#include "ucg_coll/transport/ucx/lanes.hpp"
#include "ucg_coll/transport/ucx/long_messages.hpp"
#include "ucg_coll/transport/ucx/messages.hpp"
#include "ucg_coll/transport/ucx/operations.hpp"
#include "ucg_coll/transport/ucx/parting.hpp"
#include "ucg_coll/transport/ucx/peers.hpp"
#include "ucg_coll/transport/ucx/short_lane.hpp"
#include "ucg_coll/transport/ucx/ucx.hpp"
#include "ucg_coll/transport/ucx/worker.hpp"

namespace ucg::transport::ucx {

class UcxCore final : private LaneSink {
  public:
    static Result<std::unique_ptr<UcxCore>> create(const UcxOptions& options);
    /// Closes what is still open, in bounded time. REQUIRES: all groups are detached.
    ~UcxCore();

    std::string_view address() const { return packed_address_; }
    std::uint64_t process() const { return setup_.self.process; }
    OptionalMutex& mutex() { return mutex_; }
    unsigned progress();
    void begin_close();
    bool close_progress();
    const std::vector<InterfaceInfo>& interfaces() const { return lanes_.interfaces(); }
    bool only_tcp() const { return setup_.self.only_tcp; }
    std::string describe() const;

    // Groups.
    bool add_known(GroupState& group, Rank rank, std::uint64_t process);
    Status add(GroupState& group, Rank rank, std::string_view address);
    void release_peers(GroupState& group);
    Status attach(GroupState& group);
    void detach(GroupState& group);  ///< Takes the mutex.
    void abandon(GroupState& group); ///< Takes the mutex.

    // UcxMessages.
    void send(GroupState& group, Message& message) { messages_.send(group, message); }
    void receive(GroupState& group, Message& message) { messages_.receive(group, message); }
    /// Does the work that callbacks left to be done. To be called after a batch of send() and
    /// receive().
    void run_deferred();

  private:
    using Clock = std::chrono::steady_clock;

    UcxCore(const UcxOptions& options, Ucp ucp, std::uint64_t process);
    static Setup setup_of(const UcxOptions& options, const Ucp& ucp, std::uint64_t process);
    Status open();
    bool ucp_is_due(unsigned by_lane);
    void work_off();
    void fail_all();

    // Groups.
    static void add(GroupState& group, Rank rank, Peer& peer);
    void discard_early(const GroupState& group);
    bool let_go(const GroupState& group, std::unique_lock<OptionalMutex>& lock);
    void give_up(const GroupState& group, const char* what);

    // PeerProcesses and what comes from them.
    void meet(const Peer& peer);
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
    static ucs_status_t on_control(void* argument, const void* header, std::size_t header_bytes,
                                   void* data, std::size_t bytes,
                                   const ucp_am_recv_param_t* parameters);

    OptionalMutex mutex_;
    std::string packed_address_;
    Ucp ucp_;
    const Setup setup_;
    WorkerState state_;
    UcxMessages messages_; ///< Made before those that refer to it by an interface.
    Operations operations_;
    UcxEarlyPool early_;
    PeerProcesses peers_;
    Connections connections_;
    Lanes lanes_;
    Parting parting_;
    GroupTable groups_;
    LongMessages long_messages_;

    // What callbacks leave behind that comes from processes, which need not be peers.
    std::vector<LaneNotice> notices_;
    std::vector<ControlArrival> controls_;

    unsigned ucp_busy_turns_ = 0; ///< So many calls of progress() still always poll UCP.
    unsigned turn_ = 0;           ///< Counts calls of progress() while the short lane is in use.
    bool in_progress_ = false;
};

} // namespace ucg::transport::ucx
