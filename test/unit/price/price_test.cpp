// What one op costs: messages by distance and length, copies and reductions by cache.
#include <utility>

#include "shm/ring_layout.hpp"
#include "test/support/catch.hpp"
#include "ucg_coll/price/price.hpp"
#include "ucg_coll/transport/shm/shm_transport.hpp"

using namespace ucg;
using price::DistancePrices;
using price::Source;

namespace {

constexpr std::uint64_t kLong = 64 << 10;

const cost::Profile& profile() {
    return cost::default_profile();
}

} // namespace

TEST_CASE("price: a message between hosts, and one of a line, cost what LogGP says", "[price]") {
    for (const auto& [distance, bytes] : {std::pair{topo::Distance::network, 1000},
                                          {topo::Distance::core, 8},
                                          {topo::Distance::core, 64}}) {
        const price::MessagePrice price =
            DistancePrices(profile(), distance).price(bytes, Source::settled);
        CHECK(price.terms.total_ns() == Approx(cost::message_ns(profile().level(distance), bytes)));
        CHECK(price.copy_ns == 0);
    }
}

TEST_CASE("price: bytes in lines of their own come after two lines and a first piece", "[price]") {
    const topo::Distance distance = topo::Distance::core;
    const DistancePrices messages(profile(), distance);
    const cost::MemoryLevel& level = profile().memory.level(distance);
    const shm::RingShape shape = {.depth = 64, .slot_bytes = 16 << 10, .buffers = 64};
    for (const std::uint64_t bytes : {65, 1000, 4096, 5000, 9000, 20000, 100000}) {
        // The two copies of a message overlap, so the shorter one costs time for the first piece
        // alone.
        const auto first = static_cast<double>(shm::fragment_bytes(shape, 0, bytes, 0));
        const double more_ns = messages.message_ns(bytes) -
                               cost::message_ns(profile().level(distance), bytes) -
                               2 * level.latency_ns;
        CHECK(more_ns / level.per_byte_ns == Approx(first).epsilon(0.02));
    }
    // Where ranks share a processor in turns, its cache has the lines already.
    CHECK(DistancePrices(profile(), distance, {.ranks_per_cpu = 2}).message_ns(5000) ==
          Approx(cost::message_ns(profile().level(distance), 5000) + price::turn_ns(profile(), 2)));
}

TEST_CASE("price: on a host long messages are copied once after an RTS", "[price]") {
    const DistancePrices messages(profile(), topo::Distance::host);
    const price::MessagePrice price = messages.price(kLong, Source::settled);
    CHECK(price.terms.total_ns() ==
          Approx(cost::message_ns(profile().level(topo::Distance::host), 0)));
    CHECK(price.copy_ns > 0);
    CHECK(price.by_both);
    CHECK(messages.price(kLong, Source::fresh).copy_ns >= price.copy_ns);
    CHECK_FALSE(messages.copied_once(profile().memory.cma.bytes_min - 1));
    CHECK_FALSE(DistancePrices(profile(), topo::Distance::network).copied_once(kLong));
}

TEST_CASE("price: messages are cut as the transport cuts them", "[price]") {
    CHECK(price::kWholeMessageBytes == shm::kWholeBytes);
    CHECK(price::kPieceBytesMax == transport::ShmOptions{}.slot_bytes_max);
}

TEST_CASE("price: buffers that peers have mapped need no system call", "[price]") {
    const DistancePrices kernel(profile(), topo::Distance::host);
    const DistancePrices mapped(profile(), topo::Distance::host, {.buffers_mapped = true});
    for (const Source source : {Source::settled, Source::fresh}) {
        CHECK(mapped.single_copy_ns(kLong, source) <=
              kernel.single_copy_ns(kLong, source) - profile().memory.cma.fixed_ns);
    }
    CHECK(mapped.copied_once(profile().memory.copies.mapped_bytes_min));
    // The sender would wait for a turn, which takes longer than the copy that it saves.
    const DistancePrices oversubscribed(profile(), topo::Distance::host,
                                        {.buffers_mapped = true, .ranks_per_cpu = 2});
    const std::uint64_t bytes_min = profile().memory.mapped_bytes_min(2);
    CHECK(bytes_min > profile().memory.copies.mapped_bytes_min);
    CHECK(oversubscribed.copied_once(bytes_min));
    CHECK(cost::overwrite_ns(profile().memory, bytes_min) >= profile().memory.wake.yield_switch_ns);
}

