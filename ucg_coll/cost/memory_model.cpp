#include "ucg_coll/cost/memory_model.hpp"

#include <algorithm>
#include <span>

namespace ucg::cost {

std::string_view name(Cache cache) {
    static constexpr std::array<std::string_view, kCacheCount> kNames = {"l1", "l2", "l3_part",
                                                                         "l3", "memory"};
    return kNames[static_cast<std::size_t>(cache)];
}

namespace {

/// Returns the part of a working set that a cache serves. Pages lie where they may, so that some
/// sets of a cache overflow before it is full, and others have room when it is. On Sapphire Rapids
/// (2 MiB of L2), copies within 1.5, 2, 2.5, 3 and 3.5 MiB again and again took 0.022, 0.032,
/// 0.052, 0.067 and 0.072 ns/B, with 0.019 within less and 0.075 within more.
double served_part(const CacheRates& cache, std::uint64_t working_set_bytes) {
    constexpr double kAll = 0.75; // of the capacity
    constexpr double kNone = 1.6;
    const auto capacity = static_cast<double>(cache.capacity_bytes);
    const auto bytes = static_cast<double>(working_set_bytes);
    if (bytes <= kAll * capacity) {
        return 1;
    }
    return std::max(0.0, (kNone * capacity - bytes) / ((kNone - kAll) * capacity));
}

CacheRates between(const CacheRates& inner, const CacheRates& outer, double inner_part) {
    CacheRates rates = outer;
    for (const auto rate :
         {&CacheRates::copy_per_byte_ns, &CacheRates::reduce_operand_per_byte_ns,
          &CacheRates::reduce_target_per_byte_ns, &CacheRates::overwrite_per_byte_ns,
          &CacheRates::streaming_per_byte_ns}) {
        rates.*rate += inner_part * (inner.*rate - outer.*rate);
    }
    return rates;
}

/// Returns the rates for a working set that no cache but these serves; the last serves the rest.
CacheRates rates_in(std::span<const CacheRates* const> caches, std::uint64_t working_set_bytes) {
    const CacheRates& inner = *caches.front();
    const double part = caches.size() == 1 ? 1 : served_part(inner, working_set_bytes);
    if (part == 1) {
        return inner;
    }
    const CacheRates outer = rates_in(caches.subspan(1), working_set_bytes);
    return part == 0 ? outer : between(inner, outer, part); // Planning asks often.
}

} // namespace

CacheRates MemoryModel::rates_for(std::uint64_t working_set_bytes) const {
    const std::array all = {&cache(Cache::l1), &cache(Cache::l2), &cache(Cache::l3_part),
                            &cache(Cache::l3), &cache(Cache::memory)};
    static_assert(all.size() == kCacheCount);
    return rates_in(all, working_set_bytes);
}

CacheRates MemoryModel::oversubscribed_rates_for(std::uint64_t working_set_bytes) const {
    const std::array without_part = {&cache(Cache::l1), &cache(Cache::l2), &cache(Cache::l3),
                                     &cache(Cache::memory)};
    return rates_in(without_part, working_set_bytes);
}

std::uint64_t MemoryModel::single_copy_bytes_min(MessageUse use, double ranks_per_cpu) const {
    if (ranks_per_cpu > 1) {
        return use == MessageUse::combined ? std::max(copies.oversubscribed_cma_bytes_min,
                                                      copies.oversubscribed_combined_bytes_min)
                                           : copies.oversubscribed_cma_bytes_min;
    }
    switch (use) {
    case MessageUse::exchanged:
    case MessageUse::exchanged_combined: break;
    case MessageUse::one_way: return std::max(cma.bytes_min, cma.one_way_bytes_min);
    case MessageUse::combined:
        return std::max({cma.bytes_min, cma.one_way_bytes_min, cma.combined_bytes_min});
    }
    return cma.bytes_min;
}

void MemoryModel::set_single_copy_bytes_min(std::uint64_t bytes) {
    cma.bytes_min = cma.one_way_bytes_min = cma.combined_bytes_min = bytes;
    copies.oversubscribed_cma_bytes_min = copies.oversubscribed_combined_bytes_min = bytes;
    far_copies.cma_bytes_min = bytes;
}

std::uint64_t MemoryModel::mapped_bytes_min(double ranks_per_cpu) const {
    constexpr std::uint64_t kMost = 1 << 20;
    std::uint64_t bytes = std::max<std::uint64_t>(copies.mapped_bytes_min, kCacheLine);
    while (ranks_per_cpu > 1 && bytes < kMost &&
           overwrite_ns(*this, bytes) < wake.yield_switch_ns) {
        bytes *= 2;
    }
    return bytes;
}

const MemoryModel& default_memory_model() {
    // These are rounded medians of `ucg_tune memory` on two virtual cores of one package of an
    // Intel Xeon server (48 KiB L1, 2 MiB L2 each, 300 MiB L3), under other load. Other guests used
    // their part of the L3: vectors of 150 MiB were no faster than those of 1.2 GiB. Memory was
    // measured in three rounds. Two things are assumed, as there were no such cores. The levels
    // other than `cache`: two threads of a core share its L1, so `core` takes a third; farther
    // away, b rises as G does in the LogGP default, and a is about its L. And B, by how many
    // readers a link serves at full speed: a core one, a shared cache four, links between domains
    // and packages two.
    static constexpr CacheRates kL3 = {.capacity_bytes = 300 << 20,
                                       .copy_per_byte_ns = 0.14,
                                       .reduce_operand_per_byte_ns = 0.042,
                                       .reduce_target_per_byte_ns = 0.12,
                                       .overwrite_per_byte_ns = 0.14,
                                       .streaming_per_byte_ns = 0.11};
    static constexpr MemoryModel kDefault = {
        .levels = {{
            {.latency_ns = 20, .per_byte_ns = 0.023, .contended_per_byte_ns = 0.023}, // core
            {.latency_ns = 60, .per_byte_ns = 0.068, .contended_per_byte_ns = 0.017}, // cache
            {.latency_ns = 110, .per_byte_ns = 0.1, .contended_per_byte_ns = 0.05},   // numa
            {.latency_ns = 130, .per_byte_ns = 0.11, .contended_per_byte_ns = 0.055}, // package
            {.latency_ns = 200, .per_byte_ns = 0.15, .contended_per_byte_ns = 0.075}, // host
        }},
        .caches = {{
            {.capacity_bytes = 48 << 10,
             .copy_per_byte_ns = 0.0053,
             .reduce_operand_per_byte_ns = 0.0029,
             .reduce_target_per_byte_ns = 0.0036,
             .overwrite_per_byte_ns = 0.064,
             .streaming_per_byte_ns = 0.1},
            {.capacity_bytes = 2 << 20,
             .copy_per_byte_ns = 0.0234,
             .reduce_operand_per_byte_ns = 0.0063,
             .reduce_target_per_byte_ns = 0.0155,
             .overwrite_per_byte_ns = 0.055,
             .streaming_per_byte_ns = 0.12},
            kL3, // No part of the L3 was measured by itself.
            kL3,
            {.capacity_bytes = 0,
             .copy_per_byte_ns = 0.096,
             .reduce_operand_per_byte_ns = 0.052,
             .reduce_target_per_byte_ns = 0.12,
             .overwrite_per_byte_ns = 0.09,
             .streaming_per_byte_ns = 0.11},
        }},
        .reduce_fixed_ns = 2.7,
        .cma = {.permitted = true,
                .fixed_ns = 810,
                .per_byte_ns = 0.05,
                .written_per_byte_ns = 0.11},
        .copies = {},
        .far_copies = {},
        .cooperative = {},
        .wake = {.yield_switch_ns = 715, .futex_core_ns = 3200, .futex_across_ns = 5700},
    };
    return kDefault;
}

double read_ns(const MemoryLevel& level, std::uint64_t bytes) {
    return level.latency_ns + level.per_byte_ns * static_cast<double>(bytes);
}

std::uint32_t near_read_ns(const MemoryModel& model) {
    // On AMD Zen 3, the clock and a read from near cores take 40 to 80 ns, from far ones 130 to
    // 180.
    constexpr double kClockNs = 30;
    const double near_ns = model.level(topo::Distance::cache).latency_ns;
    const double far_ns = model.level(topo::Distance::numa).latency_ns;
    return static_cast<std::uint32_t>(kClockNs + (near_ns + far_ns) / 2);
}

double contended_read_ns(const MemoryLevel& level, std::uint64_t readers, std::uint64_t bytes) {
    if (readers == 0) {
        return 0;
    }
    const double per_byte_ns =
        std::max(level.per_byte_ns, level.contended_per_byte_ns * static_cast<double>(readers));
    return level.latency_ns + per_byte_ns * static_cast<double>(bytes);
}

std::uint64_t flag_slot_line_bytes(std::uint64_t bytes) {
    constexpr std::uint64_t kHeadBytes = kCacheLine / 2;
    return round_up(kHeadBytes + bytes, kCacheLine);
}

double flag_slot_lines_ns(const MemoryLevel& level, std::uint64_t readers,
                          std::uint64_t line_bytes) {
    return readers == 0 ? 0 : contended_read_ns(level, readers, line_bytes) - level.latency_ns;
}

double copy_ns(const MemoryModel& model, std::uint64_t bytes) {
    return model.rates_for(2 * bytes).copy_per_byte_ns * static_cast<double>(bytes);
}

double overwrite_ns(const MemoryModel& model, std::uint64_t bytes) {
    return model.rates_for(bytes).overwrite_per_byte_ns * static_cast<double>(bytes);
}

double reduce_ns(const MemoryModel& model, unsigned operands, std::uint64_t bytes) {
    const CacheRates rates = model.rates_for((std::uint64_t{operands} + 1) * bytes);
    return model.reduce_fixed_ns +
           static_cast<double>(bytes) *
               (operands * rates.reduce_operand_per_byte_ns + rates.reduce_target_per_byte_ns);
}

double cma_ns(const CmaModel& cma, std::uint64_t bytes) {
    return cma.fixed_ns + cma.per_byte_ns * static_cast<double>(bytes);
}

} // namespace ucg::cost
