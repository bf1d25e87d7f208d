#include "ucg_coll/transport/ucx/core.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "ucg_coll/base/random.hpp"

namespace ucg::transport::ucx {

namespace {

constexpr unsigned kUcpBusyTurns = 256;
constexpr unsigned kUcpQuietPeriod = 4;

/// Ends the messages that wait in these lists of the group's links.
void end_waiting(GroupState& group, std::initializer_list<Fifo<Message> RankLink::*> lists,
                 const Status& why) {
    for (const std::unique_ptr<RankLink>& link : group.links) {
        for (Fifo<Message> RankLink::*list : lists) {
            while (Message* message = (*link.*list).pop()) {
                group.complete(*message, why);
            }
        }
    }
}

/// Keeps a context whose worker could not give everything back: UCX 1.18 ends a process that
/// cleans up a context in which memory of an unfinished message is still registered.
void keep_for_ever(UcpContext context) {
    static std::mutex mutex;
    static auto* const kept = new std::vector<ucp_context_h>; // For those who look for leaks.
    const std::lock_guard lock(mutex);
    const ucp_context_h leaked = context.release();
    try {
        kept->push_back(leaked);
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): it is kept all the same.
    }
}

} // namespace

Result<std::unique_ptr<UcxCore>> UcxCore::create(const UcxOptions& options) {
    static_cast<void>(memory_ran_out());
    Result<Ucp> ucp = open_ucp(options);
    if (!ucp) {
        return ucp.status();
    }
    // No other process has it, but for a chance of 2^-63 per pair; 0 is nobody's.
    const Result<std::uint64_t> process = random_word();
    if (!process) {
        return process.status();
    }
    std::unique_ptr<UcxCore> core(new UcxCore(options, std::move(*ucp), *process | 1));
    const Status status = core->open();
    if (!status.ok()) {
        return status;
    }
    return core;
}

Setup UcxCore::setup_of(const UcxOptions& options, const Ucp& ucp, std::uint64_t process) {
    Setup setup;
    setup.options = options;
    setup.worker = ucp.worker.get();
    setup.self.process = process;
    setup.self.place = this_place();
    setup.self.only_tcp = ucp.inventory.only_tcp();
    setup.self.ucp = ucp.address;
    setup.detects_failures = options.detect_failures && ucp.inventory.has_network();
    return setup;
}

UcxCore::UcxCore(const UcxOptions& options, Ucp ucp, std::uint64_t process)
    : mutex_(options.threads), ucp_(std::move(ucp)), setup_(setup_of(options, ucp_, process)),
      messages_(setup_, state_, operations_, early_, connections_, groups_, long_messages_),
      operations_(state_, messages_), early_(setup_.worker),
      connections_(setup_, state_, operations_, peers_, lanes_, messages_),
      lanes_(setup_, state_, peers_, connections_),
      parting_(setup_, state_, operations_, peers_, lanes_, connections_), groups_(early_),
      long_messages_(setup_, state_, operations_, early_, connections_) {}

Status UcxCore::open() {
    for (const unsigned id : {kUcpData, kUcpControl}) {
        ucp_am_handler_param_t parameters{};
        parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                                UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
        parameters.id = id;
        parameters.flags = UCP_AM_FLAG_WHOLE_MSG;
        parameters.cb = id == kUcpData ? UcxMessages::on_data : on_control;
        parameters.arg = id == kUcpData ? static_cast<void*>(&messages_) : this;
        const ucs_status_t status = ucp_worker_set_am_recv_handler(setup_.worker, &parameters);
        if (status != UCS_OK) {
            return ucx_failure(status, "setting UCX's handler of active messages");
        }
    }
    lanes_.open(ucp_.inventory, *this);
    ProcessAddress address = setup_.self;
    address.lanes = lanes_.addresses();
    packed_address_ = pack(address);
    return {};
}

UcxCore::~UcxCore() {
    UCG_ASSERT(groups_.empty());
    while (!close_progress()) {
        std::this_thread::yield(); // The peers may need this processor to answer.
    }
    groups_.discard_orphans();
    const bool unfinished = operations_.active() > 0;
    ucp_.worker.reset(); // While the peers of what it may still complete are there.
    peers_.clear();      // Their lanes go before the interfaces.
    if (unfinished) {
        keep_for_ever(std::move(ucp_.context));
    }
}