TEST_CASE("price: what goes one way is copied once from a length of its own on", "[price]") {
    cost::Profile costs = profile();
    costs.memory.cma.bytes_min = 8 << 10;
    costs.memory.cma.one_way_bytes_min = 48 << 10;
    const auto between = [&](const price::Surroundings& around) {
        return DistancePrices(costs, topo::Distance::cache, around);
    };
    CHECK(between({}).copied_once(16 << 10));
    CHECK_FALSE(between({.use = MessageUse::one_way}).copied_once(16 << 10));
    CHECK(between({.use = MessageUse::one_way}).copied_once(48 << 10));
    costs.memory.cma.one_way_bytes_min = 0;
    CHECK(between({.use = MessageUse::one_way}).copied_once(8 << 10));
}

TEST_CASE("price: what a reader still has it copies at the rate of its cache", "[price]") {
    const DistancePrices pair(profile(), topo::Distance::host,
                              {.buffers_mapped = true, .one_pair = true});
    const std::uint64_t bytes = profile().memory.cache(cost::Cache::l2).capacity_bytes / 4;
    CHECK(pair.single_copy_ns(bytes, Source::settled) == Approx(price::copy_ns(profile(), bytes)));
    CHECK(pair.single_copy_ns(bytes, Source::fresh) > pair.single_copy_ns(bytes, Source::settled));
}

TEST_CASE("price: a part of long buffers is copied as slowly as these are", "[price]") {
    const DistancePrices parts =
        DistancePrices(profile(), topo::Distance::host, {.buffers_mapped = true})
            .with_working_set(std::uint64_t{1} << 40);
    const cost::MemoryModel& memory = profile().memory;
    const double read_per_byte_ns =
        price::own_buffers(memory.level(topo::Distance::host), memory, false).per_byte_ns;
    CHECK(parts.single_copy_ns(4096, Source::settled) ==
          Approx(4096 *
                 std::max(memory.cache(cost::Cache::memory).copy_per_byte_ns, read_per_byte_ns)));
    CHECK(parts.working_set_bytes(4096) == std::uint64_t{1} << 40);
    CHECK(parts.price(64 << 10, Source::settled).copy_ns ==
          Approx(parts.single_copy_ns(64 << 10, Source::settled)));
}

TEST_CASE("price: ranks that copy out of one memory share the way there", "[price]") {
    const DistancePrices mapped(profile(), topo::Distance::package, {.buffers_mapped = true});
    const double per_byte_ns =
        profile().memory.level(topo::Distance::package).contended_per_byte_ns;
    CHECK(mapped.contended_ns(1000, 7) == Approx(7000 * per_byte_ns));
    // With the kernel's copies the readers wait for one another.
    const DistancePrices kernel(profile(), topo::Distance::cache);
    const cost::CmaModel& cma = profile().memory.cma;
    CHECK(kernel.contended_ns(1000, 7) == Approx(7000 * cma.written_per_byte_ns));
    // At looking up pages alone, if the copies are long.
    const std::uint64_t bytes = cost::kSerialLookupBytesMin;
    const double cache_per_byte_ns =
        profile().memory.level(topo::Distance::cache).contended_per_byte_ns;
    CHECK(kernel.contended_ns(bytes, 7) ==
          Approx(7.0 * static_cast<double>(bytes) *
                 std::max(cma.lookup_per_byte_ns, cache_per_byte_ns)));
    CHECK(DistancePrices(profile(), topo::Distance::network).contended_ns(1000, 7) == 0);
}

