#include "ucg_coll/capi/group.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "ucg_coll/capi/guard.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::capi {
namespace {

/// Looks of a start, of a nanosecond each: in all about as long as a line takes to another core and
/// back where that is far, and little beside a wait.
constexpr std::uint32_t kLooksAtStart = 1024;

/// Returns what the group plans by, taking what that needs out of `wired`.
PlanningFacts planning_facts(Rank rank, WiredGroup& wired) {
    return {.rank = rank,
            .placement = std::move(wired.placement),
            .cluster = std::move(wired.cluster),
            .ranks_of_phases = std::move(wired.ranks_of_phases),
            .profile = cost::with_network(wired.profile, wired.network, wired.network_message_ns),
            .flag_slot_bytes = wired.flag_slot_bytes,
            .staging_bytes = wired.staging_bytes,
            .buffers_in_heap = wired.buffers_in_heap,
            .kernel_copies = wired.kernel_copies,
            .ranks_per_cpu = wired.ranks_per_cpu};
}

std::string message_time(const WiredGroup& wired) {
    return wired.network_message_ns > 0
               ? fmt::format(" with messages of {:g} us", wired.network_message_ns / 1e3)
               : "";
}

/// This is no warning: results are right, and who runs a program may not be the one who tunes its
/// hosts.
void tell_of_tune(const Context& context) {
    if (const std::string advice = tune_advice(context.profile()); !advice.empty()) {
        log(LogLevel::info, "{}: {}. UCG_PROFILE={} silences this", context.name(), advice,
            kBuiltinProfile);
    }
}

} // namespace

Task<Result<std::unique_ptr<Group>>> Group::make(Context& context, const GroupParams& params,
                                                 WireupExchanges& exchanges) {
    std::unique_ptr<Group> group;
    bool shares_host = false;
    const MakeGroup construct = [&](WiredGroup& wired) {
        shares_host = wired.placement.ranks_per_host_max() > 1;
        group.reset(new Group(context, params, wired));
    };
    Status status = co_await wire_up(context, params, exchanges, construct);
    if (!status.ok()) {
        co_return status;
    }
    // Asked on all ranks: any of them may be rank 0 of another group.
    if (shares_host && context.remarks().first(Once::no_tune) && params.rank == 0) {
        tell_of_tune(context);
    }
    co_return std::move(group);
}

Group::Group(Context& context, const GroupParams& params, WiredGroup& wired)
    : context_(context), mutex_(context.threaded()), name_(params.name),
      rank_(static_cast<Rank>(params.rank)), rank_count_(static_cast<Rank>(params.size)),
      waiter_({.ranks_on_host = wired.load.ranks,
               .usable_cpus = wired.load.cpus,
               .sleep_after = context.config().sleep_after(),
               .over_network = wired.placement.host_count() > 1,
               .neighbours = &context.neighbours()}),
      // A wait that yields at once is for a peer that needs this processor.
      start_patience_(waiter_.rung() < shm::Waiter::Rung::yield ? kLooksAtStart : 0),
      planner_(context.planners().of(planning_facts(rank_, wired))),
      plans_(std::make_unique<PlanCache>(
          [this](const graph::Request& request, std::uint64_t hash) {
              return make_plan(request, hash);
          },
          context.planners().plan_bytes())),
      latest_call_(wired.shm == nullptr ? &untold_call_ : &wired.shm->latest_call()),
      stall_watch_(context.config().stall_after()) {
    std::vector<transport::Transport*> transports;
    for (transport::Transport* transport :
         std::initializer_list<transport::Transport*>{wired.shm.get(), wired.ucx.get()}) {
        if (transport != nullptr) {
            transports.push_back(transport);
        }
    }
    engine_ = std::make_unique<engine::Engine>(std::move(transports));
    log(LogLevel::info,
        "{}: rank {} of {} on {} hosts, shared memory {}, staging {} bytes, ucx {}, network {}{}, "
        "switches {}{}",
        name_, rank_, rank_count_, planner_->placement().host_count(), wired.shm ? "on" : "off",
        planner_->facts().shared.staging_bytes, wired.ucx ? "on" : "off", cost::name(wired.network),
        message_time(wired), planner_->facts().network == nullptr ? "unknown" : "known",
        wired.load.oversubscribed() ? ", oversubscribed" : "");
    context_.groups().expect();
    shm_ = std::move(wired.shm);
    ucx_ = std::move(wired.ucx);
    context_.groups().add(*this);
}

Group::~Group() {
    context_.groups().remove(*this);
}

const KnownCall* Group::understand_anew(const ucg_coll_params_t& params, Status& status) {
    const Result<const KnownCall*> understood = plans_->understand(params, rank_, rank_count_);
    status = understood.status();
    return understood.ok() ? *understood : nullptr;
}

