#include "ucg_coll/cost/processors.hpp"

#include <algorithm>
#include <array>

namespace ucg::cost {
namespace {

/// Returns the rates of all caches where nobody has measured a part of the L3 by itself.
std::array<CacheRates, kCacheCount> with_undivided_l3(const CacheRates& l1, const CacheRates& l2,
                                                      const CacheRates& l3,
                                                      const CacheRates& memory) {
    return {l1, l2, l3, l3, memory};
}

/// AMD Zen 4 (EPYC, family 25, model 17), by `ucg_tune memory` and perf/micro/shm_bench on two
/// virtual cores (32 KiB L1 and 1 MiB L2 each, 32 MiB L3) of a quiet machine. `cache` was measured
/// while they were in one group of cores, messages of the levels beyond while they were not. What
/// reading memory costs on the levels beyond was not measured and is the default. Eight cores share
/// the L3, of which other guests use their part: the times of all rows of four ranks on two cores
/// fit 8 MiB better than 16 or 32.
Profile zen4_profile() {
    Profile profile = default_profile();
    MemoryModel& memory = profile.memory;
    const auto cache_level = static_cast<std::size_t>(topo::Distance::cache);
    memory.levels[cache_level] = {
        .latency_ns = 30, .per_byte_ns = 0.026, .contended_per_byte_ns = 0.0065};
    memory.caches = with_undivided_l3({.capacity_bytes = 32 << 10,
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
                                       .streaming_per_byte_ns = 0.07});
    memory.reduce_fixed_ns = 5;
    // A system call takes twice as long as on the default's processor, and the kernel copies by an
    // instruction (rep movsb) that is slow where source and target are aligned differently.
    memory.cma = {.permitted = true,
                  .fixed_ns = 1660,
                  .per_byte_ns = 0.069,
                  .written_per_byte_ns = 0.14,
                  .bytes_min = 4 << 20};
    // Lines that the L2 of the receiver gives up go to the L3 that both share, and only there does
    // the sender find them at full speed: so a ring has twice the size of the L2.
    memory.copies.ring_bytes = 2 << 20;
    memory.copies.oversubscribed_cma_bytes_min = memory.cma.bytes_min;
    memory.wake = {.yield_switch_ns = 1430, .futex_core_ns = 6000, .futex_across_ns = 29000};
    // A byte takes 0.11 ns in messages of some KiB, 0.035 in those of 64 KiB or more: this is
    // between.
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

/// AMD Zen 5 (EPYC, family 26, model 2), by `ucg_tune memory` on two virtual cores (48 KiB L1 and 1
/// MiB L2 each, 32 MiB L3): `cache` was measured while they were in one group of cores, `numa` and
/// beyond while they were not. In a group, a byte of a message takes a quarter of its time on Zen 4
/// and a byte of a copy a third: stores to lines that the other core holds are hardly slower than
/// others. So rings are short. Rings of 2 MiB, as on Zen 4, make collectives one after the other
/// 2-7 % faster (most at 64 KiB), but have a second state, in which messages that go one way only
/// stay for most of a run and take three times as long (bcast of 64 KiB 3.4 us, of 1 MiB 52 us;
/// with rings of 256 KiB 1.1 and 19 us). G is that of messages that are copied in and out at the
/// same time; those of up to 4 KiB take twice as long per byte. The kernel copies as slowly as on
/// Zen 4, and a ring is faster at every length up to 16 MiB (an alltoall of 4 MiB takes 0.54 of the
/// time among two ranks, 0.65 among four on two processors). The part of the L3 that a core may
/// have is as on Zen 4.
/// The time of a byte that is read from a peer, G and the rates of the L3 lie between what the
/// tuner found and what best explains the times of rows of two ranks
/// (perf/measured/amd_zen5/np2.dat), in which both cores copy at the same time.
Profile zen5_profile() {
    Profile profile = zen4_profile();
    MemoryModel& memory = profile.memory;
    const auto cache_level = static_cast<std::size_t>(topo::Distance::cache);
    memory.levels[cache_level] = {
        .latency_ns = 26, .per_byte_ns = 0.0212, .contended_per_byte_ns = 0.0053};
    memory.caches = with_undivided_l3({.capacity_bytes = 48 << 10,
                                       .copy_per_byte_ns = 0.0061,
                                       .reduce_operand_per_byte_ns = 0.0032,
                                       .reduce_target_per_byte_ns = 0,
                                       .overwrite_per_byte_ns = 0.0073,
                                       .streaming_per_byte_ns = 0.0122},
                                      {.capacity_bytes = 1 << 20,
                                       .copy_per_byte_ns = 0.0075,
                                       .reduce_operand_per_byte_ns = 0.0082,
                                       .reduce_target_per_byte_ns = 0,
                                       .overwrite_per_byte_ns = 0.009,
                                       .streaming_per_byte_ns = 0.023},
                                      {.capacity_bytes = 8 << 20,
                                       .copy_per_byte_ns = 0.023,
                                       .reduce_operand_per_byte_ns = 0.0118,
                                       .reduce_target_per_byte_ns = 0.0058,
                                       .overwrite_per_byte_ns = 0.033,
                                       .streaming_per_byte_ns = 0.027},
                                      {.capacity_bytes = 0,
                                       .copy_per_byte_ns = 0.053,
                                       .reduce_operand_per_byte_ns = 0.025,
                                       .reduce_target_per_byte_ns = 0.025,
                                       .overwrite_per_byte_ns = 0.053,
                                       .streaming_per_byte_ns = 0.046});
    memory.reduce_fixed_ns = 1.4;
    memory.cma = {.permitted = true,
                  .fixed_ns = 1220,
                  .per_byte_ns = 0.058,
                  .written_per_byte_ns = 0.062,
                  .bytes_min = kHardlyEverCopiedOnce};
    memory.copies.mapped_bytes_min = 4 << 10;
    memory.copies.oversubscribed_cma_bytes_min = kHardlyEverCopiedOnce;
    memory.copies.ring_bytes = 256 << 10;
    memory.wake = {.yield_switch_ns = 1160, .futex_core_ns = 4800, .futex_across_ns = 18000};
    profile.levels[cache_level] = {
        .latency_ns = 53, .overhead_ns = 9.5, .gap_ns = 28, .gap_per_byte_ns = 0.0172};
    for (const topo::Distance distance :
         {topo::Distance::numa, topo::Distance::package, topo::Distance::host}) {
        const auto level = static_cast<std::size_t>(distance);
        profile.levels[level] = {
            .latency_ns = 205, .overhead_ns = 36, .gap_ns = 150, .gap_per_byte_ns = 0.042};
        if (distance != topo::Distance::host) {
            memory.levels[level] = {
                .latency_ns = 173, .per_byte_ns = 0.034, .contended_per_byte_ns = 0.017};
        }
    }
    profile.copy_per_byte_ns = memory.cache(Cache::l2).copy_per_byte_ns;
    profile.reduce_per_byte_ns = 0.0082;
    profile.reduce_fixed_ns = memory.reduce_fixed_ns;
    return profile;
}

std::uint64_t& capacity(Profile& profile, Cache cache) {
    return profile.memory.caches[static_cast<std::size_t>(cache)].capacity_bytes;
}

/// AMD Zen 3 (EPYC, family 25, model 1), by `ucg_tune memory` on two virtual cores (32 KiB L1 and
/// 512 KiB L2 each, 32 MiB L3) of a quiet machine; `cache` was measured while they were in one
/// group of cores. What was not measured, messages and reads between groups among it, is as on
/// Zen 4. As there, a ring has twice the size of the L2; it is faster than the kernel's copies at
/// every length up to 16 MiB. A core alone copies within 16 MiB of the L3 in up to twice the time
/// per byte that it takes just beyond the L2, and within all of it as in memory. So the rates of
/// the L3 are those of working sets of 16 MiB, the rates of its part those of working sets of 4 to
/// 8 MiB. G lies between the tuner's (0.054 to 0.059) and what broadcasts of 64 KiB to 4 MiB take
/// among two ranks (0.042 to 0.045).
Profile zen3_profile() {
    Profile profile = zen4_profile();
    MemoryModel& memory = profile.memory;
    const auto cache_level = static_cast<std::size_t>(topo::Distance::cache);
    memory.levels[cache_level] = {
        .latency_ns = 40, .per_byte_ns = 0.038, .contended_per_byte_ns = 0.0095};
    memory.caches = {{
        {.capacity_bytes = 32 << 10,
         .copy_per_byte_ns = 0.0175,
         .reduce_operand_per_byte_ns = 0.0105,
         .reduce_target_per_byte_ns = 0,
         .overwrite_per_byte_ns = 0.077,
         .streaming_per_byte_ns = 0.033},
        {.capacity_bytes = 512 << 10,
         .copy_per_byte_ns = 0.0226,
         .reduce_operand_per_byte_ns = 0.0113,
         .reduce_target_per_byte_ns = 0.0102,
         .overwrite_per_byte_ns = 0.07,
         .streaming_per_byte_ns = 0.041},
        {.capacity_bytes = 8 << 20,
         .copy_per_byte_ns = 0.036,
         .reduce_operand_per_byte_ns = 0.015,
         .reduce_target_per_byte_ns = 0.018,
         .overwrite_per_byte_ns = 0.05,
         .streaming_per_byte_ns = 0.046},
        {.capacity_bytes = 16 << 20,
         .copy_per_byte_ns = 0.06,
         .reduce_operand_per_byte_ns = 0.0165,
         .reduce_target_per_byte_ns = 0.03,
         .overwrite_per_byte_ns = 0.071,
         .streaming_per_byte_ns = 0.057},
        {.capacity_bytes = 0,
         .copy_per_byte_ns = 0.115,
         .reduce_operand_per_byte_ns = 0.032,
         .reduce_target_per_byte_ns = 0.055,
         .overwrite_per_byte_ns = 0.106,
         .streaming_per_byte_ns = 0.074},
    }};
    memory.reduce_fixed_ns = 2.8;
    memory.cma.fixed_ns = 2100;
    memory.cma.per_byte_ns = 0.088;
    memory.cma.written_per_byte_ns = 0.098;
    memory.cma.bytes_min = kHardlyEverCopiedOnce;
    memory.copies.oversubscribed_cma_bytes_min = kHardlyEverCopiedOnce;
    memory.copies.ring_bytes = 1 << 20;
    memory.far_copies.cma_bytes_min = 64 << 10;
    memory.wake = {.yield_switch_ns = 1900, .futex_core_ns = 10500, .futex_across_ns = 38000};
    profile.levels[cache_level] = {
        .latency_ns = 73, .overhead_ns = 22.7, .gap_ns = 32.7, .gap_per_byte_ns = 0.049};
    profile.copy_per_byte_ns = memory.cache(Cache::l2).copy_per_byte_ns;
    profile.reduce_per_byte_ns = 0.0163;
    profile.reduce_fixed_ns = memory.reduce_fixed_ns;
    return profile;
}

/// Intel Xeon from Sapphire Rapids on: medians of five runs of `ucg_tune memory` on two virtual
/// cores (48 KiB L1 and 2 MiB L2 each) of a quiet machine. Two ranks that exchange messages through
/// rings wait for both copies, so the kernel's copies pay from 8 KiB on (an alltoall takes 0.7 of
/// the time); where ranks share processors they pay from 32 KiB on: of 16 KiB, alltoall takes 0.65
/// of the time through rings, gather, scatter, reduce_scatter and exscan 0.7 to 0.8.
/// A part of the L3, sixteen times the L2, was measured later, and five runs differed by a tenth.
/// These are the default's, too: the whole L3 and memory, whose runs differed by factors of two
/// (other guests use their part); messages and waking, which hardly differed; and the rate of reads
/// of another core's memory. The tuner's rates of the kernel's copies (0.036 ns/B of bytes that
/// their owner has had for some time, 0.095 of others) are of one copy at a time; 0.045 and 0.1
/// predict better what all rows of two and four ranks take.
///
/// Lines go from one core to another faster where they lie in more than some 40 pages that are used
/// in turn. Probably the prefetchers follow about as many pages, and fetch lines of these ahead
/// that the other core is about to write. Between two cores shares of 1 to 8 KiB take 0.4 to 0.8 of
/// the time on flag slots of 64 shares instead of 16. For the same reason a ring has 32 long
/// buffers. With these, what goes one way is copied once only from 48 KiB on: with 8 KiB, as in
/// exchanges, bcast, reduce, scan and exscan of 16 KiB take 1.4 to 1.6 times as long; of 32 KiB
/// reduce takes 1.5 times as long, scan 1.2, bcast 1.1, and scatter 0.9. Messages whose receivers
/// combine them go through rings at all lengths: two ranks reduce 64 to 512 KiB in 0.41 to 0.83 of
/// the time, and scan 512 KiB and 1 MiB in 0.54 to 0.6. Where ranks share processors this pays only
/// in reduce, below 64 KiB. What follows one another through a ring takes 0.057 to 0.06 ns/B.
Profile sapphire_rapids_profile() {
    Profile profile = default_profile();
    MemoryModel& memory = profile.memory;
    memory.caches = {{{.capacity_bytes = 48 << 10,
                       .copy_per_byte_ns = 0.0046,
                       .reduce_operand_per_byte_ns = 0.0039,
                       .reduce_target_per_byte_ns = 0.0016,
                       .overwrite_per_byte_ns = 0.092,
                       .streaming_per_byte_ns = 0.19},
                      {.capacity_bytes = 2 << 20,
                       .copy_per_byte_ns = 0.0202,
                       .reduce_operand_per_byte_ns = 0.0052,
                       .reduce_target_per_byte_ns = 0.017,
                       .overwrite_per_byte_ns = 0.071,
                       .streaming_per_byte_ns = 0.245},
                      {.capacity_bytes = 32 << 20,
                       .copy_per_byte_ns = 0.075,
                       .reduce_operand_per_byte_ns = 0.0376,
                       .reduce_target_per_byte_ns = 0.0378,
                       .overwrite_per_byte_ns = 0.098,
                       .streaming_per_byte_ns = 0.114},
                      memory.cache(Cache::l3),
                      memory.cache(Cache::memory)}};
    memory.reduce_fixed_ns = 1.2;
    memory.cma.fixed_ns = 450;
    memory.cma.per_byte_ns = 0.045;
    memory.cma.written_per_byte_ns = 0.1;
    memory.cma.lookup_per_byte_ns = 0.0112;
    memory.cma.bytes_min = 8 << 10;
    memory.cma.one_way_bytes_min = 48 << 10;
    memory.cma.combined_bytes_min = kHardlyEverCopiedOnce;
    memory.copies.oversubscribed_cma_bytes_min = 32 << 10;
    memory.copies.oversubscribed_combined_bytes_min = 64 << 10;
    memory.copies.mapped_bytes_min = 2 << 10;
    memory.copies.ring_bytes = 512 << 10;
    memory.copies.ring_per_byte_ns = 0.06;
    memory.flag_slots.depth = 64;
    profile.copy_per_byte_ns = memory.cache(Cache::l2).copy_per_byte_ns;
    profile.reduce_per_byte_ns = 0.0136;
    profile.reduce_fixed_ns = memory.reduce_fixed_ns;
    return profile;
}

/// Intel Xeon, Emerald Rapids, by `ucg_tune memory` on sixteen virtual cores (48 KiB L1 and 2 MiB
/// L2 each, 300 MiB L3) of a quiet machine. Lines and bytes take twice as long from one core to
/// another as they did on Sapphire Rapids. The depth of flag slots is that of Sapphire Rapids,
/// whose cores are nearly the same, and the length from which on messages that go one way are
/// copied once is set so that 16 KiB go through rings, since stock libraries that copy 16 KiB in
/// and out were 1.2 to 2.6 times as fast; neither was measured here. What else Sapphire Rapids
/// gains by rings is not taken over, since it depends on what a byte takes from core to core.
Profile emerald_rapids_profile() {
    Profile profile = sapphire_rapids_profile();
    MemoryModel& memory = profile.memory;
    const auto cache_level = static_cast<std::size_t>(topo::Distance::cache);
    memory.levels[cache_level] = {
        .latency_ns = 81, .per_byte_ns = 0.092, .contended_per_byte_ns = 0.0075};
    memory.caches = with_undivided_l3({.capacity_bytes = 48 << 10,
                                       .copy_per_byte_ns = 0.0083,
                                       .reduce_operand_per_byte_ns = 0.0053,
                                       .reduce_target_per_byte_ns = 0,
                                       .overwrite_per_byte_ns = 0.085,
                                       .streaming_per_byte_ns = 0.136},
                                      {.capacity_bytes = 2 << 20,
                                       .copy_per_byte_ns = 0.0262,
                                       .reduce_operand_per_byte_ns = 0.009,
                                       .reduce_target_per_byte_ns = 0.0145,
                                       .overwrite_per_byte_ns = 0.0655,
                                       .streaming_per_byte_ns = 0.14},
                                      {.capacity_bytes = 300 << 20,
                                       .copy_per_byte_ns = 0.132,
                                       .reduce_operand_per_byte_ns = 0.0473,
                                       .reduce_target_per_byte_ns = 0.1036,
                                       .overwrite_per_byte_ns = 0.1316,
                                       .streaming_per_byte_ns = 0.111},
                                      {.capacity_bytes = 0,
                                       .copy_per_byte_ns = 0.132,
                                       .reduce_operand_per_byte_ns = 0.049,
                                       .reduce_target_per_byte_ns = 0.1036,
                                       .overwrite_per_byte_ns = 0.1316,
                                       .streaming_per_byte_ns = 0.111});
    memory.reduce_fixed_ns = 2.1;
    memory.cma.one_way_bytes_min = 24 << 10;
    memory.cma.combined_bytes_min = 0;
    memory.copies = default_profile().memory.copies;
    memory.copies.mapped_bytes_min = 2 << 10;
    memory.cma.fixed_ns = 492;
    memory.cma.per_byte_ns = 0.0435;
    memory.cma.written_per_byte_ns = 0.109;
    memory.wake = {.yield_switch_ns = 764, .futex_core_ns = 3490, .futex_across_ns = 13600};
    profile.levels[cache_level] = {
        .latency_ns = 169, .overhead_ns = 32, .gap_ns = 60, .gap_per_byte_ns = 0.11};
    profile.copy_per_byte_ns = memory.cache(Cache::l2).copy_per_byte_ns;
    profile.reduce_per_byte_ns = 0.0162;
    profile.reduce_fixed_ns = memory.reduce_fixed_ns;
    return profile;
}

/// Intel Xeon before Sapphire Rapids, by Intel's Optimization Reference Manual (248966): Skylake to
/// Cooper Lake have 32 KiB of L1, 1 MiB of L2 and 1.375 MiB of L3 per core, Ice Lake 48 KiB,
/// 1.25 MiB and 1.5 MiB. Of the L3, 28 and 40 cores have 38.5 and 60 MiB. None was measured: their
/// times are the default's, which are those of a later processor.
Profile skylake_profile() {
    Profile profile = default_profile();
    capacity(profile, Cache::l1) = 32 << 10;
    capacity(profile, Cache::l2) = 1 << 20;
    capacity(profile, Cache::l3_part) = capacity(profile, Cache::l3) = 38 << 20;
    return profile;
}

Profile ice_lake_profile() {
    Profile profile = default_profile();
    capacity(profile, Cache::l2) = 1280 << 10;
    capacity(profile, Cache::l3_part) = capacity(profile, Cache::l3) = 60 << 20;
    return profile;
}

/// The costs of some models of one family of processors.
struct Row {
    std::string_view vendor;
    std::uint32_t family;
    std::uint32_t model_first;
    std::uint32_t model_last;
    std::string_view name;
    Profile (*profile)();
};

constexpr std::uint32_t kModelMax = 255;

/// The first row that fits counts. Models are named as in the Linux kernel's
/// arch/x86/kernel/cpu/amd.c and arch/x86/include/asm/intel-family.h.
constexpr std::array kRows = {
    Row{"AuthenticAMD", 23, 0, kModelMax, "AMD Zen 1 and 2, at times of Zen 3", zen3_profile},
    Row{"AuthenticAMD", 25, 0, 0x0f, "AMD Zen 3", zen3_profile},
    Row{"AuthenticAMD", 25, 0x20, 0x5f, "AMD Zen 3", zen3_profile},
    Row{"AuthenticAMD", 25, 0, kModelMax, "AMD Zen 4", zen4_profile},
    Row{"AuthenticAMD", 26, 0, kModelMax, "AMD Zen 5", zen5_profile},
    Row{"GenuineIntel", 6, 85, 85, "Intel Xeon, Skylake to Cooper Lake, at times of a later one",
        skylake_profile},
    Row{"GenuineIntel", 6, 106, 108, "Intel Xeon, Ice Lake, at times of a later one",
        ice_lake_profile},
    // Sapphire, Emerald and Granite Rapids. Model 167 is a processor for desktops with other caches
    // (Rocket Lake), but virtual machines on one of these processors show it.
    Row{"GenuineIntel", 6, 143, 143, "Intel Xeon, Sapphire Rapids", sapphire_rapids_profile},
    Row{"GenuineIntel", 6, 207, 207, "Intel Xeon, Emerald Rapids", emerald_rapids_profile},
    Row{"GenuineIntel", 6, 173, 174, "Intel Xeon, at times of Emerald Rapids",
        emerald_rapids_profile},
    Row{"GenuineIntel", 6, 167, 167, "Intel, model 167, at times of Sapphire Rapids",
        sapphire_rapids_profile},
};

std::array<Profile, kRows.size()> all_profiles() {
    std::array<Profile, kRows.size()> profiles;
    std::transform(kRows.begin(), kRows.end(), profiles.begin(),
                   [](const Row& row) { return row.profile(); });
    return profiles;
}

} // namespace

BuiltinCosts builtin_costs(const topo::Processor& processor) {
    static const std::array<Profile, kRows.size()> profiles = all_profiles();
    const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& candidate) {
        return candidate.vendor == processor.vendor && candidate.family == processor.family &&
               processor.model >= candidate.model_first && processor.model <= candidate.model_last;
    });
    if (row == kRows.end()) {
        return {"Intel Xeon, taken for any other", default_profile()};
    }
    return {row->name, profiles[static_cast<std::size_t>(row - kRows.begin())]};
}

} // namespace ucg::cost
