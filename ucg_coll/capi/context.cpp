#include "ucg_coll/capi/context.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "ucg_coll/capi/awaited.hpp"

namespace ucg::capi {
namespace {

shm::HeapOptions heap_options(const Config& config, const ContextParams& params,
                              const ProcessFacts& facts) {
    shm::HeapOptions options;
    options.capacity_bytes = config.heap_bytes();
    // The caller may not have told of the others: one for each CPU is usual.
    options.mappings = std::max(facts.host_load().ranks, facts.host_cpus());
    options.lessees = params.local_processes > 0 ? params.local_processes : facts.host_cpus();
    return options;
}

transport::ucx::UcxOptions ucx_options(const Config& config, const ContextParams& params) {
    transport::ucx::UcxOptions options;
    options.short_lane = config.short_lane();
    options.threads = params.threaded;
    options.estimated_num_eps = params.estimated_num_eps;
    options.estimated_num_ppn = params.estimated_num_ppn;
    options.connect_timeout = std::chrono::seconds(config.timeout_seconds());
    return options;
}

/// From so many groups on each of them has to do with less.
constexpr std::size_t kManyGroups = 16;

} // namespace

Context::Context(const ucg_context_params_t* params, Config config, LoadedProfile profile,
                 LoadedPhases phases)
    : config_(std::move(config)), common_digests_(config_.common_digests()),
      profile_(std::move(profile)), phases_(std::move(phases)), params_(params),
      remarks_(params_.name, threaded()), host_(params_.progress, params_.progress_arg),
      neighbours_(params_.host_yields), facts_(config_, profile_, params_),
      waiting_makers_(threaded()), maker_(threaded()),
      planners_(config_, phases_, remarks_, threaded()), sleep_(threaded()),
      completions_(threaded()), groups_(sleep_, completions_, threaded()),
      network_(ucx_options(config_, params_), groups_),
      memory_(heap_options(config_, params_, facts_), config_.shm_enabled(), sleep_, threaded()) {
    set_log_level(config_.log_level());
}

Context::~Context() {
    const shm::NapCounts naps = sleep_.sleeper()->counts();
    log(LogLevel::info, "{}: waits slept {} times, {} of them until a peer rang", name(),
        naps.rung + naps.timed_out + naps.first_timed_out + naps.disturbed, naps.rung);
}

Result<std::byte*> Context::allocate(std::uint64_t bytes) {
    if (memory_.heap_at_hand() == nullptr) {
        const std::lock_guard making(waiting_makers_);
        if (Status status = memory_.make_heap(); !status.ok()) {
            return status;
        }
    }
    return memory_.allocate(bytes);
}

std::uint64_t Context::staging_for_group() {
    return groups_.staging_count() < kManyGroups ? config_.staging_bytes() : 0;
}

std::uint64_t Context::ring_bytes_for_group() {
    return memory_.ring_bytes(groups_.count() >= kManyGroups);
}

/// Not inlined where collectives start, which it would make longer.
Progress Context::progress(Busy busy, const Awaited* looked_at) {
    memory_.collect();
    const Progress awaited = Awaited::progress(looked_at);
    const Progress others = groups_.progress(busy);
    return {awaited.events + others.events, awaited.called_operator || others.called_operator};
}

} // namespace ucg::capi
