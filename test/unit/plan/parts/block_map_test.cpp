#include <numeric>

#include "test/support/catch.hpp"
#include "ucg_coll/plan/parts/block_map.hpp"

namespace ucg::plan {
namespace {

graph::Slice vector_of(std::uint64_t bytes) {
    graph::Slice slice;
    slice.offset = 100;
    slice.length = bytes;
    return slice;
}

} // namespace

TEST_CASE("plan: a vector is cut into blocks of whole units that hold all of it",
          "[plan][blocks]") {
    for (const std::uint64_t bytes : {0, 8, 56, 64, 72, 1000}) {
        for (const Rank count : {1, 3, 7, 8, 16}) {
            const BlockMap blocks = BlockMap::cut(vector_of(bytes), count, 8);
            INFO(bytes << " bytes among " << count);
            std::uint64_t next = 100;
            for (Rank i = 0; i < count; ++i) {
                CHECK(blocks.block(i).offset == next);
                CHECK(blocks.bytes(i) % 8 == 0);
                CHECK(blocks.bytes(i) <= BlockMap::cut_bytes(bytes, count, 8));
                next = blocks.block(i).end();
            }
            CHECK(next == 100 + bytes);
            CHECK(blocks.bytes_max() == blocks.bytes(0));
        }
    }
}

TEST_CASE("plan: runs of a cut vector are as those of the blocks one by one", "[plan][blocks]") {
    constexpr Rank kCount = 7;
    const BlockMap cut = BlockMap::cut(vector_of(40), kCount, 8); // Two of the blocks are empty.
    std::vector<graph::Slice> slices;
    for (Rank i = 0; i < kCount; ++i) {
        slices.push_back(cut.block(i));
    }
    const BlockMap listed = BlockMap::of(slices);
    for (Rank first = 0; first < kCount; ++first) {
        for (Rank count = 0; count <= kCount; ++count) {
            CHECK(cut.runs(first, count) == listed.runs(first, count));
            CHECK(cut.run_bytes(first, count) == listed.run_bytes(first, count));
        }
    }
}

} // namespace ucg::plan