unsigned Group::call_taken_operator(engine::Execution& execution, Lock& lock) {
    const bool unlisted = to_be_listed();
    lock.unlock();
    if (unlisted) {
        context_.groups().list_busy(*this); // Its messages go on meanwhile.
    }
    execution.call_operator();
    lock.lock();
    operator_called(execution);
    return 1;
}

void Group::advance(engine::Execution& execution, Lock& lock) {
    do {
        progress();
    } while (call_operator(execution, lock) > 0);
}

Looked Group::progress_by_any(Busy busy, DueOperator& due, CompletionQueue& ends) {
    Lock lock(mutex_, std::defer_lock);
    if (busy == Busy::await) {
        lock.lock();
    } else if (!lock.try_lock()) {
        return {};
    }
    const unsigned events = engine_->progress();
    tell_ends(ends);
    if (due.group == nullptr) {
        due.execution = engine_->take_operator();
        due.group = due.execution == nullptr ? nullptr : this;
    }
    listed_ = !engine_->idle();
    if (events == 0) {
        watch_at_times();
    }
    return {.events = events, .at_network = ucx_ != nullptr, .over = !listed_};
}

void Group::tell_ends(CompletionQueue& ends) {
    while (engine::Execution* const ended = engine_->take_ended()) {
        auto& completion = *static_cast<Completion*>(ended->take_listener());
        completion.status = outcome(*ended);
        ends.add(completion);
    }
}

void Group::watch_by_clock() {
    const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
    clock_stride_.read(now);
    watch(now);
}

bool Group::is_stalled(std::chrono::nanoseconds now) {
    engine::Execution* const oldest = engine_->oldest();
    return oldest == nullptr ? stall_watch_.is_due(std::nullopt, {}, now)
                             : stall_watch_.is_due(oldest->sequence(), oldest->how_far(), now);
}

/// A report takes memory. Without it the rank waits on as if nothing had been said.
void Group::report_stall() {
    try {
        tell_stall(*engine_->oldest());
    } catch (const std::bad_alloc&) {
    }
}

/// Of the ranks of a host the first one reports, since all would say the same of the others. One
/// that awaits ranks of other hosts does so, too: only the ranks that await them know of these.
void Group::tell_stall(engine::Execution& stalled) {
    const CachedPlan* const plan = plans_->plan_of(stalled.program());
    UCG_ASSERT(plan != nullptr);
    StalledCall call = {.group = name_,
                        .rank = rank_,
                        .collective = plan->request().collective,
                        .bytes = plan::uniform_bytes(plan->request()),
                        .algorithm = plan->algorithm(),
                        .number = stalled.sequence() + 1,
                        .patience = stall_watch_.patience(),
                        .awaited = stalled.awaited(),
                        .peers = {}};
    if (shm_ != nullptr) {
        const topo::Placement& placement = planner_->placement();
        const bool beyond = std::any_of(call.awaited.begin(), call.awaited.end(), [&](Rank rank) {
            return placement.host(rank) != placement.host(rank_);
        });
        if (!shm_->is_first_to_report({call.number, call.collective}, beyond)) {
            return;
        }
        call.peers = shm_->calls_of_peers();
    }
    log(LogLevel::warn, "{}", report_of(call));
}

ucg_request& Group::spare_request() {
    if (spare_request_ == nullptr) {
        spare_request_ = requests_.emplace_back(std::make_unique<ucg_request>()).get();
    }
    return *spare_request_;
}

namespace {

/// Returns a hash of what all ranks must give alike. Messages carry it, so that calls which do not
/// fit together are noticed.
std::uint16_t mark_of(const graph::Request& request, std::string_view algorithm, bool moved) {
    Hash hash;
    hash.bytes(graph::name(request.collective))
        .bytes(algorithm)
        .value(std::uint64_t{moved})
        .value(plan::uniform_bytes(request))
        .value(static_cast<std::uint64_t>(request.root));
    if (request.collective == graph::Collective::allgatherv ||
        request.collective == graph::Collective::reduce_scatter) {
        for (const std::uint64_t bytes : request.receive.bytes) {
            hash.value(bytes);
        }
    }
    const std::uint64_t digest = hash.digest();
    return static_cast<std::uint16_t>((digest ^ digest >> 32U) & transport::kPlanMax);
}

} // namespace