/// Is UCP to be polled in this call of progress()? To poll it costs as much as the whole short
/// path. While only the short lane has work, UCP is polled in one of kUcpQuietPeriod calls; once it
/// has moved something it is polled in every call for a while.
bool UcxCore::ucp_is_due(unsigned by_lane) {
    if (!lanes_.in_use() || !state_.running()) {
        return true;
    }
    ++turn_;
    if (ucp_busy_turns_ > 0 && by_lane == 0) {
        --ucp_busy_turns_;
        return true;
    }
    return turn_ % kUcpQuietPeriod == 0;
}

unsigned UcxCore::progress() {
    if (in_progress_) {
        return 0;
    }
    in_progress_ = true;
    unsigned by_lane = lanes_.progress();
    // After notices: who says good-bye has put its lines before.
    by_lane += lanes_.take_lines(
        [this](const RingLine& line) { lane_data(line.envelope, line.data.data(), line.bytes); });
    const unsigned by_ucp = ucp_is_due(by_lane) ? ucp_worker_progress(setup_.worker) : 0;
    if (by_ucp > 0 || operations_.active() > 0) {
        ucp_busy_turns_ = kUcpBusyTurns;
    }
    in_progress_ = false;
    run_deferred();
    return by_lane + by_ucp;
}

void UcxCore::begin_close() {
    parting_.begin();
}

bool UcxCore::close_progress() {
    parting_.begin();
    progress();
    return parting_.advance();
}

void UcxCore::run_deferred() {
    state_.attempt([this] { work_off(); });
    if (state_.take_loss()) {
        fail_all();
    }
}

/// Fails all peers, and takes no more groups from then on: whose message was lost, or which news of
/// whom, cannot always be told, and a message may be for a group that is yet to come.
void UcxCore::fail_all() {
    if (state_.broken().ok()) {
        state_.break_down(memory_ran_out());
        static_cast<void>(
            suffices([] { log(LogLevel::error, "ucx: {}", memory_ran_out().message()); }));
    }
    groups_.visit([this](GroupState& group) {
        group.status = group.status.ok() ? state_.broken() : group.status;
        discard_early(group);
    });
    peers_.visit([this](Peer& peer) { Connections::fail(peer, state_.broken()); });
    state_.attempt([this] { peers_.visit([this](Peer& peer) { parting_.leave(peer); }); });
}

/// Does the work that callbacks have left. What is taken out of a list is done, or known to be
/// lost, before anything is thrown.
void UcxCore::work_off() {
    if (messages_.are_pulls_due()) {
        messages_.pull_due();
    }
    if (long_messages_.are_due()) {
        long_messages_.work_off();
    }
    if (messages_.are_credits_due()) {
        messages_.send_credits();
    }
    messages_.discard_unwanted();
    handle_arrivals();
    if (connections_.are_due()) {
        connections_.work_off();
    }
    if (lanes_.are_to_greet()) {
        lanes_.greet_again();
    }
    if (parting_.are_flushing()) {
        parting_.reap_flushing();
    }
    if (connections_.are_closing()) {
        connections_.reap_closing();
    }
    if (peers_.have_departed()) { // Last: nothing above names a peer any more.
        forget_departed();
    }
}

std::string UcxCore::describe() const {
    std::string out = "UCX resources:";
    for (const UcpInventory::Resource& resource : ucp_.inventory.resources) {
        out += fmt::format(" {}/{}", resource.transport, resource.device);
    }
    out += fmt::format("\nfailure detection: {}\n", setup_.detects_failures ? "on"
                                                    : setup_.options.detect_failures
                                                        ? "off (only shared memory, which cannot)"
                                                        : "off (not asked for)");
    out += lanes_.describe();
    peers_.visit([&](const Peer& peer) {
        out += fmt::format("peer {:016x}: {}, short lane {}\n", peer.address.process,
                           !peer.failure.ok()         ? peer.failure.message()
                           : peer.endpoint != nullptr ? "connected"
                                                      : "not connected",
                           lanes_.describe(peer));
    });
    return out;
}

bool UcxCore::add_known(GroupState& group, Rank rank, std::uint64_t process) {
    Peer* const peer = peers_.find_introduced(process);
    if (peer == nullptr) {
        return false;
    }
    add(group, rank, *peer);
    return true;
}

Status UcxCore::add(GroupState& group, Rank rank, std::string_view address) {
    Result<ProcessAddress> unpacked = unpack(address);
    if (!unpacked) {
        return unpacked.status();
    }
    Peer& peer = peers_.introduce(std::move(*unpacked));
    add(group, rank, peer);
    meet(peer);
    return {};
}

