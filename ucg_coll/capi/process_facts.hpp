// What a process knows of itself and of where it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shm/shm.hpp"
#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/context_params.hpp"
#include "ucg_coll/capi/cpu_load.hpp"
#include "ucg_coll/capi/machine_setting.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/capi/topology_file.hpp"

namespace ucg::capi {

/// What does not change while the process lives. The system is asked once, since many programs make
/// thousands of groups: for some facts at once, for others when a group first needs them.
class ProcessFacts {
  public:
    /// All arguments must outlive it.
    ProcessFacts(const Config& config, const LoadedProfile& profile, const ContextParams& params);

    /// Processes with equal facts share memory.
    const Result<shm::HostFacts>& host() const { return host_; }
    const std::vector<std::uint32_t>& cpus() const { return cpus_; }
    /// That of the process's control groups, whatever its affinity mask says.
    const topo::CpuGrant& grant() const { return grant_; }
    /// Returns how many of the host's CPUs this job may use: all that are online, unless a control
    /// group grants fewer. The own affinity mask says nothing of the other processes'.
    unsigned host_cpus() const { return host_cpus_; }
    /// The job's processes on this host, in whatever groups, and their CPUs, as far as the caller
    /// told.
    const CpuLoad& host_load() const { return host_load_; }

    // Found out at first use. REQUIRES: the caller holds the context's maker().

    /// The switches between hosts that this process knows of.
    const LoadedTopology& topology();
    /// The machine that UCG_MACHINE names.
    const NamedMachine& machine();
    /// Returns where this process runs, or where UCG_MACHINE has it run; the host is not set.
    /// Processes do not move between cores that they are bound to.
    const topo::Place& place();
    /// Returns the length, in bytes, from which on this process would have the kernel copy
    /// messages: as its costs say, or, where nothing was measured, as a look at the kernel's copies
    /// says.
    std::uint64_t single_copy_bytes_min();

  private:
    const Config& config_;
    const LoadedProfile& profile_;
    const ContextParams& params_;
    const Result<shm::HostFacts> host_;
    const std::vector<std::uint32_t> cpus_;
    const topo::CpuGrant grant_;
    const unsigned host_cpus_;
    const CpuLoad host_load_;
    std::optional<LoadedTopology> topology_;
    std::optional<NamedMachine> machine_;
    std::optional<topo::Place> place_;
    std::uint64_t single_copy_bytes_min_ = 0; ///< 0: not known yet.
};

} // namespace ucg::capi
