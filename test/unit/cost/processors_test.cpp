#include "test/support/catch.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::cost {
namespace {

TEST_CASE("cost: processors that were measured have costs of their own", "[cost]") {
    const BuiltinCosts zen = builtin_costs({"AuthenticAMD", 25, 17});
    CHECK(zen.name == "AMD Zen");
    // The buffers of a ring must not fit the cache that its receiver has for itself.
    const MemoryModel& memory = zen.profile.memory;
    CHECK(memory.copies.ring_bytes > memory.cache(Cache::l2).capacity_bytes);
    CHECK(parse_toml(to_toml(zen.profile)).value() == zen.profile);
    CHECK(hash_of(zen.profile) != hash_of(default_profile()));
    CHECK(builtin_costs({"AuthenticAMD", 25, 1}).profile == zen.profile);
    CHECK(builtin_costs({"AuthenticAMD", 26, 2}).profile == zen.profile);
}

TEST_CASE("cost: others have the default's", "[cost]") {
    for (const topo::Processor& processor :
         {topo::Processor{}, topo::Processor{"GenuineIntel", 6, 143},
          topo::Processor{"AuthenticAMD", 21, 2}, topo::Processor{"", 25, 17}}) {
        CHECK(builtin_costs(processor).profile == default_profile());
    }
}

TEST_CASE("cost: what decides how messages are copied depends on shared processors", "[cost]") {
    const MemoryModel& memory = builtin_costs({"AuthenticAMD", 25, 17}).profile.memory;
    CHECK(memory.single_copy_bytes_min(1) == memory.cma.bytes_min);
    CHECK(memory.single_copy_bytes_min(0.5) == memory.cma.bytes_min);
    CHECK(memory.single_copy_bytes_min(1.5) == memory.copies.crowded_cma_bytes_min);
    CHECK(memory.ring_bytes(1) == memory.copies.ring_bytes);
    CHECK(memory.ring_bytes(2) == memory.copies.crowded_ring_bytes);
}

TEST_CASE("cost: tables that a file lacks are as it is built in for the processor", "[cost]") {
    const Profile& zen = builtin_costs({"AuthenticAMD", 25, 17}).profile;
    CHECK(parse_toml("version = 1", zen).value() == zen);
}

} // namespace
} // namespace ucg::cost