TEST_CASE("price: what one and the same rank reads again is copied fastest", "[price]") {
    const DistancePrices pair(profile(), topo::Distance::cache, {.one_pair = true});
    const DistancePrices several(profile(), topo::Distance::cache);
    const double pair_ns = pair.single_copy_ns(kLong, Source::settled);
    CHECK(pair_ns < several.single_copy_ns(kLong, Source::settled));
    const DistancePrices in_turn(profile(), topo::Distance::cache, {.ranks_per_cpu = 2});
    CHECK(in_turn.single_copy_ns(kLong, Source::settled) == pair_ns);
    CHECK(several.single_copy_ns(kLong, Source::settled) <=
          several.single_copy_ns(kLong, Source::fresh));
    CHECK(pair.single_copy_ns(kLong, Source::fresh) ==
          several.single_copy_ns(kLong, Source::fresh));
}

TEST_CASE("price: the FIN of a single copy takes no turn of a processor", "[price]") {
    const DistancePrices alone(profile(), topo::Distance::cache);
    const DistancePrices in_turn(profile(), topo::Distance::cache, {.ranks_per_cpu = 2});
    const double turn_ns = price::turn_ns(profile(), 2);
    CHECK(in_turn.rts_fin_ns() == Approx(alone.rts_fin_ns() + turn_ns));
    CHECK(in_turn.in_exchanges().rts_fin_ns() ==
          Approx(alone.in_exchanges().rts_fin_ns() + 2 * turn_ns));
}

TEST_CASE("price: copies out of one rank's memory wait less where all ranks take turns",
          "[price]") {
    const auto contended_ns = [](double ranks_per_cpu) {
        return DistancePrices(profile(), topo::Distance::cache, {.ranks_per_cpu = ranks_per_cpu})
            .contended_ns(cost::kSerialLookupBytesMin - 1, 2);
    };
    CHECK(contended_ns(1.5) == contended_ns(1));
    CHECK(contended_ns(2) < contended_ns(1));
}

TEST_CASE("price: rings that the cache of a processor does not hold are slower", "[price]") {
    cost::Profile rings = profile();
    const double level_ns = rings.level(topo::Distance::cache).gap_per_byte_ns;
    rings.memory.copies.ring_per_byte_ns = level_ns / 2;
    rings.memory.copies.oversubscribed_ring_bytes =
        rings.memory.cache(cost::Cache::l2).capacity_bytes / 8;
    const auto per_byte_ns = [&](double ranks_per_cpu, Rank ranks) {
        return DistancePrices(rings, topo::Distance::cache,
                              {.ranks_per_cpu = ranks_per_cpu, .ranks_on_host = ranks})
            .model()
            .gap_per_byte_ns;
    };
    CHECK(per_byte_ns(1, 64) == level_ns / 2);
    CHECK(per_byte_ns(2, 4) == level_ns / 2); // Six rings of an eighth.
    CHECK(per_byte_ns(2, 8) == level_ns);
    CHECK(per_byte_ns(4, 8) == level_ns);
}

TEST_CASE("price: ranks that share a link or a processor wait for one another", "[price]") {
    const DistancePrices alone(profile(), topo::Distance::network);
    const DistancePrices shared(profile(), topo::Distance::network, {.link_sharers = 4});
    CHECK(shared.model().gap_per_byte_ns == 4 * alone.model().gap_per_byte_ns);
    CHECK(shared.model().latency_ns == alone.model().latency_ns);

    const DistancePrices oversubscribed(profile(), topo::Distance::network, {.ranks_per_cpu = 2});
    const double turn_ns = price::turn_ns(profile(), 2);
    CHECK(turn_ns > 0);
    CHECK(price::turn_ns(profile(), 1) == 0);
    CHECK(oversubscribed.model().latency_ns == Approx(alone.model().latency_ns + turn_ns));
    CHECK(oversubscribed.in_exchanges().model().latency_ns ==
          Approx(alone.model().latency_ns + 2 * turn_ns));
    CHECK_FALSE(oversubscribed.copied_by_both(kLong));
}

