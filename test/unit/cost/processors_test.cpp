#include <algorithm>
#include <cstdint>
#include <set>

#include "test/support/catch.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::cost {
namespace {

TEST_CASE("cost: processors that were measured have costs of their own", "[cost]") {
    const BuiltinCosts zen4 = builtin_costs({"AuthenticAMD", 25, 17});
    CHECK(zen4.name == "AMD Zen 4");
    // The buffers of a ring must not fit into the cache that its receiver has for itself.
    CHECK(zen4.profile.memory.copies.ring_bytes >
          zen4.profile.memory.cache(Cache::l2).capacity_bytes);
    CHECK(&builtin_costs({"AuthenticAMD", 25, 160}).profile == &zen4.profile);
    const BuiltinCosts zen5 = builtin_costs({"AuthenticAMD", 26, 2});
    CHECK(zen5.name == "AMD Zen 5");
    CHECK(builtin_costs({"AuthenticAMD", 26, 17}).profile == zen5.profile);
    CHECK(message_ns(zen5.profile.level(topo::Distance::cache), 1 << 20) <
          message_ns(zen4.profile.level(topo::Distance::cache), 1 << 20));
}

TEST_CASE("cost: the kernel copies sooner on a Xeon from Sapphire Rapids on", "[cost]") {
    const BuiltinCosts xeon = builtin_costs({"GenuineIntel", 6, 143});
    CHECK(xeon.name == "Intel Xeon, Sapphire Rapids");
    CHECK(xeon.profile.memory.cma.bytes_min < default_profile().memory.cma.bytes_min);
    CHECK(xeon.profile.memory.flag_slots.depth > default_profile().memory.flag_slots.depth);
    // Virtual machines report some of these processors under another number.
    const BuiltinCosts perhaps = builtin_costs({"GenuineIntel", 6, 167});
    CHECK(perhaps.profile == xeon.profile);
    CHECK(perhaps.name != xeon.name);
    const BuiltinCosts emerald = builtin_costs({"GenuineIntel", 6, 207});
    CHECK(emerald.name == "Intel Xeon, Emerald Rapids");
    CHECK(builtin_costs({"GenuineIntel", 6, 173}).profile == emerald.profile);
    CHECK(emerald.profile.memory.level(topo::Distance::cache).latency_ns >
          xeon.profile.memory.level(topo::Distance::cache).latency_ns);
    // Bytes take longer from core to core there: what rings gained was not measured.
    CHECK(xeon.profile.memory.copies.ring_per_byte_ns > 0);
    CHECK(emerald.profile.memory.copies.ring_per_byte_ns == 0);
    CHECK(emerald.profile.memory.single_copy_bytes_min(MessageUse::combined, 1) ==
          emerald.profile.memory.single_copy_bytes_min(MessageUse::one_way, 1));
    CHECK(emerald.profile.memory.single_copy_bytes_min(MessageUse::combined, 2) ==
          emerald.profile.memory.single_copy_bytes_min(MessageUse::one_way, 2));
}

TEST_CASE("cost: of others the caches are known", "[cost]") {
    const auto l2_of = [](const topo::Processor& processor) {
        return builtin_costs(processor).profile.memory.cache(Cache::l2).capacity_bytes;
    };
    CHECK(l2_of({"AuthenticAMD", 23, 49}) == 512 << 10);
    CHECK(l2_of({"AuthenticAMD", 25, 1}) == 512 << 10);
    CHECK(l2_of({"AuthenticAMD", 25, 33}) == 512 << 10);
    CHECK(l2_of({"GenuineIntel", 6, 85}) == 1 << 20);
    CHECK(l2_of({"GenuineIntel", 6, 106}) == 1280 << 10);
    CHECK(builtin_costs({"AuthenticAMD", 25, 1}).profile.memory.copies.ring_bytes >
          l2_of({"AuthenticAMD", 25, 1}));
}

TEST_CASE("cost: the default is taken for those that the table lacks", "[cost]") {
    for (const topo::Processor& processor :
         {topo::Processor{}, topo::Processor{"GenuineIntel", 6, 45},
          topo::Processor{"AuthenticAMD", 21, 2}, topo::Processor{"", 25, 17}}) {
        CHECK(builtin_costs(processor).profile == default_profile());
    }
}

TEST_CASE("cost: built-in costs are equal when they are written and read", "[cost]") {
    std::set<std::uint64_t> hashes = {hash_of(default_profile())};
    for (const topo::Processor& processor :
         {topo::Processor{"AuthenticAMD", 23, 49}, topo::Processor{"AuthenticAMD", 25, 17},
          topo::Processor{"AuthenticAMD", 26, 2}, topo::Processor{"GenuineIntel", 6, 85},
          topo::Processor{"GenuineIntel", 6, 106}, topo::Processor{"GenuineIntel", 6, 143},
          topo::Processor{"GenuineIntel", 6, 207}}) {
        const Profile& profile = builtin_costs(processor).profile;
        CHECK(parse_toml(to_toml(profile)).value() == profile);
        CHECK(hashes.insert(hash_of(profile)).second);
        // Capacities grow from one cache to the next.
        CHECK(std::is_sorted(profile.memory.caches.begin(), profile.memory.caches.end() - 1,
                             [](const CacheRates& a, const CacheRates& b) {
                                 return a.capacity_bytes < b.capacity_bytes;
                             }));
    }
}

TEST_CASE("cost: what decides how messages are copied depends on shared processors", "[cost]") {
    const MemoryModel& memory = builtin_costs({"AuthenticAMD", 25, 17}).profile.memory;
    CHECK(near_read_ns(memory) > memory.level(topo::Distance::cache).latency_ns);
    CHECK(near_read_ns(memory) < 2 * memory.level(topo::Distance::numa).latency_ns);
    CHECK(memory.ring_bytes(1) == memory.copies.ring_bytes);
    CHECK(memory.ring_bytes(2) == memory.copies.oversubscribed_ring_bytes);
}

TEST_CASE("cost: the use of a message decides from which length on it is copied once", "[cost]") {
    MemoryModel memory;
    memory.cma.bytes_min = 8 << 10;
    memory.copies.oversubscribed_cma_bytes_min = 16 << 10;
    const auto all_are = [&](double ranks_per_cpu, std::uint64_t bytes) {
        return std::ranges::all_of(kMessageUses, [&](MessageUse use) {
            return memory.single_copy_bytes_min(use, ranks_per_cpu) == bytes;
        });
    };
    CHECK(all_are(0.5, 8 << 10));
    CHECK(all_are(1, 8 << 10));
    CHECK(all_are(1.5, 16 << 10));

    memory.cma.one_way_bytes_min = 48 << 10;
    memory.copies.oversubscribed_combined_bytes_min = 64 << 10;
    CHECK(memory.single_copy_bytes_min(MessageUse::exchanged, 1) == 8 << 10);
    CHECK(memory.single_copy_bytes_min(MessageUse::one_way, 1) == 48 << 10);
    CHECK(memory.single_copy_bytes_min(MessageUse::combined, 1) == 48 << 10);
    CHECK(memory.single_copy_bytes_min(MessageUse::one_way, 2) == 16 << 10);
    CHECK(memory.single_copy_bytes_min(MessageUse::combined, 2) == 64 << 10);
    memory.cma.combined_bytes_min = 1 << 20;
    CHECK(memory.single_copy_bytes_min(MessageUse::combined, 1) == 1 << 20);

    memory.set_single_copy_bytes_min(4 << 10);
    CHECK(all_are(1, 4 << 10));
    CHECK(all_are(2, 4 << 10));
}

TEST_CASE("cost: tables that a file lacks are as it is built in for the processor", "[cost]") {
    const Profile& zen = builtin_costs({"AuthenticAMD", 25, 17}).profile;
    CHECK(parse_toml("version = 1", zen).value() == zen);
}

} // namespace
} // namespace ucg::cost
