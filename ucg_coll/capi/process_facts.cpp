#include "ucg_coll/capi/process_facts.hpp"

#include <algorithm>
#include <unistd.h>

#include "ucg_coll/capi/single_copies.hpp"

namespace ucg::capi {
namespace {

topo::Place place_at_hand(const std::vector<std::uint32_t>& cpus) {
    const Result<topo::Place> place = topo::place_of_binding(cpus);
    if (!place.ok()) {
        log(LogLevel::info, "{}: the places of ranks within a host are not known",
            place.status().message());
    }
    return place.ok() ? *place : topo::Place{.known = topo::Distance::host};
}

} // namespace

ProcessFacts::ProcessFacts(const Config& config, const LoadedProfile& profile,
                           const ContextParams& params)
    : config_(config), profile_(profile), params_(params), host_(shm::read_host_facts()),
      cpus_(topo::usable_cpus()), grant_(topo::cpu_grant()),
      host_cpus_(std::min(grant_.cpus, static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)))),
      host_load_(params.local_processes > 0 ? CpuLoad{params.local_processes, host_cpus_}
                                            : CpuLoad()) {}

const LoadedTopology& ProcessFacts::topology() {
    if (!topology_) {
        topology_ = load_topology(config_.topology());
    }
    return *topology_;
}

const NamedMachine& ProcessFacts::machine() {
    if (!machine_) {
        machine_ = load_machine(config_.machine(), params_.local_rank);
    }
    return *machine_;
}

const topo::Place& ProcessFacts::place() {
    if (!place_) {
        const topo::Machine& named = machine().machine;
        place_ = named.core_count() > 0 ? place_of_process(named, *params_.local_rank)
                                        : place_at_hand(cpus_);
    }
    return *place_;
}

std::uint64_t ProcessFacts::single_copy_bytes_min() {
    if (single_copy_bytes_min_ == 0) {
        const SingleCopies found = single_copies(profile_);
        single_copy_bytes_min_ = found.bytes_min;
        log(LogLevel::info, "{}: the kernel copies messages from {} bytes on: {}", params_.name,
            found.bytes_min, found.origin);
    }
    return single_copy_bytes_min_;
}

} // namespace ucg::capi
