#include "ucg_coll/capi/group.hpp"

#include <mutex>
#include <utility>

#include "ucg_coll/capi/proof.hpp"
#include "ucg_coll/plan/network.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::capi {
namespace {

std::unique_ptr<const plan::LoadedSchedule> loaded_for(const LoadedPhases& phases,
                                                       std::vector<Rank> ranks) {
    if (ranks.empty()) {
        return nullptr;
    }
    return std::make_unique<const plan::LoadedSchedule>(
        plan::LoadedSchedule{phases.path, phases.listed, std::move(ranks)});
}

} // namespace

Result<std::unique_ptr<Group>> Group::create(Context& context, const ucg_group_params_t& params) {
    const std::lock_guard maker(context.maker());
    Result<Formation> formation = form_group(context, params);
    if (!formation.ok()) {
        return formation.status();
    }
    return std::unique_ptr<Group>(new Group(context, params, std::move(*formation)));
}

Group::Group(Context& context, const ucg_group_params_t& params, Formation formation)
    : context_(context), mutex_(context.threaded()),
      profile_(cost::with_network(formation.profile, formation.network)), name_("group"),
      rank_(static_cast<Rank>(params.rank)), rank_count_(static_cast<Rank>(params.size)),
      waiter_({.ranks_on_host = formation.load.ranks,
               .usable_cpus = formation.load.cpus,
               .sleep_after = context.config().sleep_after(),
               .over_network = formation.placement.host_count() > 1,
               .neighbours = &context.neighbours()}),
      placement_(std::move(formation.placement)),
      shared_(plan::shared_memory(placement_, profile_, formation.staging_bytes,
                                  formation.buffers_in_heap, formation.board_bytes)),
      network_(plan::network_between(placement_, formation.cluster)),
      loaded_(loaded_for(context.phases(), std::move(formation.ranks_of_phases))),
      ranks_per_cpu_(formation.ranks_per_cpu),
      plans_(std::make_unique<PlanCache>(
          [this](const graph::Request& request) { return make_plan(request); })),
      shm_(std::move(formation.shm)), ucx_(std::move(formation.ucx)),
      routes_(std::move(formation.routes)) {
    if ((params.field_mask & UCG_GROUP_PARAM_FIELD_NAME) != 0 && params.name != nullptr) {
        name_ = params.name;
    }
    if (context.config().reproducible()) {
        reproducible_ = plan::reproducible_placement(rank_count_);
    }
    std::vector<transport::Transport*> transports;
    for (transport::Transport* transport :
         std::initializer_list<transport::Transport*>{shm_.get(), ucx_.get()}) {
        if (transport != nullptr) {
            transports.push_back(transport);
        }
    }
    engine_ = std::make_unique<engine::Engine>(std::move(transports));
    context_.add(*this);
    log(LogLevel::info,
        "{}: rank {} of {} on {} hosts, shared memory {}, staging {} bytes, ucx {}, network {}, "
        "switches {}{}",
        name_, rank_, rank_count_, placement_.host_count(), shm_ ? "on" : "off",
        shared_.staging_bytes, ucx_ ? "on" : "off", cost::name(formation.network),
        formation.cluster.empty() ? "unknown" : "known",
        formation.load.oversubscribed() ? ", oversubscribed" : "");
}

Group::~Group() {
    context_.remove(*this);
}

unsigned Group::call_taken_operator(engine::Execution& execution, Lock& lock) {
    const bool unlisted = to_be_listed();
    lock.unlock();
    if (unlisted) {
        context_.list_busy(*this); // Its messages go on meanwhile.
    }
    execution.call_operator();
    lock.lock();
    engine_->operator_called(execution);
    return 1;
}

void Group::advance(engine::Execution& execution, Lock& lock) {
    do {
        progress();
    } while (call_operator(execution, lock) > 0);
}