void UcxCore::add(GroupState& group, Rank rank, Peer& peer) {
    Member& member = group.members[static_cast<std::size_t>(rank)];
    UCG_ASSERT(member.peer() == nullptr && rank != group.self);
    member.set(peer);
    ++peer.groups;
}

Status UcxCore::attach(GroupState& group) {
    if (!state_.broken().ok()) {
        return state_.broken();
    }
    if (groups_.contains(group.id)) {
        return failure(Code::invalid_argument, "ucx: group {} exists already in this process",
                       group.id);
    }
    groups_.add(group);
    return {};
}

/// Releases what has come for receives that will not be posted.
void UcxCore::discard_early(const GroupState& group) {
    for (const std::unique_ptr<RankLink>& link : group.links) {
        early_.discard(link->early);
    }
}

void UcxCore::release_peers(GroupState& group) {
    for (const Member& member : group.members) {
        if (Peer* const peer = member.peer()) {
            --peer->groups;
            peers_.note_departed(*peer);
            forget_if_unused(*peer);
        }
    }
    group.members.clear();
}

/// Waits, in bounded time, until UCX holds no message of the group. Returns whether it holds none.
bool UcxCore::let_go(const GroupState& group, std::unique_lock<OptionalMutex>& lock) {
    const Clock::time_point deadline = Clock::now() + setup_.options.close_timeout;
    progress(); // Afterwards no list of deferred work names the group.
    while (group.in_flight > 0 && Clock::now() < deadline) {
        lock.unlock(); // Other groups' threads need the worker as well.
        std::this_thread::yield();
        lock.lock();
        progress();
    }
    return group.in_flight == 0;
}

void UcxCore::give_up(const GroupState& group, const char* what) {
    static_cast<void>(suffices([&] {
        log(LogLevel::warn,
            "ucx: group {} {} with {} messages that UCX still holds; their buffers must outlive "
            "the worker",
            group.id, what, group.in_flight);
    }));
    operations_.give_up_if([&](const RankLink& link) { return &link.group == &group; });
}

/// Throws nothing: it is called by a destructor, also when memory has run out.
void UcxCore::detach(GroupState& group) {
    std::unique_lock lock(mutex_);
    const Status ended = described([] { return Status(Code::io_error, "the group has ended"); });
    end_waiting(group, {&RankLink::posted}, ended);
    if (!let_go(group, lock)) {
        give_up(group, "ends");
    }
    end_waiting(group, {&RankLink::unsent, &RankLink::held}, ended);
    discard_early(group);
    for (const std::unique_ptr<RankLink>& link : group.links) {
        std::erase(link->peer.links, link.get());
    }
    groups_.remove(group);
    if (group.abandoned) {
        groups_.keep_peers(group);
    } else {
        release_peers(group);
    }
}

/// Gives up all messages of a group. When this returns nothing is written to the buffers of the
/// group's messages any more, nor read from them; README.md says where that cannot be had. What a
/// peer has under way ends soon, unless the peer is busy elsewhere. Rendezvous that wait here for
/// their receives are released, and requests to send declined, so that the messages of their
/// senders end; so are those that come later. Throws nothing: it is called when memory has run out.
void UcxCore::abandon(GroupState& group) {
    std::unique_lock lock(mutex_);
    if (group.abandoned) {
        return;
    }
    run_deferred(); // Afterwards no list of deferred work names the group, nor will one.
    if (group.status.ok()) {
        group.status = described([] {
            return Status(Code::io_error, "the group was given up: another transport failed");
        });
    }
    group.abandoned = true;
    end_waiting(group, {&RankLink::posted, &RankLink::unsent, &RankLink::held}, group.status);
    state_.attempt([&] {
        groups_.note_abandoned(group);
        long_messages_.decline_early(group);
    });
    discard_early(group);
    bool over = let_go(group, lock);
    if (!over) {
        state_.attempt([&] { over = connections_.drop_holders(group) && let_go(group, lock); });
    }
    if (!over) {
        give_up(group, "is given up");
    }
}

