// One group of ranks: where they are, how they are reached, their plans and their engine.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shm/shm.hpp"
#include "topo/topo.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/edge_rooms.hpp"
#include "ucg_coll/capi/mean_block.hpp"
#include "ucg_coll/capi/packing.hpp"
#include "ucg_coll/capi/plan_cache.hpp"
#include "ucg_coll/capi/planner.hpp"
#include "ucg_coll/capi/stall.hpp"
#include "ucg_coll/capi/wireup/wireup.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::capi {

/// A prepared collective.
struct PreparedCollective {
    Group* group = nullptr;
    PlanRun* run = nullptr;
    graph::Collective type = graph::Collective::barrier;
};

/// Whose the next step of a handle is.
enum class HandleState : std::uint8_t {
    held,   ///< Its holder's: to start it or free it, unless it is in progress.
    posted, ///< The context's: to tell of its end.
    spare   ///< The group's: to hand it out.
};

} // namespace ucg::capi

/// What ucg_coll_h points to. A group keeps those that were freed for later collectives.
struct ucg_request {
    ucg::capi::PreparedCollective collective;
    /// Changes under the group's lock, except from posted to held.
    std::atomic<ucg::capi::HandleState> state = ucg::capi::HandleState::spare;
    ucg::capi::CallBinding binding;
    ucg::capi::Completion completion;            ///< In use while it is posted.
    std::unique_ptr<ucg::capi::Packing> packing; ///< Null: the caller's elements are dense.
    ucg_request* next_spare = nullptr;

    bool is(ucg::capi::HandleState which) const {
        return state.load(std::memory_order_acquire) == which;
    }
    /// May its holder start or free it?
    bool idle() const {
        return is(ucg::capi::HandleState::held) && !collective.run->execution.in_progress();
    }
    /// Returns what its holder is told of a collective in that state; if it has ended, its packed
    /// elements are unpacked first. The caller holds no lock.
    ucg_status_t told(ucg_status_t status) {
        return packing == nullptr || status == UCG_INPROGRESS ? status : packing->end(status);
    }
    /// Ends a post with that outcome, and returns what its holder is told. Afterwards any thread
    /// may start the collective again or free it. The caller holds no lock.
    ucg_status_t hand_back(ucg_status_t outcome) {
        outcome = told(outcome);
        state.store(ucg::capi::HandleState::held, std::memory_order_release); // After unpacking.
        return outcome;
    }
};

namespace ucg::capi {

/// How often a start looks for what peers are about to share, before its caller does anything else.
/// If the caller then waits, a start looks as often as it may, for about a microsecond. Other
/// starts look as often while that finds the end of their collectives, and else less and less.
class StartPatience {
  public:
    explicit StartPatience(std::uint32_t looks_max) : looks_max_(looks_max), looks_(looks_max) {}

    std::uint32_t looks_max() const { return looks_max_; }
    std::uint32_t looks() const { return looks_; }
    /// To be called after a start that looked looks() times.
    void learn(const engine::Execution& execution) {
        if (!execution.in_progress()) {
            looks_ = looks_max_;
        } else if (execution.program().exchange) {
            looks_ = ++late_ % kLateToForget == 0 ? looks_max_ : looks_ / 2;
        }
    }

  private:
    static constexpr std::uint32_t kLateToForget = 64;

    std::uint32_t looks_max_;
    std::uint32_t looks_;
    std::uint32_t late_ = 0; ///< Starts that found no end.
};

class Group {
  public:
    /// Makes a group. All arguments must outlive the task, which is driven as wire_up() says.
    static Task<Result<std::unique_ptr<Group>>> make(Context& context, const GroupParams& params,
                                                     WireupExchanges& exchanges);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    Context& context() { return context_; }
    /// Returns the packing of a call that has layouts.
    Result<std::unique_ptr<Packing>> packing(const ucg_coll_params_t& params) const {
        return Packing::make(params, rank_, rank_count_);
    }
    engine::Engine& engine() { return *engine_; }

    /// Guards everything here except what is const, and sleeping().
    OptionalMutex& mutex() { return mutex_; }
    using Lock = std::unique_lock<OptionalMutex>;
    Lock lock() { return Lock(mutex_); }