std::string_view Group::choice_for_blocks(std::uint64_t mean_bytes) const {
    graph::Request request;
    request.collective = graph::Collective::alltoallv;
    request.rank_count = rank_count_;
    request.bytes = mean_bytes;
    return plan::choose(facts(), request).name;
}

/// Where links between hosts are not known, lengths hardly change what is best, and nobody pays for
/// agreeing on them.
bool Group::mean_block_matters() const {
    if (network_ == nullptr || rank_count_ < 2 ||
        !context_.config().algorithm(graph::Collective::alltoallv, 0).empty()) {
        return false;
    }
    constexpr std::uint64_t kLongest = std::uint64_t{1} << 32U;
    for (std::uint64_t bytes = 1; bytes <= kLongest; bytes *= 4) {
        if (choice_for_blocks(bytes) != choice_for_blocks(0)) {
            return true;
        }
    }
    return false;
}

std::optional<std::uint64_t> Group::to_add_up(const ucg_coll_params_t& params) {
    if (!mean_block_matters_) {
        mean_block_matters_ = mean_block_matters();
    }
    if (!*mean_block_matters_ || !key_of(params, rank_, rank_count_).ok() ||
        !mean_block_.begins(bytes_of_others(params, rank_, rank_count_))) {
        return std::nullopt;
    }
    return mean_block_.received();
}

/// Plans stay where another mean would choose the same.
void Group::add_up(std::uint64_t total) {
    const std::uint64_t bytes = mean_block_.added_up(total, rank_count_);
    const std::uint64_t before = plans_->mean_block();
    if (choice_for_blocks(bytes) != choice_for_blocks(before)) {
        plans_->set_mean_block(bytes);
    }
}

Looked Group::progress_by_any(Busy busy, DueOperator& due) {
    Lock lock(mutex_, std::defer_lock);
    if (busy == Busy::await) {
        lock.lock();
    } else if (!lock.try_lock()) {
        return {};
    }
    const unsigned events = engine_->progress();
    if (due.group == nullptr) {
        due.execution = engine_->take_operator();
        due.group = due.execution == nullptr ? nullptr : this;
    }
    listed_ = !engine_->idle();
    return {.events = events, .at_network = ucx_ != nullptr, .over = !listed_};
}

plan::Facts Group::facts() const {
    return {placement_,
            profile_,
            shared_,
            ranks_per_cpu_,
            reproducible_ ? &*reproducible_ : nullptr,
            network_.get(),
            loaded_.get()};
}

