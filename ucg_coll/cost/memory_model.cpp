#include "ucg_coll/cost/memory_model.hpp"

#include <algorithm>

namespace ucg::cost {

std::string_view name(Cache cache) {
    static constexpr std::array<std::string_view, kCacheCount> kNames = {"l1", "l2", "l3",
                                                                         "memory"};
    return kNames[static_cast<std::size_t>(cache)];
}

const CacheRates& MemoryModel::cache_for(std::uint64_t working_set_bytes) const {
    for (std::size_t i = 0; i + 1 < caches.size(); ++i) {
        if (working_set_bytes <= caches[i].capacity_bytes) {
            return caches[i];
        }
    }
    return caches.back();
}

const MemoryModel& default_memory_model() {
    // Two Zen 4 cores of one last-level cache, virtual: micro-benchmarks of lines, copies,
    // process_vm_readv and wake-ups. Farther levels and contention are assumptions: no such cores
    // were there to be measured.
    static constexpr MemoryModel kDefault = {
        .levels = {{
            {.latency_ns = 20, .per_byte_ns = 0.02, .contended_per_byte_ns = 0.02},
            {.latency_ns = 36, .per_byte_ns = 0.03, .contended_per_byte_ns = 0.0075},
            {.latency_ns = 110, .per_byte_ns = 0.05, .contended_per_byte_ns = 0.025},
            {.latency_ns = 130, .per_byte_ns = 0.06, .contended_per_byte_ns = 0.03},
            {.latency_ns = 200, .per_byte_ns = 0.09, .contended_per_byte_ns = 0.045},
        }},
        .caches = {{
            {32 << 10, 0.014, 0.012, 0.012, 0.05, 0.03, false},
            {1 << 20, 0.023, 0.02, 0.02, 0.12, 0.03, false},
            {32 << 20, 0.028, 0.022, 0.022, 0.03, 0.03, false},
            {0, 0.085, 0.06, 0.06, 0.1, 0.1, false},
        }},
        .reduce_fixed_ns = 20,
        .cma = {.permitted = true, .fixed_ns = 1900, .per_byte_ns = 0.096},
        .wake = {.yield_switch_ns = 2000, .futex_core_ns = 3100, .futex_across_ns = 22500},
    };
    return kDefault;
}

double read_ns(const MemoryLevel& level, std::uint64_t bytes) {
    return level.latency_ns + level.per_byte_ns * static_cast<double>(bytes);
}

double contended_read_ns(const MemoryLevel& level, std::uint64_t readers, std::uint64_t bytes) {
    if (readers == 0) {
        return 0;
    }
    const double per_byte_ns =
        std::max(level.per_byte_ns, level.contended_per_byte_ns * static_cast<double>(readers));
    return level.latency_ns + per_byte_ns * static_cast<double>(bytes);
}

double copy_ns(const MemoryModel& model, std::uint64_t bytes) {
    return model.cache_for(2 * bytes).copy_per_byte_ns * static_cast<double>(bytes);
}

double overwrite_ns(const MemoryModel& model, std::uint64_t bytes) {
    return model.cache_for(bytes).overwrite_per_byte_ns * static_cast<double>(bytes);
}

double streaming_copy_ns(const MemoryModel& model, std::uint64_t bytes) {
    return model.cache_for(bytes).streaming_per_byte_ns * static_cast<double>(bytes);
}

double reduce_ns(const MemoryModel& model, unsigned operands, std::uint64_t bytes) {
    const CacheRates& rates = model.cache_for((std::uint64_t{operands} + 1) * bytes);
    return model.reduce_fixed_ns +
           static_cast<double>(bytes) *
               (operands * rates.reduce_operand_per_byte_ns + rates.reduce_target_per_byte_ns);
}

double cma_ns(const CmaModel& cma, std::uint64_t bytes) {
    return cma.fixed_ns + cma.per_byte_ns * static_cast<double>(bytes);
}

} // namespace ucg::cost