    /// Returns a call with its plan, which is found or made. Returns null, with a `status`, for a
    /// call that is wrong. Valid until the next call of this function. The caller holds the lock
    /// here and below, except where the contrary is said.
    const KnownCall* understand(const ucg_coll_params_t& params, Status& status) {
        const KnownCall* call = plans_->recall(params);
        return call != nullptr ? call : understand_anew(params, status);
    }
    /// Makes a call ready to start. `call` is what understand() has returned for `params`.
    PreparedCollective prepare(const ucg_coll_params_t& params, const KnownCall& call) {
        PlanRun* const run = call.plan->take();
        run->execution.bind(call.binding.apply(params, run->user));
        return {this, run, call.type};
    }
    /// Do ranks agree before some calls of this type on how long blocks are? Only then a call needs
    /// a look.
    static constexpr bool agrees_first(graph::Collective type) {
        constexpr auto kBit = [](graph::Collective which) {
            return std::uint64_t{1} << static_cast<unsigned>(which);
        };
        constexpr std::uint64_t kTypes =
            kBit(graph::Collective::alltoallv) | kBit(graph::Collective::neighbor_alltoallv);
        return (kTypes >> (static_cast<unsigned>(type) % 64U) & 1U) != 0;
    }
    /// May the algorithm change from call to call, because ranks agree first? All ranks come to the
    /// same answer.
    bool choice_changes(graph::Collective type) {
        return agrees_first(type) && find_whether_choice_changes(type);
    }
    /// To be called when a blocking alltoallv begins: if it is time, ranks agree on the mean length
    /// of its blocks. Nothing is done for a call that is wrong. The caller does not hold the lock.
    ucg_status_t agree_on_blocks(const ucg_coll_params_t& params, const RunCollective& run);
    /// To be called when a neighbourhood collective begins: if it is time, or if `always`, ranks
    /// agree on its rooms between hosts. Without `always` nothing is done for a call that is wrong.
    /// The caller does not hold the lock.
    ucg_status_t agree_on_rooms(const ucg_coll_params_t& params, const RunCollective& run,
                                bool always);
    /// Makes progress on the group. Returns how many things happened.
    unsigned progress() { return context_.sleep().tell_threads(engine_->progress()); }
    /// Calls the program's operator for this collective if it is due. The lock is released
    /// meanwhile, so that the operator may wait for other threads. Returns how many things
    /// happened.
    unsigned call_operator(engine::Execution& execution, Lock& lock) {
        return engine_->take_operator(execution) ? call_taken_operator(execution, lock) : 0;
    }
    /// To be called after an operator that was taken has been called.
    void operator_called(engine::Execution& execution) {
        engine_->operator_called(execution, user_operator(execution.reduction())->status != UCG_OK);
    }
    /// Goes on with a collective that has been started, as far as it comes without waiting.
    void advance(engine::Execution& execution, Lock& lock);
    /// Returns true if whoever makes progress must look at this group, and nobody does so yet. Once
    /// the caller has released the lock, it has the list of groups list it
    /// (GroupList::list_busy()).
    bool to_be_listed() { return !listed_ && !engine_->idle() && (listed_ = true); }
    /// Moves what can be moved here, and looks for an operator that any thread may call, if none is
    /// `due` yet. Adds the ends of posted collectives to `ends`. The caller holds the lock of the
    /// context's list of groups, and not that of the group.
    Looked progress_by_any(Busy busy, DueOperator& due, CompletionQueue& ends);
    /// Are collectives that do not go on to be reported?
    bool watches() const { return stall_watch_.watches(); }
    /// Reports the oldest collective in progress if it has not gone on for long. To be called every
    /// StallWatch::kInterval, or more often; `now` is by the steady clock.
    void watch(std::chrono::nanoseconds now) {
        if (stall_watch_.looks(now) && is_stalled(now)) {
            report_stall();
        }
    }
    /// Does what watch() does, but reads the clock itself, once in several calls. To be called
    /// after progress in vain that knows no time: it takes from a hundred nanoseconds to a nap
    /// (shm::Waiter::kNapMaxShared), or as long as the program takes between two looks for an end.
    void watch_at_times() {
        if (watches() && clock_stride_.is_due()) [[unlikely]] {
            watch_by_clock();
        }
    }
    /// Starts a collective whose caller goes on at once, or looks for the end by and by.
    void start(PreparedCollective& collective) {
        start_looking(collective, start_patience_.looks());
        start_patience_.learn(collective.run->execution);
    }
    /// Starts a collective whose caller waits for the end.
    void start_to_wait(PreparedCollective& collective) {
        start_looking(collective, start_patience_.looks_max());
    }
    /// Returns a handle that nobody holds, until the next call of take_request(). Allocates if
    /// there is none.
    ucg_request& spare_request();
    /// Returns the handle that spare_request() has returned: it is the caller's from now on.
    ucg_request* take_request() {
        spare_request_->state.store(HandleState::held, std::memory_order_relaxed);
        return std::exchange(spare_request_, spare_request_->next_spare);
    }
    void give_back(ucg_request* request) {
        request->state.store(HandleState::spare, std::memory_order_relaxed);
        request->collective.run = nullptr;
        request->packing.reset();
        request->next_spare = spare_request_;
        spare_request_ = request;
    }
    /// Gives a collective's run back to its plan.
    void release(PreparedCollective& collective) {
        CachedPlan& plan = collective.run->plan;
        if (collective.run->execution.state() == engine::ExecutionState::failed) [[unlikely]] {
            plan.keep_failed(collective.run);
        } else {
            plan.give_back(collective.run);
        }
    }

    /// Drops plans that are not in use, if all plans take more than so many bytes. The caller does
    /// not hold the lock.
    void trim(std::uint64_t bytes) {
        const Lock held = lock();
        plans_->trim(bytes);
    }

