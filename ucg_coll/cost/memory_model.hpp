// What moving bytes between the cores of one node costs: the memory models of Li, Hoefler and Snir,
// "NUMA-Aware Shared-Memory Collective Communication for MPI" (HPDC 2013), and what this library
// does besides: copying and reducing out of each cache, the kernel's copy between processes, waking
// a rank that waits. Plain values; `ucg_tune memory` measures them.
//
// All ranks must choose alike, also where their processors differ: only + - * / are used, which
// IEEE 754 rounds exactly.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::cost {

/// How a core reads what another core of the node wrote, for cores at one distance. The paper
/// counts m in cache lines; here it is bytes.
struct MemoryLevel {
    double latency_ns = 0;  ///< a: a write of one core, a flag, until the other has seen it.
    double per_byte_ns = 0; ///< b: of a vector that one core reads, while nobody else does.
    /// B: of a vector that d cores read at once, per byte and reader: they take a + B d m.
    double contended_per_byte_ns = 0;
    bool measured = false;            ///< latency and per_byte; else they are the built-in default.
    bool contention_measured = false; ///< The same of contended_per_byte.

    bool operator==(const MemoryLevel&) const = default;
};

/// Where the bytes are that a core works on. All cores of a group, and other guests of the host,
/// use an L3: in a part of it, `l3_part`, a core is nearly as fast as in its own L2 while others
/// leave it that, and slower in the whole.
enum class Cache : std::uint8_t { l1, l2, l3_part, l3, memory };
inline constexpr std::size_t kCacheCount = 5;
std::string_view name(Cache cache);

/// What one core does with bytes in one cache.
struct CacheRates {
    /// The most bytes that a core has for itself there; meaningless for `memory`.
    std::uint64_t capacity_bytes = 0;
    double copy_per_byte_ns = 0; ///< Within one process: source and target are in this cache.
    /// One reduction of k operands takes k times the first and once the second, per byte of the
    /// result.
    double reduce_operand_per_byte_ns = 0;
    double reduce_target_per_byte_ns = 0;
    /// Copying to a target which another core read last, so that its cache holds the lines: by
    /// ordinary stores, and past the caches (shm::copy_streaming). Per byte, by the target's
    /// length.
    double overwrite_per_byte_ns = 0;
    double streaming_per_byte_ns = 0;
    bool measured = false; ///< Else the rates are the built-in default.

    bool operator==(const CacheRates&) const = default;
};

/// From this length on messages are copied once where a ring is faster at all that were timed.
inline constexpr std::uint64_t kHardlyEverCopiedOnce = std::uint64_t{1} << 30;

/// Cross-memory attach: process_vm_readv.
struct CmaModel {
    bool permitted = true; ///< By the kernel, between processes of one user and job.
    double fixed_ns = 0;
    double per_byte_ns = 0; ///< Of memory that its owner has not written since it was last read.
    double written_per_byte_ns = 0; ///< Of what its owner has just written.
    /// Messages on a host are copied that way from this length on, where each rank has a processor:
    /// two that copy in and out work at the same time.
    std::uint64_t bytes_min = 16 << 10;
    bool measured = false; ///< All but bytes_min.

    bool operator==(const CmaModel&) const = default;
};

/// How messages between ranks of a host are copied.
struct CopyModel {
    /// Those that lie where the peer has them mapped are copied once from this length on, where
    /// each rank has a processor: no system call, which is what makes short ones cheaper to copy
    /// twice.
    std::uint64_t mapped_bytes_min = 8 << 10;
    /// Longer ones that are copied in and out go through buffers that have so many bytes in all: as
    /// few as possible, or more than fit the cache that a core has for itself.
    std::uint64_t ring_bytes = 256 << 10;
    /// Of CmaModel::bytes_min and `ring_bytes`, where ranks take turns on processors, which then
    /// have to do both copies one after the other.
    std::uint64_t oversubscribed_cma_bytes_min = 16 << 10;
    std::uint64_t oversubscribed_ring_bytes = 256 << 10;
    bool measured = false;                ///< mapped_bytes_min, ring_bytes and CmaModel::bytes_min.
    bool oversubscribed_measured = false; ///< The others.

    bool operator==(const CopyModel&) const = default;
};

/// How messages are copied between ranks of a host whose cores share no cache, where each rank has
/// a processor.
struct FarCopyModel {
    /// Of CmaModel::bytes_min, if it is less: what is copied in and out crosses twice.
    std::uint64_t cma_bytes_min = kHardlyEverCopiedOnce;
    bool measured = false;

    bool operator==(const FarCopyModel&) const = default;
};

/// Messages that are copied once, by both of their ends together.
struct CooperativeCopyModel {
    std::uint64_t bytes_min = 64 << 10; ///< From this length on, where each rank has a processor.
    bool measured = false;

    bool operator==(const CooperativeCopyModel&) const = default;
};