TEST_CASE("price: copies and reductions cost more where caches do not hold the bytes", "[price]") {
    const auto per_byte_ns = [](std::uint64_t bytes) {
        return price::copy_ns(profile(), bytes) / static_cast<double>(bytes);
    };
    CHECK(per_byte_ns(1 << 10) == Approx(profile().copy_per_byte_ns));
    constexpr std::uint64_t kBeyondCaches = std::uint64_t{1} << 40;
    CHECK(per_byte_ns(kBeyondCaches) ==
          Approx(profile().memory.cache(cost::Cache::memory).copy_per_byte_ns));
    CHECK(price::reduce_ns(profile(), 2, 0) == profile().reduce_fixed_ns);
    CHECK(price::reduce_ns(profile(), 3, 4096) > price::reduce_ns(profile(), 2, 4096));
}

TEST_CASE("price: segments of long vectors pass through scratch that a cache holds", "[price]") {
    constexpr std::uint64_t kSegment = 16 << 10;
    const cost::CacheRates far = profile().memory.cache(cost::Cache::memory);
    const cost::CacheRates near = profile().memory.rates_for(2 * kSegment);
    const double whole_ns = price::reduce_ns(profile(), 3, kSegment, far);
    CHECK(price::reduce_segment_ns(profile(), 3, 0, kSegment, far) == whole_ns);
    const double saved_ns =
        kSegment * (far.reduce_operand_per_byte_ns - near.reduce_operand_per_byte_ns);
    CHECK(price::reduce_segment_ns(profile(), 3, 1, kSegment, far) == Approx(whole_ns - saved_ns));
    CHECK(price::reduce_segment_ns(profile(), 3, 2, kSegment, far) ==
          Approx(whole_ns - 2 * saved_ns));
    // A segment that no cache holds saves nothing.
    constexpr std::uint64_t kBeyondCaches = std::uint64_t{1} << 40;
    CHECK(price::reduce_segment_ns(profile(), 3, 2, kBeyondCaches, far) ==
          price::reduce_ns(profile(), 3, kBeyondCaches, far));
}

TEST_CASE("price: what is combined where it arrives is read once", "[price]") {
    constexpr std::uint64_t kBytes = 4096;
    const cost::CacheRates& there = profile().memory.cache(cost::Cache::l2);
    const DistancePrices messages(profile(), topo::Distance::cache);
    CHECK(messages.combined_on_arrival(kBytes));
    // It arrives within its line.
    CHECK_FALSE(messages.combined_on_arrival(kCacheLine));
    // The kernel copies it.
    CHECK_FALSE(messages.combined_on_arrival(profile().memory.cma.bytes_min));
    CHECK(messages.copied_twice_bytes_max() == profile().memory.cma.bytes_min - 1);
    CHECK_FALSE(DistancePrices(profile(), topo::Distance::network).combined_on_arrival(kBytes));
    CHECK(DistancePrices(profile(), topo::Distance::cache, {.buffers_mapped = true})
              .combined_on_arrival(kLong));

    const double adds_ns = messages.combining_ns(kBytes, there);
    CHECK(adds_ns >= profile().reduce_fixed_ns);
    CHECK(adds_ns < price::reduce_ns(profile(), 2, kBytes, there));
    // An exchange also copies the rank's own message, and that is counted once.
    const DistancePrices both = messages.in_exchanges();
    CHECK(both.model().gap_per_byte_ns >= messages.model().gap_per_byte_ns);
    CHECK(both.price(kBytes, Source::settled).terms.total_ns() + both.combining_ns(kBytes, there) >
          messages.price(kBytes, Source::settled).terms.total_ns() + adds_ns);
}