    /// Gives the group up: whatever is in progress ends with an error, as will what is started from
    /// now on, and the others of this host are told. To be called where a collective that others
    /// may have started has failed on this rank alone: they would take this rank's next one for it.
    /// The user is told `why`, once.
    void fail(Code reason, std::string_view why);

    /// Returns ok if nobody uses the group any more, else what does. The caller does not hold the
    /// lock.
    Status may_end();

    /// Returns the outcome of a collective that is no longer in progress.
    ucg_status_t outcome(const engine::Execution& execution) const {
        return execution.state() <= engine::ExecutionState::done ? UCG_OK
                                                                 : failed_outcome(execution);
    }

    void query(ucg_group_attr_t& attributes) const;
    Status explain(const ucg_coll_params_t& params, std::FILE* stream) const;

    /// Does the group have memory that its ranks read of one another?
    bool has_staging() const { return shm_ != nullptr && !shm_->staging().empty(); }

    /// The wait ladder of this group, at its first rung.
    const shm::Waiter& waiter() const { return waiter_; }
    /// Do messages of this group go by UCX?
    bool over_network() const { return ucx_ != nullptr; }
    /// Tells peers that so many threads of this process sleep, or are about to. The caller holds
    /// the lock of the context's list of groups, or nobody else knows the group.
    void sleeping(std::uint64_t threads) {
        if (shm_ != nullptr) {
            shm_->sleeping(threads);
        }
    }
    /// Tell peers that a wait of this process leaves its processor to others, or that it has ended.
    void enter_wait(std::chrono::nanoseconds now) {
        if (shm_ != nullptr) {
            shm_->enter_wait(now);
        }
    }
    void leave_wait(std::chrono::nanoseconds now) {
        if (shm_ != nullptr) {
            shm_->leave_wait(now);
        }
    }
    /// Have all other ranks done nothing but wait since then? False where that is not known, as of
    /// ranks on other hosts.
    bool all_wait_since(std::chrono::nanoseconds when) const {
        return shm_ != nullptr && ucx_ == nullptr && shm_->peers_wait_since(when);
    }
    /// Are messages held up by a peer's full ring? The caller does not hold the lock.
    bool stuck() {
        const Lock held = lock();
        return shm_ != nullptr && shm_->stuck();
    }

  private:
    Group(Context& context, const GroupParams& params, WiredGroup& wired);
    void start_looking(PreparedCollective& collective, std::uint32_t looks) {
        ++started_[static_cast<std::size_t>(collective.type)];
        const std::uint64_t calls = latest_call_->load(std::memory_order_relaxed);
        latest_call_->store(transport::CallsSoFar::next(calls, collective.type),
                            std::memory_order_relaxed);
        engine_->start(collective.run->execution, looks);
    }
    const KnownCall* understand_anew(const ucg_coll_params_t& params, Status& status);
    unsigned call_taken_operator(engine::Execution& execution, Lock& lock);
    ucg_status_t failed_outcome(const engine::Execution& execution) const;
    void tell_ends(CompletionQueue& ends);
    void watch_by_clock();
    bool is_stalled(std::chrono::nanoseconds now);
    void report_stall();
    void tell_stall(engine::Execution& stalled);
    bool find_whether_choice_changes(graph::Collective type);
    bool mean_block_matters();
    bool rooms_matter();
    bool find_whether_mean_block_matters() const;
    bool find_whether_rooms_matter() const;
    Result<std::unique_ptr<CachedPlan>> make_plan(const graph::Request& request,
                                                  std::uint64_t hash);

    Context& context_;
    OptionalMutex mutex_;
    std::string name_;
    Rank rank_;
    Rank rank_count_;
    shm::Waiter waiter_;
    StartPatience start_patience_;
    const std::shared_ptr<Planner> planner_; ///< Shared by all groups that plan alike.
    // Destroyed from the bottom up: transports let go of messages before the plans that hold them.
    std::unique_ptr<PlanCache> plans_;
    std::unique_ptr<transport::ShmTransport> shm_;
    std::unique_ptr<transport::Transport> ucx_;
    std::unique_ptr<engine::Engine> engine_;
    std::array<std::uint64_t, UCG_COLL_LAST> started_ = {};
    std::atomic<std::uint64_t> untold_call_ = 0; ///< In place of shm_'s, where there is none.
    std::atomic<std::uint64_t>* latest_call_;    ///< By transport::CallsSoFar::word().
    StallWatch stall_watch_;
    ClockStride clock_stride_;               ///< Of calls of watch_at_times().
    std::optional<bool> mean_block_matters_; ///< Empty until it is asked for.
    MeanBlock mean_block_;
    std::optional<bool> rooms_matter_; ///< Empty until it is asked for.
    EdgeRooms edge_rooms_;
    std::vector<std::unique_ptr<ucg_request>> requests_; ///< All that there are.
    ucg_request* spare_request_ = nullptr;               ///< The first of those that nobody holds.
    bool listed_ = false; ///< On the context's list of busy groups, or about to be.
};

} // namespace ucg::capi
