// What ranks tell one another when they make a group. Trivially copyable: it travels as bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "shm/shm.hpp"
#include "topo/topo.hpp"
#include "ucg/ucg.h"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/capi/cpu_mask.hpp"
#include "ucg_coll/capi/topology_agreement.hpp"
#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::capi {

/// How far a rank came with shared memory.
enum class ShmEnd : std::uint32_t {
    failed,       ///< For a reason of its own, which it can tell.
    missing_peer, ///< A peer did not share its memory; that one knows why, unless it is gone.
    made,
};

/// Second exchange, where the first has not told it rightly: the ends of shared memory.
struct ShmOffer {
    transport::ShmAddress address;
    ShmEnd end = ShmEnd::failed;
    std::uint16_t serves_malloc = 0;
    std::uint16_t attached = 0; ///< All peers' heaps are mapped already.
};

bool all_made(const std::vector<ShmEnd>& ends);

/// `made` is in `heap`; nothing is said of the peers' heaps.
ShmOffer offer_of(const shm::Heap& heap, const transport::ShmTransport& made);

/// Of what `options` says to the group: not of the time-out, which is each rank's own.
std::uint64_t digest(const transport::ShmOptions& options);

/// First exchange: who is there. Everything that must be equal on all ranks is compared.
struct Hello {
    std::uint32_t api_version = UCG_API_VERSION;
    std::uint32_t declines = 0;
    std::uint32_t next_group_id = 0;
    std::uint64_t host = 0;    ///< 0: not known.
    std::uint64_t machine = 0; ///< Equal for hosts under one kernel; 0: not known.
    std::uint64_t plan_hash = 0;
    std::uint64_t profile_hash = 0;
    std::uint32_t profile_named = 0;
    std::uint32_t profile_found = 0; ///< In a file.
    std::uint32_t profile_bad = 0;
    std::uint32_t cpu_quota = 0; ///< CPUs that its control group grants, whatever the mask says.
    std::uint32_t shm_enabled = 0;
    std::uint64_t staging_bytes = 0; ///< That it would let its peers read.
    std::uint64_t ring_bytes = 0;    ///< That the buffers of a ring may have.
    /// Single copies by the kernel from there on, by a setting; 0: none says; all ones: none.
    std::uint64_t cma_bytes_min = 0;
    /// The same where each rank has a processor, by the costs or a look at the kernel's copies.
    std::uint64_t seen_cma_bytes_min = 0;
    shm::HeapWish heap; ///< Its node heap, or what it wishes of one.
    TopologyEnd phases; ///< Of a schedule that was loaded.
    topo::Place place;
    CpuMask cpus; ///< That its affinity mask allows.
    /// What it offers if all ranks are on one host and agree in options of this digest.
    ShmOffer guess;
    std::uint64_t guessed_options = 0;
    std::uint64_t attached_heaps = 0; ///< Which are mapped: equal for equal sets.
};

/// Of a group that `rank` cannot be in.
Status declined(std::size_t rank);

/// By rank, one of what each tells.
template <typename Told>
std::vector<TopologyEnd> ends_of(const std::vector<Told>& all, TopologyEnd Told::*end) {
    std::vector<TopologyEnd> ends;
    ends.reserve(all.size());
    for (const Told& told : all) {
        ends.push_back(told.*end);
    }
    return ends;
}

/// After these, if UCX is needed: what a rank has of it, and, where there are several hosts, of the
/// switches between them.
struct NetworkEnd {
    std::uint64_t address_bytes = 0; ///< 0: it has no UCX.
    std::uint64_t only_tcp = 0;
    TopologyEnd topology;
};

} // namespace ucg::capi
