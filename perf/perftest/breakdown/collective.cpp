#include "perf/perftest/breakdown/collective.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "perf/perftest/launch/agree.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/context.hpp"
#include "ucg_coll/capi/group_making.hpp"
#include "ucg_coll/capi/topology_file.hpp"
#include "ucg_coll/capi/wait.hpp"
#include "ucg_coll/engine/operators.hpp"

namespace ucg::perftest::breakdown {

namespace {

constexpr const char* kWhole = "ucg_coll_run";
constexpr const char* kLookup = "Plan lookup";
constexpr const char* kBind = "Bind";
constexpr const char* kPost = "Post";
constexpr const char* kPostAndProgress = "Post, and progress until complete";
constexpr const char* kProgress = "Progress, with the wait for the peer";
constexpr const char* kReduce = "Reduce";
constexpr const char* kCompletion = "Completion";
constexpr const char* kReturn = "Return to the host";

int exchange_for_group(void* runtime, const void* send, void* receive, std::size_t bytes) {
    const Result<std::vector<std::string>> all =
        static_cast<Runtime*>(runtime)->exchange({static_cast<const char*>(send), bytes});
    if (!all) {
        return -1;
    }
    for (std::size_t i = 0; i < all->size(); ++i) {
        std::memcpy(static_cast<char*>(receive) + i * bytes, (*all)[i].data(), bytes);
    }
    return 0;
}

ucg_context_params_t context_parameters(Rank rank) {
    ucg_context_params_t parameters = {};
    parameters.field_mask = UCG_CONTEXT_PARAM_FIELD_NAME | UCG_CONTEXT_PARAM_FIELD_LOCAL_PROCESSES |
                            UCG_CONTEXT_PARAM_FIELD_LOCAL_RANK;
    parameters.name = "ucg_perftest";
    parameters.local_processes = 2;
    parameters.local_rank = static_cast<std::uint32_t>(rank);
    return parameters;
}

/// Returns the mean of the times of both ranks.
double mean_of_both(Lines& lines, Rank rank, double ns) {
    lines.number(static_cast<std::size_t>(rank)).store(std::bit_cast<std::uint64_t>(ns));
    lines.meet(rank);
    const auto found = [&](std::size_t i) { return std::bit_cast<double>(lines.number(i).load()); };
    const double mean = (found(0) + found(1)) / 2;
    lines.meet(rank);
    return mean;
}

} // namespace

Result<std::unique_ptr<CollectiveLevel>> CollectiveLevel::open(Runtime& runtime, Lines& lines,
                                                               const std::string& name) {
    std::unique_ptr<CollectiveLevel> level(new CollectiveLevel(runtime, lines));
    Status status = level->name_call(name);
    if (status.ok()) {
        Result<std::unique_ptr<CollectiveGroup>> whole = CollectiveGroup::create(runtime, {}, {});
        status = whole.status();
        level->whole_ = whole ? std::move(*whole) : nullptr;
    }
    if (status.ok()) {
        status = level->open_group();
    }
    status = agree(runtime, status);
    if (!status.ok()) {
        return status;
    }
    return level;
}

Status CollectiveLevel::name_call(const std::string& name) {
    using graph::Collective;
    name_ = name;
    call_.field_mask = UCG_COLL_PARAM_FIELD_REDUCE;
    call_.count = 1;
    call_.element_bytes = sizeof(double);
    call_.datatype = UCG_DT_FLOAT64;
    call_.op = UCG_OP_SUM;
    call_.send_buffer = input_.data();
    call_.recv_buffer = output_.data();
    for (const Collective collective :
         {Collective::barrier, Collective::bcast, Collective::reduce, Collective::allreduce,
          Collective::allgather, Collective::alltoall}) {
        if (graph::name(collective) == name) {
            call_.type = static_cast<ucg_coll_type_t>(collective);
            call_.count = collective == Collective::barrier ? 0 : 1;
            return {};
        }
    }
    return failure(Code::invalid_argument,
                   "--collective: no breakdown of '{}'; there are barrier, bcast, reduce, "
                   "allreduce, allgather, alltoall",
                   name);
}

Status CollectiveLevel::open_group() {
    Result<capi::Config> config = capi::Config::from_environment();
    if (!config) {
        return config.status();
    }
    Result<capi::LoadedProfile> profile = capi::load_profile(config->profile());
    if (!profile) {
        return profile.status();
    }
    capi::LoadedPhases phases = capi::load_phases(*config, capi::host_name());
    const ucg_context_params_t parameters = context_parameters(runtime_.rank());
    context_ = std::make_unique<capi::Context>(&parameters, std::move(*config), std::move(*profile),
                                               std::move(phases));
    ucg_group_params_t group = {};
    group.rank = static_cast<std::uint32_t>(runtime_.rank());
    group.size = static_cast<std::uint32_t>(runtime_.size());
    group.oob_allgather = exchange_for_group;
    group.oob_arg = &runtime_;
    capi::MadeGroup made = capi::make_group(context_.get(), group);
    if (made) {
        group_ = std::move(*made);
    }
    return made.status();
}

void CollectiveLevel::add(const char* name, double ns, std::size_t samples) {
    const double mean = mean_of_both(lines_, runtime_.rank(), ns);
    if (runtime_.rank() == 0) {
        rounds_->add(name, mean, samples);
    }
}

Status CollectiveLevel::run_whole(std::size_t samples) {
    stopwatch_->clear();
    ucg_status_t status = UCG_OK;
    for (std::size_t i = 0; i < samples && status == UCG_OK; ++i) {
        lines_.start_together(runtime_.rank());
        status = stopwatch_->time([&] { return ucg_coll_run(whole_->group(), &call_); });
        stopwatch_->keep();
    }
    Status outcome = agree(runtime_, status_of(status, "running a collective"));
    if (outcome.ok()) {
        add(kWhole, stopwatch_->mean_ns(), samples);
    }
    return outcome;
}

template <typename Call>
void CollectiveLevel::stage(bool timed, Call call) {
    if (timed) {
        stopwatch_->time([&] {
            call();
            return 0;
        });
        stopwatch_->keep();
    } else {
        call();
    }
}

/// Does what ucg_coll_run() does (capi/ucg.cpp), and times a part of it. Its wait is not timed by
/// itself: what the peer sends is under way while the clock is read before the wait.
Status CollectiveLevel::run_once(Stage timed) {
    capi::PreparedCollective collective;
    Status status;
    const auto post = [&] { group_->start(collective); };
    const auto progress = [&] {
        engine::Execution& execution = collective.run->execution;
        if (execution.in_progress()) {
            execution.keep_operator(true);
            static_cast<void>(capi::wait(*group_, execution));
            execution.keep_operator(false);
        }
    };
    const capi::KnownCall* call = group_->understand(call_, status);
    if (call == nullptr) {
        return status;
    }
    collective = group_->prepare(call_, *call);
    stage(timed == Stage::post_and_progress, [&] {
        stage(timed == Stage::post, post);
        progress();
    });
    const capi::Group::Lock lock = group_->lock();
    const ucg_status_t outcome = group_->outcome(collective.run->execution);
    group_->release(collective);
    return outcome == UCG_OK ? Status() : Status(Code::io_error, ucg_status_string(outcome));
}

Status CollectiveLevel::run_stage(Stage timed, std::size_t samples) {
    stopwatch_->clear();
    Status status;
    for (std::size_t i = 0; i < samples && status.ok(); ++i) {
        lines_.start_together(runtime_.rank());
        status = run_once(timed);
    }
    return agree(runtime_, status);
}

/// Times stages that can be called many times in a row without a peer.
void CollectiveLevel::time_repeatable(std::size_t samples) {
    Status status;
    const capi::KnownCall* call = group_->understand(call_, status);
    UCG_ASSERT(call != nullptr); // An earlier call was understood.
    const double lookup = stopwatch_->window_ns(samples, [&] {
        call = group_->understand(call_, status);
        __asm__ volatile("" : : "r"(call) : "memory");
    });
    add(kLookup, lookup, samples);
    const double bind = stopwatch_->window_ns(samples, [&] {
        capi::PreparedCollective collective = group_->prepare(call_, *call);
        __asm__ volatile("" : : "r"(&collective) : "memory");
        group_->release(collective);
    });
    add(kBind, bind, samples);
    capi::PreparedCollective over = group_->prepare(call_, *call);
    const double completion = stopwatch_->window_ns(samples, [&] {
        const capi::Group::Lock lock = group_->lock();
        const ucg_status_t outcome = group_->outcome(over.run->execution);
        __asm__ volatile("" : : "r"(outcome) : "memory");
    });
    group_->release(over);
    add(kCompletion, completion, samples);
    const double end = stopwatch_->window_ns(
        samples, [&] { capi::serve_host(group_->context(), call->type, capi::Slept::no); });
    add(kReturn, end, samples);
    if (call->binding.combine != nullptr) {
        const auto* const first = reinterpret_cast<const std::byte*>(input_.data());
        auto* const target = reinterpret_cast<std::byte*>(output_.data());
        const std::array<const std::byte*, 2> operands = {first, target};
        const double reduce = stopwatch_->window_ns(samples, [&] {
            call->binding.combine(nullptr, operands.data(), operands.size(), target,
                                  sizeof(double));
        });
        add(kReduce, reduce, samples);
    }
}

Status CollectiveLevel::round(std::size_t samples, Stopwatch& stopwatch, Rounds& rounds) {
    stopwatch_ = &stopwatch;
    rounds_ = &rounds;
    if (Status status = run_whole(samples); !status.ok()) {
        return status;
    }
    const std::pair<Stage, const char*> stages[] = {{Stage::post, kPost},
                                                    {Stage::post_and_progress, kPostAndProgress}};
    for (const auto& [timed, name] : stages) {
        if (Status status = run_stage(timed, samples); !status.ok()) {
            return status;
        }
        add(name, stopwatch.mean_ns(), samples);
    }
    time_repeatable(samples);
    return {};
}

Section CollectiveLevel::section(const Rounds& rounds) const {
    const auto part = [&](const char* name, const char* note) {
        return rounds.component(name, Category::hlp, note);
    };
    const bool reduces = rounds.has(kReduce);
    Component progress = rounds.difference(kPostAndProgress, kPost, kProgress, Category::network,
                                           reduces ? "both timed together, less post and reduction"
                                                   : "both timed together, less post");
    if (reduces) {
        progress.ns = std::max(0.0, progress.ns - rounds.component(kReduce, Category::hlp).ns);
    }
    std::vector<Term> terms = {{part(kLookup, "64 in a row")},
                               {part(kBind, "with giving the run back, 64 in a row")},
                               {part(kPost, "to the store that the peer sees, and a first look")},
                               {progress}};
    if (reduces) {
        terms.push_back({part(kReduce, "two operands of 8 bytes, 64 in a row")});
    }
    terms.push_back({part(kCompletion, "the lock, and the outcome, 64 in a row")});
    terms.push_back({part(kReturn, "64 in a row")});
    Section section{.title =
                        fmt::format("UCG, {} of 8 bytes, two ranks that begin together", name_),
                    .components = {}};
    for (const Term& term : terms) {
        section.components.push_back(term.component);
    }
    section.comparisons = {{{fmt::format("ucg_coll_run, {}", name_), std::move(terms)},
                            rounds.component(kWhole, Category::hlp)}};
    return section;
}

} // namespace ucg::perftest::breakdown