/// How long until a waiting rank runs.
struct WakeModel {
    double yield_switch_ns = 0;   ///< sched_yield between two ranks of one CPU, per switch.
    double futex_core_ns = 0;     ///< From the futex wake until the sleeper runs, on one CPU.
    double futex_across_ns = 0;   ///< The same on another CPU, which may have gone idle.
    bool measured = false;        ///< yield_switch and futex_core.
    bool across_measured = false; ///< futex_across.

    bool operator==(const WakeModel&) const = default;
};

/// Levels of a node: topo::Distance short of `network`.
inline constexpr std::size_t kMemoryLevelCount = topo::kDistanceCount - 1;

struct MemoryModel {
    std::array<MemoryLevel, kMemoryLevelCount> levels; ///< Index: topo::Distance.
    std::array<CacheRates, kCacheCount> caches;        ///< Index: Cache.
    double reduce_fixed_ns = 0;                        ///< Per reduction, whatever its length.
    CmaModel cma;
    CopyModel copies;
    FarCopyModel far_copies;
    CooperativeCopyModel cooperative;
    WakeModel wake;

    /// Messages are copied once, by the kernel, from this length on.
    std::uint64_t single_copy_bytes_min(double ranks_per_cpu) const {
        return ranks_per_cpu > 1 ? copies.oversubscribed_cma_bytes_min : cma.bytes_min;
    }
    /// So are messages that lie where the peer has them mapped, from this length on. Where ranks
    /// take turns on processors their sender waits for one of the receiver's, so that what it
    /// saves, a copy to lines that the receiver has read, must take as long.
    std::uint64_t mapped_bytes_min(double ranks_per_cpu) const;
    /// What the buffers of a ring have in all.
    std::uint64_t ring_bytes(double ranks_per_cpu) const {
        return ranks_per_cpu > 1 ? copies.oversubscribed_ring_bytes : copies.ring_bytes;
    }
    /// REQUIRES: distance != Distance::network.
    const MemoryLevel& level(topo::Distance distance) const {
        UCG_ASSERT(distance != topo::Distance::network);
        return levels[static_cast<std::size_t>(distance)];
    }
    const CacheRates& cache(Cache cache) const { return caches[static_cast<std::size_t>(cache)]; }
    /// The innermost cache that holds so many bytes.
    const CacheRates& cache_for(std::uint64_t working_set_bytes) const;
    /// The same where ranks take turns on processors, which then work all the time, each on what
    /// several ranks have: none of them has a part of the L3 for itself.
    const CacheRates& oversubscribed_cache_for(std::uint64_t working_set_bytes) const {
        const CacheRates& rates = cache_for(working_set_bytes);
        return &rates == &cache(Cache::l3_part) ? cache(Cache::l3) : rates;
    }

    bool operator==(const MemoryModel&) const = default;
};

/// Used until the machine has been measured; memory_model.cpp says where it comes from.
const MemoryModel& default_memory_model();

/// a + b m: one core reads what another wrote.
double read_ns(const MemoryLevel& level, std::uint64_t bytes);
/// max(a + b m, a + B d m): `readers` cores read `bytes` each at once over the same link; the last
/// one's time. 0 without readers.
double contended_read_ns(const MemoryLevel& level, std::uint64_t readers, std::uint64_t bytes);

// FlagSlots: what a core shares is on a line of its own, behind half a line that says so; what does
// not fit there is elsewhere, on whole lines.

/// How many bytes come to a core that reads `bytes` of one flag slot, or looks whether it is there
/// (0).
std::uint64_t flag_slot_line_bytes(std::uint64_t bytes);
/// max(b, B d) per byte of lines: `readers` cores take them in, once they have been told of.
double flag_slot_lines_ns(const MemoryLevel& level, std::uint64_t readers,
                          std::uint64_t line_bytes);

/// Less is what a read of a line takes that a core wrote which shares the last-level cache, more
/// one that another wrote; with the time of a clock around it.
std::uint32_t near_read_ns(const MemoryModel& model);

/// One core copies within its own memory; source and target are in cache.
double copy_ns(const MemoryModel& model, std::uint64_t bytes);
/// One core copies to memory that another core read last, by ordinary stores or past the caches.
double overwrite_ns(const MemoryModel& model, std::uint64_t bytes);
double streaming_copy_ns(const MemoryModel& model, std::uint64_t bytes);
/// One reduction of `operands` vectors of `bytes` each into one, all in the caches of the core.
double reduce_ns(const MemoryModel& model, unsigned operands, std::uint64_t bytes);
/// One copy by the kernel out of, or into, another process's memory. Whether that is permitted is
/// another question.
double cma_ns(const CmaModel& cma, std::uint64_t bytes);
/// The same of bytes that their owner has just written.
double cma_written_ns(const CmaModel& cma, std::uint64_t bytes);

} // namespace ucg::cost
