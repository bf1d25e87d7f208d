#include "ucg_coll/price/work.hpp"

#include <algorithm>

namespace ucg::price {
namespace {

/// Returns the time of a reduction: that of the operands' arithmetic or that of moving the bytes,
/// at `there_per_byte_ns` for each byte of the result, whichever is longer.
double combining_ns(const cost::Profile& profile, unsigned operands, std::uint64_t bytes,
                    double there_per_byte_ns) {
    return profile.reduce_fixed_ns +
           static_cast<double>(bytes) *
               std::max(operands * profile.reduce_per_byte_ns, there_per_byte_ns);
}

} // namespace

double copy_ns(const cost::Profile& profile, std::uint64_t bytes, const cost::CacheRates& there) {
    return static_cast<double>(bytes) * std::max(profile.copy_per_byte_ns, there.copy_per_byte_ns);
}

double copy_ns(const cost::Profile& profile, std::uint64_t bytes) {
    return copy_ns(profile, bytes, profile.memory.rates_for(touched_by_copy(bytes)));
}

double publish_ns(const cost::MemoryModel& memory, std::uint64_t bytes,
                  std::uint64_t working_set_bytes) {
    return std::max(cost::overwrite_ns(memory, bytes),
                    static_cast<double>(bytes) *
                        memory.rates_for(working_set_bytes).copy_per_byte_ns);
}

cost::MemoryLevel own_buffers(const cost::MemoryLevel& staging_buffers,
                              const cost::MemoryModel& memory, bool reader_has_it) {
    const double had_per_byte_ns =
        reader_has_it ? memory.cache(cost::Cache::l2).copy_per_byte_ns : memory.cma.per_byte_ns;
    cost::MemoryLevel buffers = staging_buffers;
    buffers.latency_ns += 2 * 2 * staging_buffers.latency_ns; // Two lines, each there and back.
    buffers.per_byte_ns = std::min(staging_buffers.per_byte_ns, had_per_byte_ns);
    return buffers;
}

double read_ns(const cost::MemoryLevel& level, double readers, std::uint64_t bytes) {
    return level.latency_ns +
           static_cast<double>(bytes) *
               std::max(level.per_byte_ns, level.contended_per_byte_ns * readers);
}

double reduce_ns(const cost::Profile& profile, unsigned operands, std::uint64_t bytes,
                 const cost::CacheRates& there) {
    return combining_ns(profile, operands, bytes,
                        operands * there.reduce_operand_per_byte_ns +
                            there.reduce_target_per_byte_ns);
}

double reduce_segment_ns(const cost::Profile& profile, unsigned operands, unsigned passing,
                         std::uint64_t bytes, const cost::CacheRates& there) {
    const double passing_per_byte_ns =
        std::min(there.reduce_operand_per_byte_ns,
                 profile.memory.rates_for(touched_by_copy(bytes)).reduce_operand_per_byte_ns);
    return combining_ns(profile, operands, bytes,
                        (operands - passing) * there.reduce_operand_per_byte_ns +
                            passing * passing_per_byte_ns + there.reduce_target_per_byte_ns);
}

double reduce_ns(const cost::Profile& profile, unsigned operands, std::uint64_t bytes) {
    return reduce_ns(profile, operands, bytes,
                     profile.memory.rates_for(touched_by_reduction(operands, bytes)));
}

double combine_arriving_ns(const cost::Profile& profile, const Arriving& arriving,
                           std::uint64_t bytes, const cost::CacheRates& there) {
    const double moved_per_byte_ns = arriving.read_per_byte_ns + there.reduce_operand_per_byte_ns +
                                     there.reduce_target_per_byte_ns;
    const double all_ns = combining_ns(profile, arriving.count + 1, bytes, moved_per_byte_ns);
    const double charged_ns = static_cast<double>(bytes) * arriving.charged_per_byte_ns;
    return std::max(profile.reduce_fixed_ns, all_ns - charged_ns);
}

double combine_flag_slots_ns(const cost::Profile& profile, const cost::MemoryLevel& level,
                             unsigned operands, std::uint64_t bytes) {
    const unsigned flag_slots = operands - 1;
    const double read_per_byte_ns = flag_slots * level.per_byte_ns;
    return combine_arriving_ns(profile, {flag_slots, read_per_byte_ns, read_per_byte_ns}, bytes,
                               profile.memory.rates_for(2 * bytes));
}

} // namespace ucg::price
