// What moving bytes between the cores of one node costs: the memory models of Li, Hoefler and Snir,
// "NUMA-Aware Shared-Memory Collective Communication for MPI" (HPDC 2013), and models of what this
// library does besides: copying and reducing out of each cache, the kernel's copy between
// processes, waking a rank that waits. They are plain values, which `ucg_tune memory` measures.
//
// All ranks must choose alike, also where their processors differ: only + - * / are used, which
// IEEE 754 rounds exactly.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::cost {

/// How a core reads what another core of the node wrote, for cores at one distance. The paper
/// counts m in cache lines; here it is bytes.
struct MemoryLevel {
    double latency_ns = 0;  ///< a: from a core's write, of a flag, until another core has seen it.
    double per_byte_ns = 0; ///< b: per byte of a vector that one core reads while no other does.
    /// B: per byte and reader of a vector that d cores read at once: they take a + B d m.
    double contended_per_byte_ns = 0;
    bool measured = false; ///< Whether latency and per_byte were measured; else both are built in.
    bool contention_measured = false; ///< Whether contended_per_byte was; else built in.

    bool operator==(const MemoryLevel&) const = default;
};

/// Where the bytes are that a core works on. A group of cores shares an L3, also with other guests
/// of the host. In a part of it, `l3_part`, a core is nearly as fast as in its own L2 as long as
/// the others leave it that part; in the whole it is slower.
enum class Cache : std::uint8_t { l1, l2, l3_part, l3, memory };
inline constexpr std::size_t kCacheCount = 5;
std::string_view name(Cache cache);

/// How fast one core copies and reduces bytes that are in one cache.
struct CacheRates {
    /// The most bytes that a core has for itself there; meaningless for `memory`.
    std::uint64_t capacity_bytes = 0;
    double copy_per_byte_ns = 0; ///< Within one process: source and target are in this cache.
    /// Per byte of its result, a reduction of k operands takes k times the first rate and once the
    /// second.
    double reduce_operand_per_byte_ns = 0;
    double reduce_target_per_byte_ns = 0;
    /// Copying to a target that another core read last, so that the other core's cache holds the
    /// lines: by ordinary stores, and by stores past the caches (shm::copy_streaming). Both are per
    /// byte; the cache is the one that holds the target alone.
    double overwrite_per_byte_ns = 0;
    double streaming_per_byte_ns = 0;
    bool measured = false; ///< Else the rates are the built-in default.

    bool operator==(const CacheRates&) const = default;
};

/// The length from which on messages are copied once where a ring is faster at all lengths that
/// were timed.
inline constexpr std::uint64_t kHardlyEverCopiedOnce = std::uint64_t{1} << 30;

/// The shortest single copies for which processes that copy from or to the memory of one other
/// process look up its pages one after the other (shm/page_lookups.hpp). Shorter ones collide for
/// less time than that costs: two readers of 32 KiB are done after 2.3 us, and after 2.8 us if the
/// second one waits (Sapphire Rapids).
inline constexpr std::uint64_t kSerialLookupBytesMin = 64 << 10;

/// The cost of the kernel's copy between processes (cross-memory attach: process_vm_readv).
struct CmaModel {
    bool permitted = true; ///< Whether the kernel allows it between processes of a user and job.
    double fixed_ns = 0;
    double per_byte_ns = 0; ///< Of memory that its owner has not written since it was last read.
    double written_per_byte_ns = 0; ///< Of memory that its owner has just written.
    /// The part of these in which the kernel finds the pages of the other process: one call at a
    /// time, where several copy from or to one process. Where it was not measured: 50 ns for a page
    /// of 4 KiB, of which Sapphire Rapids needs 46.
    double lookup_per_byte_ns = 0.0125;
    /// The length from which on messages on a host are copied that way where each rank has a
    /// processor, so that two ranks that copy in and out work at the same time.
    std::uint64_t bytes_min = 16 << 10;
    /// Replaces bytes_min, if it is greater, in collectives whose messages go one way: copying a
    /// message in keeps no rank from copying another one out there, and its sender need not wait
    /// for its receiver.
    std::uint64_t one_way_bytes_min = 0;
    /// Replaces both, if it is greater, in such collectives whose receivers combine what comes: out
    /// of a ring they combine it where it is, while the kernel's copy goes to scratch first.
    std::uint64_t combined_bytes_min = 0;
    bool measured = false; ///< Whether all but the lengths was measured.

