// The first exchange of ranks that make a group: who is there. Trivially copyable: it travels as
// bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shm/shm.hpp"
#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/cpu_mask.hpp"
#include "ucg_coll/capi/machine_setting.hpp"
#include "ucg_coll/capi/topology_agreement.hpp"
#include "ucg_coll/capi/version.hpp"
#include "ucg_coll/capi/wireup/peers.hpp"
#include "ucg_coll/capi/wireup/shm_offer.hpp"

namespace ucg::capi {

/// Tells builds of one version apart: raised with every change of what ranks tell one another, of
/// messages, or of the memory that they share.
inline constexpr std::uint32_t kProtocol = 11;

/// The length of a Hello in every version: ranks of different versions exchange these before they
/// know of the difference.
inline constexpr std::size_t kHelloBytes = 640;

class Context;

/// What a rank says of itself; version and protocol stay at its front. compare() looks at
/// everything that must be equal on all ranks.
struct Hello {
    std::uint32_t version = UCG_VERSION_MAJOR << 24 | UCG_VERSION_MINOR << 16 | UCG_VERSION_RELEASE;
    std::uint32_t protocol = kProtocol;
    std::uint32_t declines = 0;
    std::uint64_t host = 0;              ///< 0: not known.
    std::uint64_t machine = 0;           ///< Equal for hosts under one kernel; 0: not known.
    Config::CommonDigests settings = {}; ///< What all must have alike.
    std::uint64_t profile_hash = 0;
    std::uint64_t named_machine_hash = 0; ///< Of the machine that UCG_MACHINE names; 0: none.
    std::uint64_t cpu_quota_group = 0;    ///< topo::CpuGrant::group.
    std::uint32_t named_machine_bad = 0;
    std::uint32_t profile_named = 0;
    std::uint32_t profile_found = 0; ///< Read from a file.
    std::uint32_t profile_bad = 0;
    std::uint32_t cpu_quota = topo::kNoCpuQuota; ///< topo::CpuGrant::cpus.
    std::uint32_t shm_enabled = 0;
    std::uint32_t has_heap = 0;   ///< 1: its node heap is there; `heap` is no wish.
    std::uint32_t makes_heap = 0; ///< 1: it makes its heap for another group, and offers none yet.
    std::uint32_t waits = 0;      ///< 1: it has claimed the heap that it wishes for.
    std::uint64_t staging_bytes = 0; ///< Bytes that it would let its peers read.
    std::uint64_t ring_bytes = 0;    ///< Bytes that the buffers of a ring may have.
    /// Length in bytes from which on the kernel copies messages, by a setting. 0: no setting says;
    /// all ones: it copies none.
    std::uint64_t cma_bytes_min = 0;
    /// Like cma_bytes_min, but where each rank has a processor, and by the costs or a look at the
    /// kernel's copies; 0: not found out.
    std::uint64_t seen_cma_bytes_min = 0;
    shm::HeapWish heap;       ///< Its node heap, or what it wishes of one.
    shm::AccessTicket ticket; ///< For ranks that make their heaps together with its own.
    TopologyEnd phases;       ///< Of the schedule that it has loaded.
    topo::Place place;
    CpuMask cpus; ///< CPUs that its affinity mask allows.
    /// What it offers if all ranks are on one host and their options have the digest
    /// guessed_options.
    ShmOffer guess;
    std::uint64_t guessed_options = 0;
    std::uint64_t attached_heaps = 0; ///< Digest of all heaps that it has mapped.
    /// ProcessNetwork::process() of its UCX; 0: it has not started that yet.
    std::uint64_t network_process = 0;
    std::uint32_t rank = 0;
    std::uint32_t rank_count = 0; ///< 0: the caller's allgather has left this part out.
    std::array<std::uint64_t, 2> reserved = {};
};
static_assert(sizeof(Hello) == kHelloBytes && offsetof(Hello, version) == 0 &&
              offsetof(Hello, protocol) == 4);

/// Returns what this process says as that rank of a group of so many ranks, without what it says of
/// its heap.
Hello hello_of(Context& context, std::uint32_t rank, std::uint32_t rank_count);

/// Returns the failure of a group that `rank` cannot be in.
Status declined(std::size_t rank);

/// Can the ranks be one group? Compares rank 0 with the others, so that every rank comes to the
/// same verdict. Rank 0 is the one that tells the user, or the rank that declines or cannot use its
/// UCG_MACHINE; if the caller's allgather is wrong, every rank that can see it. `config`,
/// `machine`: this rank's own.
Status compare(const std::vector<Hello>& all, const Config& config, const NamedMachine& machine,
               Peers& peers);

/// Returns that member of what each rank tells, by rank.
template <typename Told>
std::vector<TopologyEnd> ends_of(const std::vector<Told>& all, TopologyEnd Told::*end) {
    std::vector<TopologyEnd> ends;
    ends.reserve(all.size());
    for (const Told& told : all) {
        ends.push_back(told.*end);
    }
    return ends;
}

} // namespace ucg::capi
