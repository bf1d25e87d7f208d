// From which length on the messages of a host go by a single copy: what processes measured, and
// what ranks agree on.
#include <cstdint>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/capi/single_copies.hpp"
#include "ucg_coll/capi/wireup/profile_agreement.hpp"

namespace ucg::capi {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

cost::MemoryModel memory_of(std::uint64_t near, std::uint64_t far, std::uint64_t oversubscribed) {
    cost::MemoryModel memory;
    memory.cma.bytes_min = near;
    memory.far_copies.cma_bytes_min = far;
    memory.copies.oversubscribed_cma_bytes_min = oversubscribed;
    return memory;
}

Hello hello_of(std::uint64_t by_setting, std::uint64_t seen) {
    Hello hello;
    hello.cma_bytes_min = by_setting;
    hello.seen_cma_bytes_min = seen;
    return hello;
}

TEST_CASE("a kernel that was seen to copy more slowly does so between far cores, too") {
    cost::MemoryModel memory = memory_of(16 << 10, 8 << 10, 32 << 10);
    take_seen(memory, 1 << 20);
    CHECK(memory == memory_of(1 << 20, 1 << 20, 32 << 10));
}

TEST_CASE("a kernel that was seen to copy as fast or faster leaves far cores as they are") {
    const std::uint64_t seen = GENERATE(4 << 10, 16 << 10);
    cost::MemoryModel memory = memory_of(16 << 10, 64 << 10, 32 << 10);
    take_seen(memory, seen);
    CHECK(memory == memory_of(seen, 64 << 10, 32 << 10));
}

TEST_CASE("ranks take the longest length that one of them has seen") {
    cost::MemoryModel memory = memory_of(16 << 10, 64 << 10, 32 << 10);
    agree_on_copies({hello_of(0, 8 << 10), hello_of(0, 256 << 10), hello_of(0, 16 << 10)}, memory);
    CHECK(memory == memory_of(256 << 10, 256 << 10, 32 << 10));
    CHECK(memory.cma.permitted);
}

TEST_CASE("where nobody looked the costs decide") {
    const cost::MemoryModel before = memory_of(16 << 10, 64 << 10, 32 << 10);
    cost::MemoryModel memory = before;
    agree_on_copies({hello_of(0, 0), hello_of(0, 0)}, memory);
    CHECK(memory == before);
}

TEST_CASE("a setting decides for all ranks, wherever their cores are") {
    cost::MemoryModel memory = memory_of(16 << 10, 64 << 10, 32 << 10);
    agree_on_copies({hello_of(0, 1 << 20), hello_of(4 << 10, 1 << 20)}, memory);
    cost::MemoryModel expected = memory_of(4 << 10, 4 << 10, 4 << 10);
    expected.cma.one_way_bytes_min = expected.cma.combined_bytes_min = 4 << 10;
    expected.copies.oversubscribed_combined_bytes_min = 4 << 10;
    CHECK(memory == expected);
    CHECK(memory.cma.permitted);
}

TEST_CASE("one rank that wants no single copies is enough, and none allows what costs forbid") {
    cost::MemoryModel memory = memory_of(16 << 10, 64 << 10, 32 << 10);
    SECTION("a setting") {
        agree_on_copies({hello_of(4 << 10, 0), hello_of(kNone, 0)}, memory);
    }
    SECTION("the costs") {
        memory.cma.permitted = false;
        agree_on_copies({hello_of(0, 8 << 10), hello_of(4 << 10, 0)}, memory);
    }
    CHECK_FALSE(memory.cma.permitted);
}

} // namespace
} // namespace ucg::capi