    bool operator==(const CmaModel&) const = default;
};

/// How messages between ranks of a host are copied.
struct CopyModel {
    /// The length from which on messages in mapped buffers are copied once where each rank has a
    /// processor. That takes no system call, which otherwise makes it cheaper to copy short
    /// messages twice.
    std::uint64_t mapped_bytes_min = 8 << 10;
    /// Bytes that the buffers of a ring have in all, through which longer messages go that are
    /// copied in and out: as few as possible, or more than fit the cache that a core has for
    /// itself.
    std::uint64_t ring_bytes = 256 << 10;
    /// Per byte of messages through a ring that follow one another, so that sender and receiver
    /// copy at the same time, where each rank has a processor and they share a cache. 0: not known;
    /// then it is LogGP's gap, which may be that of a message by itself.
    double ring_per_byte_ns = 0;
    /// These replace CmaModel::bytes_min and `ring_bytes` where ranks take turns on processors,
    /// which then have to make both copies one after the other; the second one replaces the first
    /// one, if it is greater, where receivers combine what comes.
    std::uint64_t oversubscribed_cma_bytes_min = 16 << 10;
    std::uint64_t oversubscribed_combined_bytes_min = 0;
    std::uint64_t oversubscribed_ring_bytes = 256 << 10;
    /// Whether those without `oversubscribed`, and the lengths of CmaModel, were measured.
    bool measured = false;
    bool oversubscribed_measured = false; ///< Whether the others were.

    bool operator==(const CopyModel&) const = default;
};

/// How messages are copied between ranks of a host whose cores share no cache, where each rank has
/// a processor.
struct FarCopyModel {
    /// Replaces CmaModel::bytes_min if it is less: bytes that are copied in and out cross between
    /// the caches twice.
    std::uint64_t cma_bytes_min = kHardlyEverCopiedOnce;
    bool measured = false;

    bool operator==(const FarCopyModel&) const = default;
};

/// Which messages that are copied once may be copied by both of their ends together.
struct CooperativeCopyModel {
    std::uint64_t bytes_min = 64 << 10; ///< The shortest, where each rank has a processor.
    bool measured = false;

    bool operator==(const CooperativeCopyModel&) const = default;
};

/// The flag slots of the ranks of a host, where each rank has a processor.
struct FlagSlotModel {
    /// How many shares a rank may be ahead of its peers, each of which lies in pages of its own.
    std::uint64_t depth = 16;
    bool measured = false;

    bool operator==(const FlagSlotModel&) const = default;
};

/// How long until a waiting rank runs.
struct WakeModel {
    double yield_switch_ns = 0;   ///< sched_yield between two ranks of one CPU, per switch.
    double futex_core_ns = 0;     ///< From the futex wake until a sleeper on the same CPU runs.
    double futex_across_ns = 0;   ///< Until one on another CPU runs, which may have gone idle.
    bool measured = false;        ///< Whether yield_switch and futex_core were measured.
    bool across_measured = false; ///< Whether futex_across was measured.

    bool operator==(const WakeModel&) const = default;
};

/// Levels of a node: topo::Distance short of `network`.
inline constexpr std::size_t kMemoryLevelCount = topo::kDistanceCount - 1;

/// All costs of moving bytes between the cores of one node.
struct MemoryModel {
    std::array<MemoryLevel, kMemoryLevelCount> levels; ///< Index: topo::Distance.
    std::array<CacheRates, kCacheCount> caches;        ///< Index: Cache.
    double reduce_fixed_ns = 0;                        ///< Per reduction, whatever its length.
    CmaModel cma;
    CopyModel copies;
    FarCopyModel far_copies;
    CooperativeCopyModel cooperative;
    FlagSlotModel flag_slots;
    WakeModel wake;

