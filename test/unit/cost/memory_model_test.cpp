#include "test/support/catch.hpp"
#include "ucg_coll/cost/cost.hpp"

using namespace ucg;
using namespace ucg::cost;

TEST_CASE("memory: reading alone and in company", "[cost][memory]") {
    const MemoryLevel level = {
        .latency_ns = 40, .per_byte_ns = 0.5, .contended_per_byte_ns = 0.125};
    CHECK(read_ns(level, 0) == 40);
    CHECK(read_ns(level, 64) == 72);
    CHECK(contended_read_ns(level, 0, 64) == 0);
    CHECK(contended_read_ns(level, 1, 64) == 72);
    CHECK(contended_read_ns(level, 4, 64) == 72); // The link is just fast enough for four.
    CHECK(contended_read_ns(level, 16, 64) == 40 + 2.0 * 64);
}

TEST_CASE("memory: rates are those of the caches that hold all that is touched", "[cost][memory]") {
    MemoryModel model;
    model.reduce_fixed_ns = 5;
    for (std::size_t i = 0; i < kCacheCount; ++i) {
        const double rate = static_cast<double>(std::size_t{1} << i);
        model.caches[i] = {.capacity_bytes = std::uint64_t{1000} << (2 * i),
                           .copy_per_byte_ns = rate,
                           .reduce_operand_per_byte_ns = rate,
                           .reduce_target_per_byte_ns = 10 * rate,
                           .overwrite_per_byte_ns = 3 * rate,
                           .streaming_per_byte_ns = 2 * rate};
    }
    CHECK(model.rates_for(0) == model.cache(Cache::l1));
    CHECK(model.rates_for(750) == model.cache(Cache::l1));
    CHECK(model.rates_for(1600) == model.cache(Cache::l2));
    CHECK(model.rates_for(3000) == model.cache(Cache::l2));
    CHECK(model.rates_for(12000) == model.cache(Cache::l3_part));
    CHECK(model.rates_for(48000) == model.cache(Cache::l3));
    CHECK(model.rates_for(102400) == model.cache(Cache::memory));
    CHECK(model.rates_for(1ULL << 50) == model.cache(Cache::memory));
    CHECK(model.oversubscribed_rates_for(3000) == model.cache(Cache::l2));
    CHECK(model.oversubscribed_rates_for(6400) == model.cache(Cache::l3));
    CHECK(model.oversubscribed_rates_for(102400) == model.cache(Cache::memory));
    CHECK(copy_ns(model, 375) == 375);
    CHECK(copy_ns(model, 800) == 2 * 800); // The source and the target both count.
    CHECK(overwrite_ns(model, 750) == 3 * 750);
    CHECK(model.rates_for(1600).streaming_per_byte_ns == 4);
    // The pass reads four operands and writes the target.
    CHECK(reduce_ns(model, 4, 150) == 5 + 150 * (4 * 1 + 10));
    CHECK(reduce_ns(model, 7, 200) == 5 + 200 * (7 * 2 + 20));
    CHECK(reduce_ns(model, 2, 0) == 5);
    // In between, a byte more never costs less, and each rate is between those of two caches.
    CacheRates before = model.rates_for(750);
    for (std::uint64_t bytes = 751; bytes <= 1600; ++bytes) {
        const CacheRates rates = model.rates_for(bytes);
        CHECK(rates.copy_per_byte_ns > before.copy_per_byte_ns);
        CHECK(rates.copy_per_byte_ns <= 2);
        CHECK(rates.reduce_target_per_byte_ns == Approx(10 * rates.copy_per_byte_ns));
        CHECK(rates.overwrite_per_byte_ns == Approx(3 * rates.copy_per_byte_ns));
        before = rates;
    }
    CHECK(model.rates_for(1175).copy_per_byte_ns == Approx(1.5)); // The middle.
}

TEST_CASE("memory: the kernel's copy", "[cost][memory]") {
    CHECK(cma_ns({.fixed_ns = 1900, .per_byte_ns = 0.125}, 0) == 1900);
    CHECK(cma_ns({.fixed_ns = 1900, .per_byte_ns = 0.125}, 800) == 2000);
}

TEST_CASE("memory: by default, farther and larger is dearer", "[cost][memory]") {
    const MemoryModel& model = default_memory_model();
    for (std::size_t i = 1; i < kMemoryLevelCount; ++i) {
        const MemoryLevel& nearer = model.levels[i - 1];
        const MemoryLevel& farther = model.levels[i];
        CAPTURE(topo::name(static_cast<topo::Distance>(i)));
        CHECK(nearer.latency_ns <= farther.latency_ns);
        CHECK(nearer.per_byte_ns <= farther.per_byte_ns);
    }
    for (const MemoryLevel& level : model.levels) {
        CHECK(level.contended_per_byte_ns > 0);
        // A link serves at least one reader at full speed.
        CHECK(level.contended_per_byte_ns <= level.per_byte_ns);
        // The built-in figures are not measured on this machine.
        CHECK_FALSE(level.measured);
    }
    for (std::size_t i = 1; i < kCacheCount; ++i) {
        const CacheRates& inner = model.caches[i - 1];
        const CacheRates& outer = model.caches[i];
        CAPTURE(name(static_cast<Cache>(i)));
        // An L3 that is shared with others may be no better than memory.
        if (static_cast<Cache>(i) != Cache::memory) {
            CHECK(inner.copy_per_byte_ns <= outer.copy_per_byte_ns);
            CHECK(inner.reduce_operand_per_byte_ns <= outer.reduce_operand_per_byte_ns);
        }
        // It was not measured up to which size this L3 is faster, so its capacity may be no larger
        // than the L2's.
        CHECK((static_cast<Cache>(i) == Cache::memory || static_cast<Cache>(i) == Cache::l3 ||
               inner.capacity_bytes < outer.capacity_bytes));
    }
    // A reduction of two operands reads and writes as much as a copy, plus one operand.
    CHECK(reduce_ns(model, 2, 64 << 10) > copy_ns(model, 64 << 10) / 2);
    CHECK(model.cma.permitted);
    CHECK(cma_ns(model.cma, 8) > 500); // It is a system call.
    CHECK(model.wake.yield_switch_ns < model.wake.futex_core_ns);
    CHECK(model.wake.futex_core_ns < model.wake.futex_across_ns);
}
