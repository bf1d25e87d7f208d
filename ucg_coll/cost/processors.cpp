#include "ucg_coll/cost/processors.hpp"

#include <algorithm>
#include <array>

namespace ucg::cost {
namespace {

/// AMD Zen 4 (EPYC, family 25, model 17): `ucg_tune memory` and perf/micro/shm_bench on two virtual
/// cores (32 KiB L1 and 1 MiB L2 each, 32 MiB L3), quiet: `cache` while they were in one group of
/// cores, messages beyond while they were not. What memory beyond costs to read was not measured
/// and is the default. Of the L3, which eight cores share, other guests use their part: what all
/// rows of four ranks on two cores took fits 8 MiB better than 16 or 32.
Profile zen_profile() {
    Profile profile = default_profile();
    MemoryModel& memory = profile.memory;
    const auto cache_level = static_cast<std::size_t>(topo::Distance::cache);
    memory.levels[cache_level] = {
        .latency_ns = 30, .per_byte_ns = 0.026, .contended_per_byte_ns = 0.0065};
    memory.caches = {{
        {.capacity_bytes = 32 << 10,
         .copy_per_byte_ns = 0.012,
         .reduce_operand_per_byte_ns = 0.006,
         .reduce_target_per_byte_ns = 0.0005,
         .overwrite_per_byte_ns = 0.125,
         .streaming_per_byte_ns = 0.028},
        {.capacity_bytes = 1 << 20,
         .copy_per_byte_ns = 0.021,
         .reduce_operand_per_byte_ns = 0.0096,
         .reduce_target_per_byte_ns = 0.0114,
         .overwrite_per_byte_ns = 0.145,
         .streaming_per_byte_ns = 0.035},
        {.capacity_bytes = 8 << 20,
         .copy_per_byte_ns = 0.054,
         .reduce_operand_per_byte_ns = 0.0164,
         .reduce_target_per_byte_ns = 0.029,
         .overwrite_per_byte_ns = 0.078,
         .streaming_per_byte_ns = 0.05},
        {.capacity_bytes = 0,
         .copy_per_byte_ns = 0.1,
         .reduce_operand_per_byte_ns = 0.0275,
         .reduce_target_per_byte_ns = 0.122,
         .overwrite_per_byte_ns = 0.105,
         .streaming_per_byte_ns = 0.07},
    }};
    memory.reduce_fixed_ns = 5;
    // A system call takes twice as long as on the default's processor, and copies by an
    // instruction (rep movsb) that is slow where source and target lie unevenly.
    memory.cma = {.permitted = true,
                  .fixed_ns = 1660,
                  .per_byte_ns = 0.069,
                  .written_per_byte_ns = 0.14,
                  .bytes_min = 4 << 20};
    // What the L2 of the receiver gives up goes to the L3 that both share, and only there does the
    // sender find it at full speed: so twice the L2.
    memory.copies.ring_bytes = 2 << 20;
    memory.copies.crowded_cma_bytes_min = 64 << 10;
    memory.wake = {.yield_switch_ns = 1430, .futex_core_ns = 6000, .futex_across_ns = 29000};
    // A byte of a message of some KiB takes 0.11 ns, of one of 64 KiB or more 0.035: between them.
    profile.levels[cache_level] = {
        .latency_ns = 45, .overhead_ns = 20, .gap_ns = 30, .gap_per_byte_ns = 0.08};
    for (const topo::Distance distance :
         {topo::Distance::numa, topo::Distance::package, topo::Distance::host}) {
        profile.levels[static_cast<std::size_t>(distance)] = {
            .latency_ns = 220, .overhead_ns = 25, .gap_ns = 50, .gap_per_byte_ns = 0.075};
    }
    profile.copy_per_byte_ns = memory.cache(Cache::l2).copy_per_byte_ns;
    profile.reduce_per_byte_ns = 0.0153;
    profile.reduce_fixed_ns = memory.reduce_fixed_ns;
    return profile;
}

struct Row {
    std::string_view vendor;
    std::uint32_t family_first;
    std::uint32_t family_last;
    std::string_view name;
    Profile (*profile)();
};

/// Zen 1 and 2 (family 23) and 5 (26) share with Zen 3 and 4 (25) what decides here, a last-level
/// cache that takes what the L2 gives up, and kernel copies of a like speed; they were not
/// measured.
constexpr std::array<Row, 1> kRows = {{{"AuthenticAMD", 23, 26, "AMD Zen", zen_profile}}};

} // namespace

BuiltinCosts builtin_costs(const topo::Processor& processor) {
    static const std::array<Profile, kRows.size()> profiles = {kRows[0].profile()};
    const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& candidate) {
        return candidate.vendor == processor.vendor && processor.family >= candidate.family_first &&
               processor.family <= candidate.family_last;
    });
    if (row == kRows.end()) {
        return {"Intel Xeon, taken for any other", default_profile()};
    }
    return {row->name, profiles[static_cast<std::size_t>(row - kRows.begin())]};
}

} // namespace ucg::cost