    /// Returns the length from which on messages are copied once, by the kernel.
    std::uint64_t single_copy_bytes_min(MessageUse use, double ranks_per_cpu) const;
    /// Makes this the length from which on all messages are copied once by the kernel.
    void set_single_copy_bytes_min(std::uint64_t bytes);
    /// Returns the length from which on messages in mapped buffers are copied once, without the
    /// kernel. Where ranks take turns on processors, the sender waits for a turn of the receiver's,
    /// so the copy that it saves, to lines that the receiver has read, must take at least as long.
    std::uint64_t mapped_bytes_min(double ranks_per_cpu) const;
    /// Returns how many bytes the buffers of a ring have in all.
    std::uint64_t ring_bytes(double ranks_per_cpu) const {
        return ranks_per_cpu > 1 ? copies.oversubscribed_ring_bytes : copies.ring_bytes;
    }
    /// REQUIRES: distance != Distance::network.
    const MemoryLevel& level(topo::Distance distance) const {
        UCG_ASSERT(distance != topo::Distance::network);
        return levels[static_cast<std::size_t>(distance)];
    }
    const CacheRates& cache(Cache cache) const { return caches[static_cast<std::size_t>(cache)]; }
    /// Returns the rates at which a core works on so many bytes again and again: those of the
    /// innermost cache that holds them, or where a cache holds some of them, rates between its own
    /// and those of the next.
    CacheRates rates_for(std::uint64_t working_set_bytes) const;
    /// Like rates_for(), but where ranks take turns on processors. These then work all the time,
    /// each on the bytes of several ranks, and none of them has a part of the L3 for itself.
    CacheRates oversubscribed_rates_for(std::uint64_t working_set_bytes) const;

    bool operator==(const MemoryModel&) const = default;
};

/// Returns the model that is used until the machine has been measured; memory_model.cpp says where
/// its figures come from.
const MemoryModel& default_memory_model();

/// Returns a + b m: the time in which one core reads `bytes` (m) that another wrote.
double read_ns(const MemoryLevel& level, std::uint64_t bytes);
/// Returns max(a + b m, a + B d m): the time of the last of `readers` (d) cores that read `bytes`
/// (m) each at once over the same link; 0 without readers.
double contended_read_ns(const MemoryLevel& level, std::uint64_t readers, std::uint64_t bytes);

// Flag slots: the bytes that a core shares are on a line of its own, behind half a line of header;
// those that do not fit there are elsewhere, on whole lines.

/// Returns how many bytes of lines come to a core that reads `bytes` of one flag slot; with 0 bytes
/// it only looks whether they have been shared.
std::uint64_t flag_slot_line_bytes(std::uint64_t bytes);
/// Returns the time in which `readers` (d) cores take in lines of `line_bytes` that they know to
/// have been written: max(b, B d) per byte.
double flag_slot_lines_ns(const MemoryLevel& level, std::uint64_t readers,
                          std::uint64_t line_bytes);

/// Returns the time that separates near from far writers of a line, in nanoseconds. Reading a line,
/// with reading the clock before and after, takes less if the core that wrote it shares the
/// last-level cache, and more if it does not.
std::uint32_t near_read_ns(const MemoryModel& model);

/// Returns the time of a copy within a core's own memory, whose source and target are in the
/// innermost cache that holds both.
double copy_ns(const MemoryModel& model, std::uint64_t bytes);
/// Returns the time of a copy to memory that another core read last, by ordinary stores.
double overwrite_ns(const MemoryModel& model, std::uint64_t bytes);
/// Returns the time of one reduction of `operands` vectors of `bytes` each into one, all in the
/// innermost cache that holds them.
double reduce_ns(const MemoryModel& model, unsigned operands, std::uint64_t bytes);
/// Returns the time of one copy by the kernel out of, or into, another process's memory, whether or
/// not that is permitted.
double cma_ns(const CmaModel& cma, std::uint64_t bytes);

} // namespace ucg::cost