Result<std::unique_ptr<CachedPlan>> Group::make_plan(const graph::Request& request,
                                                     std::uint64_t hash) {
    const Result<std::shared_ptr<const Planned>> planned = planner_->plan(request, hash, name_);
    if (!planned.ok()) {
        return planned.status();
    }
    const graph::Schedule& schedule = (*planned)->schedule;
    Result<std::vector<graph::Schedule>> of_all = std::vector<graph::Schedule>();
    if (schedule.helped) {
        of_all = planner_->plan_all(request, schedule.algorithm);
        if (!of_all.ok()) {
            return of_all.status();
        }
    }
    const topo::Placement& placement = planner_->placement();
    const transport::Routes routes(rank_, placement.ranks_on(placement.host(rank_)), shm_.get(),
                                   ucx_.get());
    Result<engine::Program> program = engine::lower(
        schedule, routes, mark_of(request, schedule.algorithm, (*planned)->moved), *of_all);
    if (!program.ok()) {
        return program.status();
    }
    log(LogLevel::debug, "{}: {} of {} bytes by {}", name_, graph::name(request.collective),
        plan::uniform_bytes(request), schedule.algorithm);
    return std::make_unique<CachedPlan>(request, schedule.algorithm, std::move(*program));
}

ucg_status_t Group::failed_outcome(const engine::Execution& execution) const {
    if (execution.state() == engine::ExecutionState::spoilt) {
        const ucg_status_t status = user_operator(execution.reduction())->status;
        return status < 0 ? status : UCG_ERR_INTERNAL; // What is no error says nothing.
    }
    const Status status = engine_->status();
    return status.ok() ? UCG_ERR_IO_ERROR : to_c(status); // A message failed.
}

/// There may be no memory for the line of the log.
void Group::fail(Code reason, std::string_view why) {
    const bool news = engine_->lose(reason);
    progress();
    if (!news) {
        return;
    }
    try {
        log(LogLevel::error, "{}: rank {} gives the group up: {}", name_, rank_, why);
    } catch (const std::bad_alloc&) {
    }
}

Status Group::may_end() {
    const Lock held = lock();
    std::size_t spare = 0;
    for (const ucg_request* request = spare_request_; request != nullptr;
         request = request->next_spare) {
        ++spare;
    }
    if (spare < requests_.size()) {
        return failure(Code::busy, "ucg_group_destroy: {} has {} requests; free them first", name_,
                       requests_.size() - spare);
    }
    return engine_->idle() ? Status()
                           : failure(Code::busy,
                                     "ucg_group_destroy: a collective of {} is still "
                                     "in progress",
                                     name_);
}

void Group::query(ucg_group_attr_t& attributes) const {
    const auto asked = [&](std::uint64_t field) { return (attributes.field_mask & field) != 0; };
    if (asked(UCG_GROUP_ATTR_FIELD_STARTED)) {
        std::fill(std::begin(attributes.started), std::end(attributes.started), 0);
        std::copy(started_.begin(), started_.end(), attributes.started);
    }
    if (asked(UCG_GROUP_ATTR_FIELD_PLANNED)) {
        attributes.planned = plans_->planned();
    }
    if (asked(UCG_GROUP_ATTR_FIELD_PLACES)) {
        const topo::Placement& placement = planner_->placement();
        attributes.host_count = placement.host_count();
        attributes.ranks_on_host =
            static_cast<std::uint32_t>(placement.ranks_on(placement.host(rank_)).size());
    }
    if (asked(UCG_GROUP_ATTR_FIELD_TRANSPORTS)) {
        attributes.uses_shm = shm_ != nullptr ? 1 : 0;
        attributes.uses_ucx = ucx_ != nullptr ? 1 : 0;
    }
}

Status Group::explain(const ucg_coll_params_t& params, std::FILE* stream) const {
    Result<CallKey> key = key_of(params, rank_, rank_count_);
    if (!key.ok()) {
        return key.status();
    }
    Result<graph::Request> request = request_of(params, *key, rank_, rank_count_);
    if (!request.ok()) {
        return request.status();
    }
    plans_->add_agreed(*request);
    const std::string_view wanted =
        plan::split_algorithm(
            context_.config().algorithm(key->collective, plan::uniform_bytes(*request)))
            .name;
    std::string text =
        fmt::format("{} of {} bytes, {} ranks on {} hosts\n", graph::name(key->collective),
                    plan::uniform_bytes(*request), rank_count_, planner_->placement().host_count());
    for (const plan::Candidate& candidate : plan::candidates(planner_->facts(), *request)) {
        text +=
            fmt::format("  {:<28} {:>12.0f} ns{}\n", candidate.algorithm->name, candidate.cost_ns,
                        candidate.algorithm->name == wanted ? "  asked for" : "");
    }
    std::fputs(text.c_str(), stream);
    return {};
}

} // namespace ucg::capi