/// To be called once a process has become a peer. What came from it before goes back to where
/// arrivals wait.
void UcxCore::meet(const Peer& peer) {
    const std::uint64_t process = peer.address.process;
    if (const Stranger* stranger = lanes_.find_stranger(process)) {
        if (stranger->greeting) {
            notices_.push_back(*stranger->greeting);
        }
        if (stranger->offer) {
            controls_.push_back(*stranger->offer);
        }
        lanes_.forget_stranger(process);
    }
}

void UcxCore::forget_if_unused(Peer& peer) {
    if (peer.groups == 0 && !peer.connected) {
        forget(peer);
    }
}

/// Destroys the peer. REQUIRES: no group has it, and it is not held.
void UcxCore::forget(Peer& peer) {
    connections_.forget(peer);
    long_messages_.forget(peer);
    lanes_.forget(peer);
    peers_.erase(peer);
}

/// Forgets the peers that have left and that nothing names any more, but for their ids: a program
/// may start and end other processes as long as it runs. Where UCX does not tell that a connection
/// is gone, which is so where it shares memory, the endpoint stays, and with it the peer.
void UcxCore::forget_departed() {
    groups_.forget_abandoned([](Peer& peer) {
        peer.groups -= peer.left ? 1 : 0;
        return peer.left;
    });
    peers_.visit_departed([this](Peer& peer) {
        if (state_.running() && !connections_.hold(peer) && !parting_.is_flushing(peer) &&
            peers_.remember(peer)) {
            forget(peer);
        }
    });
}

ucs_status_t UcxCore::on_control(void* argument, const void* header, std::size_t header_bytes,
                                 void* data, std::size_t bytes,
                                 const ucp_am_recv_param_t* /*parameters*/) {
    UcxCore& core = *static_cast<UcxCore*>(argument);
    if (header_bytes == sizeof(ControlHeader)) {
        core.state_.attempt([&] {
            ControlArrival arrival;
            std::memcpy(&arrival.header, header, sizeof(arrival.header));
            arrival.payload.assign(static_cast<const char*>(data), bytes);
            core.controls_.push_back(std::move(arrival));
        });
    }
    return UCS_OK;
}

void UcxCore::handle_control(const ControlHeader& header, const std::string& payload) {
    if (header.target != setup_.self.process) {
        return;
    }
    Peer* peer = peers_.find(header.source);
    if (header.what == Control::bye && peer == nullptr) {
        ProcessAddress address;
        address.process = header.source;
        address.ucp = payload;
        peer = &peers_.intern(std::move(address));
        meet(*peer);
    }
    if (peer == nullptr) {
        lanes_.handle_stranger(header, payload);
        return;
    }
    switch (header.what) {
    case Control::lane_answer:
    case Control::lane_offer:
    case Control::lane_acceptance:
    case Control::lane_refusal:
    case Control::lane_withdrawal: lanes_.handle_control(*peer, header, payload); break;
    case Control::bye: parting_.take_bye(*peer, header.detail != 0); break;
    case Control::bye_answer:
        parting_.take_answer(*peer);
        if (!state_.broken().ok()) {
            connections_.close(*peer, true);
        }
        break;
    case Control::start_over: connections_.doubt(*peer); break;
    case Control::probe: break;
    }
}

/// Handles what the callbacks have left, in the order that keeps good-byes behind data.
void UcxCore::handle_arrivals() {
    if (connections_.have_errors()) {
        connections_.handle_errors();
    }
    for (const LaneNotice& notice : std::exchange(notices_, {})) {
        if (notice.what == LaneNotice::What::greeting) {
            lanes_.answer_greeting(notice);
        } else if (Peer* peer = peers_.find(notice.source)) {
            parting_.take_lane_bye(*peer);
        }
    }
    for (const ControlArrival& arrival : std::exchange(controls_, {})) {
        handle_control(arrival.header, arrival.payload);
    }
    if (lanes_.have_errors()) {
        lanes_.handle_errors();
    }
}

void UcxCore::lane_data(const Envelope& envelope, const void* data, std::size_t bytes) {
    state_.attempt([&] { messages_.arrive(envelope, data, bytes); });
}

void UcxCore::lane_notice(const LaneNotice& notice) {
    if (notice.target != setup_.self.process) {
        return;
    }
    if (notice.what == LaneNotice::What::taken) {
        lanes_.acknowledge(notice);
    } else {
        state_.attempt([&] { notices_.push_back(notice); });
    }
}

void UcxCore::lane_error(uct_ep_h endpoint, ucs_status_t status) {
    lanes_.note_error(endpoint, status);
}

} // namespace ucg::transport::ucx