namespace {

/// Of what all ranks must give alike, so that calls which do not fit together are noticed.
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

Result<std::unique_ptr<CachedPlan>> Group::make_plan(const graph::Request& request) {
    Result<graph::Schedule> schedule = plan_for(request);
    if (!schedule.ok()) {
        return schedule.status();
    }
    if (context_.config().verify_plans()) {
        if (Status status = prove(request, schedule->algorithm); !status.ok()) {
            return status;
        }
    }
    Result<engine::Program> program = engine::lower(
        *schedule, routes_,
        mark_of(request, schedule->algorithm, moves_what_peers_read(request, schedule->algorithm)));
    if (!program.ok()) {
        return program.status();
    }
    log(LogLevel::debug, "{}: {} of {} bytes by {}", name_, graph::name(request.collective),
        plan::uniform_bytes(request), schedule->algorithm);
    return std::make_unique<CachedPlan>(request, std::move(schedule->algorithm),
                                        std::move(*program));
}

/// Does MPI_IN_PLACE move buffers that peers read? Then all ranks have to say it; messages carry
/// the same bytes wherever they come from. Of rank 0's program, so that all ranks agree.
bool Group::moves_what_peers_read(const graph::Request& request, std::string_view algorithm) const {
    if (!request.in_place || graph::rooted(request.collective) ||
        graph::has_block_vectors(request.collective)) {
        return false;
    }
    const Result<graph::Schedule> first = plan::plan(facts(), request, 0, algorithm);
    return first.ok() && first->exposed;
}

/// The algorithm that the user asked for where it serves the request, else the planner's choice.
Result<graph::Schedule> Group::plan_for(const graph::Request& request) const {
    const std::string_view wanted =
        context_.config().algorithm(request.collective, plan::uniform_bytes(request));
    if (!wanted.empty()) {
        Result<graph::Schedule> forced = plan::plan(facts(), request, rank_, wanted);
        if (forced.ok()) {
            return forced;
        }
        // Asked on all ranks: any of them may be rank 0 of another group.
        const bool first = context_.first_remark(request.collective, wanted);
        if (rank_ == 0) {
            log(first ? LogLevel::warn : LogLevel::debug, "{}: {}; the planner chooses instead",
                name_, forced.status().message());
        }
    }
    return plan::plan(facts(), request, rank_);
}

/// Proves the plans of all ranks, as far as this one knows what they ask for.
Status Group::prove(const graph::Request& request, std::string_view algorithm) const {
    const std::string_view assumed = what_is_assumed(request.collective);
    if (!assumed.empty() && context_.first_remark(request.collective, "UCG_VERIFY") && rank_ == 0) {
        log(LogLevel::warn, "{}: UCG_VERIFY: {}: {}", name_, graph::name(request.collective),
            assumed);
    }
    const std::vector<graph::Request> requests = requests_of_all(request, rank_);
    std::vector<graph::Schedule> schedules;
    for (Rank rank = 0; rank < rank_count_; ++rank) {
        Result<graph::Schedule> schedule =
            plan::plan(facts(), requests[static_cast<std::size_t>(rank)], rank, algorithm);
        if (!schedule.ok()) {
            return schedule.status();
        }
        schedules.push_back(std::move(*schedule));
    }
    const auto same_host = [](Rank a, Rank b, const void* placement) {
        return static_cast<const topo::Placement*>(placement)->same_host(a, b);
    };
    return graph::verify(schedules, requests, same_host, &placement_);
}

Status Group::failure_status() const {
    const Status status = engine_->status();
    return status.ok() ? Status(Code::io_error, "a message failed") : status;
}

void Group::query(ucg_group_attr_t& attributes) const {
    attributes = {};
    std::copy(started_.begin(), started_.end(), attributes.started);
    attributes.planned = plans_->planned();
    attributes.host_count = placement_.host_count();
    attributes.ranks_on_host =
        static_cast<std::uint32_t>(placement_.ranks_on(placement_.place(rank_).host).size());
    attributes.uses_shm = shm_ != nullptr ? 1 : 0;
    attributes.uses_ucx = ucx_ != nullptr ? 1 : 0;
}

Status Group::explain(const ucg_coll_params_t& params, std::FILE* stream) const {
    Result<CallKey> key = key_of(params, rank_, rank_count_);
    if (!key.ok()) {
        return key.status();
    }
    if (key->collective == graph::Collective::alltoallv) {
        key->bytes = plans_->mean_block();
    }
    Result<graph::Request> request = request_of(params, *key, rank_, rank_count_);
    if (!request.ok()) {
        return request.status();
    }
    const std::string_view wanted =
        plan::split_algorithm(
            context_.config().algorithm(key->collective, plan::uniform_bytes(*request)))
            .name;
    std::string text =
        fmt::format("{} of {} bytes, {} ranks on {} hosts\n", graph::name(key->collective),
                    plan::uniform_bytes(*request), rank_count_, placement_.host_count());
    for (const plan::Candidate& candidate : plan::candidates(facts(), *request)) {
        text +=
            fmt::format("  {:<28} {:>12.0f} ns{}\n", candidate.algorithm->name, candidate.cost_ns,
                        candidate.algorithm->name == wanted ? "  asked for" : "");
    }
    std::fputs(text.c_str(), stream);
    return {};
}

} // namespace ucg::capi
