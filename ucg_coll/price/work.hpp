// What a processor does with bytes of its own: copies and reductions, out of the cache that holds
// them. Only + - * / are used, which IEEE 754 rounds alike everywhere: all ranks choose by these.
#pragma once

#include <cstdint>

#include "ucg_coll/cost/cost.hpp"

namespace ucg::price {

/// Returns how many bytes pass through the caches with a copy: those of both buffers.
inline std::uint64_t touched_by_copy(std::uint64_t bytes) {
    return 2 * bytes;
}
/// Returns how many bytes pass through the caches with a reduction: its operands and its target.
inline std::uint64_t touched_by_reduction(unsigned operands, std::uint64_t bytes) {
    return (std::uint64_t{operands} + 1) * bytes;
}

/// Returns the time of a copy within the cache `there`, which is no faster than the profile's copy
/// in cache. Without `there`, the cache is the innermost that holds both buffers.
double copy_ns(const cost::Profile& profile, std::uint64_t bytes, const cost::CacheRates& there);
double copy_ns(const cost::Profile& profile, std::uint64_t bytes);

/// Returns the time of a copy of `bytes` of a vector to a staging buffer, which peers have read
/// last. `working_set_bytes` of vectors pass through the caches, which may hold them or not.
double publish_ns(const cost::MemoryModel& memory, std::uint64_t bytes,
                  std::uint64_t working_set_bytes);
/// Returns the cost of reading peers' own buffers instead of staging buffers. A line of the owner's
/// says where the buffer lies; that line and the first of the buffer are requested one after the
/// other, which adds to the latency. Bytes that their owner has had for some time are read faster
/// than those just written to a staging buffer; if `reader_has_it`, the only reader still has them
/// in its cache.
cost::MemoryLevel own_buffers(const cost::MemoryLevel& staging_buffers,
                              const cost::MemoryModel& memory, bool reader_has_it);
/// Returns max(a + b m, a + B d m): the time in which a core reads `bytes` (m) that another wrote,
/// while `readers` (d) cores, this one included, read by the same way.
double read_ns(const cost::MemoryLevel& level, double readers, std::uint64_t bytes);

/// Returns the time of one reduction of `operands` slices of `bytes` each that lie in the cache
/// `there`. Without `there`, the cache is the innermost that holds them and the target.
double reduce_ns(const cost::Profile& profile, unsigned operands, std::uint64_t bytes,
                 const cost::CacheRates& there);
double reduce_ns(const cost::Profile& profile, unsigned operands, std::uint64_t bytes);

/// Like reduce_ns() with `there`, for one of many segments: `passing` of the operands lie in
/// scratch that all segments pass through, which caches hold when they do not hold the vectors.
double reduce_segment_ns(const cost::Profile& profile, unsigned operands, unsigned passing,
                         std::uint64_t bytes, const cost::CacheRates& there);

/// Operands that come from other cores, each to be read once. Both costs are per byte of the
/// result, for all operands together.
struct Arriving {
    unsigned count = 1;
    double read_per_byte_ns = 0;    ///< Reading them.
    double charged_per_byte_ns = 0; ///< What their arrival has already been charged for.
};

/// Returns what a reduction adds to the arrival of such operands if it combines them, where they
/// lie, with one of the rank's own: reading them is a part of both. The rank's own operand and the
/// target, `bytes` each, are in the cache `there`.
double combine_arriving_ns(const cost::Profile& profile, const Arriving& arriving,
                           std::uint64_t bytes, const cost::CacheRates& there);

/// Like combine_arriving_ns(), for `operands` of which all but one are flag slots of other cores,
/// read at `level`; their lines have been charged for.
double combine_flag_slots_ns(const cost::Profile& profile, const cost::MemoryLevel& level,
                             unsigned operands, std::uint64_t bytes);

} // namespace ucg::price
