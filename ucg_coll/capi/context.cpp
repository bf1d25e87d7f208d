#include "ucg_coll/capi/context.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include "ucg_coll/capi/group.hpp"

namespace ucg::capi {
namespace {

/// The host's CPUs that this job may use: all that are online, unless a control group grants fewer.
/// The own affinity mask says nothing of the other processes'.
unsigned host_cpus() {
    const unsigned usable = topo::usable_cpu_count();
    const bool limited_by_quota = usable < topo::usable_cpus().size();
    return limited_by_quota ? usable : static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN));
}

bool host_yields(const ucg_context_params_t* params) {
    return params != nullptr && (params->field_mask & UCG_CONTEXT_PARAM_FIELD_YIELDS) != 0 &&
           params->yields != 0;
}

} // namespace

Context::Context(const ucg_context_params_t* params, Config config, LoadedProfile profile)
    : config_(std::move(config)), profile_(std::move(profile)), name_("ucg"),
      neighbours_(host_yields(params)) {
    set_log_level(config_.log_level());
    if (params == nullptr) {
        return;
    }
    if ((params->field_mask & UCG_CONTEXT_PARAM_FIELD_THREAD_MODE) != 0) {
        threaded_ = params->thread_mode == UCG_THREAD_MODE_MULTIPLE;
    }
    if ((params->field_mask & UCG_CONTEXT_PARAM_FIELD_PROGRESS) != 0) {
        host_progress_ = params->progress;
        host_progress_arg_ = params->progress_arg;
    }
    if ((params->field_mask & UCG_CONTEXT_PARAM_FIELD_NAME) != 0 && params->name != nullptr) {
        name_ = params->name;
    }
    if ((params->field_mask & UCG_CONTEXT_PARAM_FIELD_LOCAL_PROCESSES) != 0) {
        local_processes_ = params->local_processes;
        host_load_ = {params->local_processes, host_cpus()};
    }
}

Context::~Context() {
    UCG_ASSERT(groups_.empty());
    const shm::NapCounts naps = sleeper_->counts();
    log(LogLevel::info, "{}: waits slept {} times, {} of them until a peer rang", name_,
        naps.rung + naps.timed_out + naps.first_timed_out + naps.disturbed, naps.rung);
}

Result<shm::Heap*> Context::heap() {
    if (heap_ == nullptr) {
        shm::HeapOptions options;
        options.capacity_bytes = config_.heap_bytes();
        // The caller may not have told of the others: one for each CPU is usual.
        options.mappings = std::max(host_load_.ranks, host_cpus());
        options.lessees = local_processes_ > 0 ? local_processes_ : host_cpus();
        Result<std::unique_ptr<shm::Heap>> made = shm::Heap::create(options);
        if (!made.ok()) {
            return made.status();
        }
        Result<shm::Sleeper*> sleeper = (*made)->sleeper();
        if (!sleeper.ok()) {
            return sleeper.status();
        }
        heap_ = std::move(*made);
        sleeper_ = {heap_, *sleeper};
    }
    return heap_.get();
}

Result<std::byte*> Context::allocate(std::uint64_t bytes) {
    const Result<shm::Heap*> node_heap = heap();
    if (!node_heap.ok()) {
        return node_heap.status();
    }
    Result<shm::Lease> lease = (*node_heap)->lease(bytes);
    if (!lease.ok()) {
        return lease.status();
    }
    std::byte* data = lease->data();
    memory_.emplace(data, std::move(*lease));
    return data;
}

bool Context::release(const std::byte* data) {
    const bool found = memory_.erase(data) == 1;
    drop_unused_heap();
    return found;
}

void Context::give_up_shm() {
    shm_failed_ = true;
    if (heap_ != nullptr) {
        heap_->withdraw();
    }
}

void Context::drop_unused_heap() {
    if (shm_failed_ && heap_ != nullptr && heap_->unused()) {
        sleeper_ = {private_sleeper_, &private_sleeper_->sleeper};
        heap_.reset();
    }
}

Result<transport::ucx::UcxWorker*> Context::ucx() {
    if (!ucx_failure_.ok()) {
        return ucx_failure_;
    }
    if (ucx_ == nullptr) {
        transport::ucx::UcxOptions options;
        options.short_lane = config_.short_lane();
        Result<std::unique_ptr<transport::ucx::UcxWorker>> made =
            transport::ucx::UcxWorker::create(options);
        if (!made.ok()) {
            ucx_failure_ = made.status();
            return ucx_failure_;
        }
        ucx_ = std::move(*made);
    }
    return ucx_.get();
}

const topo::Place& Context::place() {
    if (!place_.has_value()) {
        const Result<topo::Machine> machine = topo::discover_machine();
        if (machine.ok()) {
            place_ = machine->place_of(topo::usable_cpus());
        } else {
            log(LogLevel::info, "{}: the places of ranks within a host are not known",
                machine.status().message());
            place_ = topo::Place{.known = topo::Distance::host};
        }
    }
    return *place_;
}

std::uint64_t Context::staging_for_group() const {
    constexpr std::ptrdiff_t kGroupsMax = 16;
    const auto with = std::count_if(groups_.begin(), groups_.end(),
                                    [](const Group* group) { return group->has_staging(); });
    return with < kGroupsMax ? config_.staging_bytes() : 0;
}

/// Threads asleep announced themselves before the group was there: they are to do so again.
void Context::add(Group& group) {
    groups_.push_back(&group);
    if (sleeping_ > 0) {
        group.sleeping(sleeping_);
        sleeper_->bell().ring(shm::Awaits::both);
    }
}

void Context::set_sleeping(std::uint64_t threads) {
    sleeping_ = threads;
    for (Group* group : groups_) {
        group->sleeping(threads);
    }
}

void Context::remove(Group& group) {
    groups_.erase(std::remove(groups_.begin(), groups_.end(), &group), groups_.end());
}

unsigned Context::progress() {
    unsigned events = 0;
    if (heap_ != nullptr) {
        heap_->collect();
    }
    for (Group* group : groups_) {
        if (!group->engine().idle()) {
            events += group->engine().progress();
        }
    }
    return tell_threads(ucx_ == nullptr ? events : events + ucx_->progress());
}

bool Context::stuck() const {
    return std::any_of(groups_.begin(), groups_.end(),
                       [](const Group* group) { return group->stuck(); });
}

void Context::disconnect() {
    if (ucx_ != nullptr) {
        ucx_->begin_close();
        while (!ucx_->close_progress()) { // Bounded by UcxOptions::close_timeout.
        }
    }
}

} // namespace ucg::capi
