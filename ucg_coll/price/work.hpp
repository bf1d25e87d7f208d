// What a processor does with bytes of its own: copies and reductions, out of the cache that holds
// them. Only + - * / are used, which IEEE 754 rounds alike everywhere: all ranks choose by these.
#pragma once

#include <cstdint>

#include "ucg_coll/cost/cost.hpp"

namespace ucg::price {

/// Both buffers of a copy pass through the caches.
inline std::uint64_t touched_by_copy(std::uint64_t bytes) {
    return 2 * bytes;
}
/// So do the operands of a reduction and its target.
inline std::uint64_t touched_by_reduction(unsigned operands, std::uint64_t bytes) {
    return (std::uint64_t{operands} + 1) * bytes;
}

/// What lies `there` is copied no faster than the profile's copy in cache.
double copy_ns(const cost::Profile& profile, std::uint64_t bytes, const cost::CacheRates& there);
double copy_ns(const cost::Profile& profile, std::uint64_t bytes);

/// A copy to a staging buffer, which peers have read last, of bytes of a vector; so many bytes of
/// vectors pass through the caches, which hold them or do not.
double publish_ns(const cost::MemoryModel& memory, std::uint64_t bytes,
                  std::uint64_t working_set_bytes);
/// Reading the own buffers of peers rather than staging buffers. A line of the owner's tells where
/// a buffer lies; that one and the first of the buffer are asked for and come. What a rank has had
/// for some time is read faster than what was just written to a staging buffer; or the reader, one
/// and the same, still has it in its cache.
cost::MemoryLevel own_buffers(const cost::MemoryLevel& staging_buffers,
                              const cost::MemoryModel& memory, bool reader_has_it);
/// max(a + b m, a + B d m): bytes of another core's, while `readers` read by the same way.
double read_ns(const cost::MemoryLevel& level, double readers, std::uint64_t bytes);

/// One reduction of `operands` slices of `bytes` each that lie `there`.
double reduce_ns(const cost::Profile& profile, unsigned operands, std::uint64_t bytes,
                 const cost::CacheRates& there);
double reduce_ns(const cost::Profile& profile, unsigned operands, std::uint64_t bytes);

/// Operands that come from other cores, each to be read once: what that takes per byte of all of
/// them, and how much of it whoever brings them has been charged for.
struct Arriving {
    unsigned count = 1;
    double read_per_byte_ns = 0;
    double charged_per_byte_ns = 0;
};

/// What a reduction adds to the coming of such operands, if it combines them where they lie with
/// one of its own: reading them is a part of both. Its own operand and the target are `there`.
double combine_arriving_ns(const cost::Profile& profile, const Arriving& arriving,
                           std::uint64_t bytes, const cost::CacheRates& there);

/// The same of flag slots of other cores, all operands but one, whose lines have been charged for.
double combine_flag_slots_ns(const cost::Profile& profile, const cost::MemoryLevel& level,
                             unsigned operands, std::uint64_t bytes);

} // namespace ucg::price
