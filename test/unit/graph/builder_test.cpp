// The dependencies that the builder derives: all that are needed, and how much work it takes to
// find them.
#include <algorithm>
#include <array>
#include <random>
#include <span>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/graph/graph.hpp"

using namespace ucg;
using namespace ucg::graph;

namespace {

Request request_of(Collective collective, Rank ranks, std::uint64_t bytes) {
    Request request;
    request.collective = collective;
    request.rank_count = ranks;
    request.bytes = bytes;
    return request;
}

/// How much the builder looked at, and how large the result is.
struct Cost {
    std::uint64_t looks = 0;
    std::uint64_t size = 0; ///< The number of ops, operands and dependencies.
};

template <typename Write>
Cost cost_of(const Request& request, Write write) {
    Builder builder(request, 0, "test");
    write(builder);
    const std::uint64_t looks = builder.look_count();
    const Schedule schedule = builder.finish();
    return {looks, schedule.ops.size() + schedule.operands.size() + schedule.dependencies.size()};
}

/// A schedule like Bruck's alltoall: blocks are packed one by one, and leave as one message.
Cost packed(std::uint64_t blocks) {
    const auto count = static_cast<Rank>(blocks);
    return cost_of(request_of(Collective::alltoall, count, 8), [&](Builder& builder) {
        for (int round = 0; round < 3; ++round) {
            const Slice pack = builder.scratch(8 * blocks);
            for (std::uint64_t i = 0; i < blocks; ++i) {
                builder.copy(builder.input(8 * (i * 7 % blocks), 8), part(pack, 8 * i, 8));
            }
            builder.send(1, pack);
        }
    });
}

/// A schedule of tiles, in segments: each rank combines its own tile of all vectors and reads the
/// other tiles from their owners.
Cost tiled(std::uint64_t tiles) {
    const auto count = static_cast<Rank>(tiles);
    const std::uint64_t segment = 64 * tiles;
    return cost_of(request_of(Collective::allreduce, count, 4 * segment), [&](Builder& builder) {
        builder.staging_buffer(segment);
        builder.begin_repeat(4 * segment, segment);
        const auto tile = [&](Slice vector, std::uint64_t index, Rank owner) {
            Slice slice = advance(part(vector, 64 * index, 64));
            slice.owner = owner;
            return slice;
        };
        std::vector<Slice> operands;
        for (Rank rank = 0; rank < count; ++rank) {
            operands.push_back(tile(builder.input(0, segment), 0, rank));
        }
        builder.reduce(operands, tile(builder.output(0, segment), 0, 0));
        for (std::uint64_t i = 1; i < tiles; ++i) {
            const auto owner = static_cast<Rank>(i);
            builder.copy(tile(builder.output(0, segment), i, owner),
                         tile(builder.output(0, segment), i, 0));
        }
        builder.end_repeat();
    });
}

/// A part of one of `pieces`, each of which is as long as a segment: a slice that stays, moves on
/// or rotates.
Slice any_slice(std::mt19937& random, std::span<const Slice> pieces, std::uint64_t segment) {
    const Slice slice = pieces[random() % pieces.size()];
    const std::uint64_t cut = random() % segment;
    return part(slice, cut, 1 + random() % (segment - cut));
}

bool overlap(const Slice& a, const Slice& b) {
    return a.buffer == b.buffer && a.offset < b.end() && b.offset < a.end();
}

bool conflict(const Op& a, const Op& b) {
    return overlap(a.target, b.target) || overlap(a.target, b.source) ||
           overlap(a.source, b.target);
}

/// For each op, which ops have completed when it starts.
std::vector<std::vector<bool>> before(const Schedule& schedule) {
    std::vector<std::vector<bool>> done(schedule.ops.size(),
                                        std::vector<bool>(schedule.ops.size(), false));
    for (std::uint32_t op = 0; op < schedule.ops.size(); ++op) {
        const IndexRange range = dependency_range(schedule, op);
        for (std::uint32_t d = range.first; d < range.last; ++d) {
            const std::uint32_t on = schedule.dependencies[d].op;
            done[op][on] = true;
            for (std::uint32_t i = 0; i < on; ++i) {
                done[op][i] = done[op][i] || done[on][i];
            }
        }
    }
    return done;
}

} // namespace

TEST_CASE("graph: what building looks at grows as the schedule does", "[graph][builder]") {
    constexpr std::uint64_t kLooksMax = 8; // The limit is for each op, operand and dependency.
    for (const std::uint64_t count : {100, 1000, 10'000}) {
        INFO(count << " blocks");
        const Cost blocks = packed(count);
        CHECK(blocks.size > 6 * count);
        CHECK(blocks.looks < kLooksMax * blocks.size);
    }
    for (const std::uint64_t count : {100, 1000, 3000}) {
        INFO(count << " tiles");
        const Cost tiles = tiled(count);
        CHECK(tiles.looks < kLooksMax * tiles.size);
    }
}

TEST_CASE("graph: ops wait for all that touches the same bytes, and for nothing else",
          "[graph][builder]") {
    constexpr std::uint64_t kBytes = 24;
    for (unsigned seed = 1; seed <= 200; ++seed) {
        std::mt19937 random(seed);
        Builder builder(request_of(Collective::allreduce, 2, kBytes), 0, "test");
        const std::array<Slice, 2> buffers = {builder.scratch(kBytes), builder.output(0, kBytes)};
        const unsigned op_count = 2 + random() % 12;
        for (unsigned op = 0; op < op_count; ++op) {
            const std::uint64_t length = 1 + random() % (kBytes / 2);
            const auto any = [&] {
                return part(buffers[random() % buffers.size()], random() % (kBytes - length),
                            length);
            };
            const Slice source = any();
            builder.copy(source, any());
        }
        const Schedule schedule = builder.finish();
        const auto done = before(schedule);
        for (std::uint32_t later = 0; later < schedule.ops.size(); ++later) {
            INFO("seed " << seed << ", op " << later);
            for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
                if (conflict(schedule.ops[later], schedule.ops[earlier])) {
                    REQUIRE(done[later][earlier]);
                }
            }
            const IndexRange range = dependency_range(schedule, later);
            for (std::uint32_t d = range.first; d < range.last; ++d) {
                const std::uint32_t earlier = schedule.dependencies[d].op;
                REQUIRE(conflict(schedule.ops[later], schedule.ops[earlier]));
            }
        }
    }
}

TEST_CASE("graph: ops of a repeat wait for all that touches the same bytes", "[graph][builder]") {
    constexpr std::uint64_t kSegment = 8;
    for (unsigned seed = 1; seed <= 200; ++seed) {
        std::mt19937 random(seed);
        const std::uint32_t rotation = 1 + random() % 4;
        const std::uint64_t total = kSegment * (2 + random() % 5);
        Builder builder(request_of(Collective::allreduce, 2, total), 0, "test");
        const std::array<Slice, 4> pieces = {
            builder.scratch(kSegment), advance(part(builder.scratch(total), 0, kSegment)),
            builder.rotating_scratch(kSegment, rotation), advance(builder.output(0, kSegment))};
        builder.begin_repeat(total, kSegment, rotation);
        const unsigned op_count = 2 + random() % 6;
        for (unsigned op = 0; op < op_count; ++op) {
            Slice source = any_slice(random, pieces, kSegment);
            Slice target = any_slice(random, pieces, kSegment);
            source.length = std::min(source.length, target.length);
            target.length = source.length;
            builder.copy(source, target);
        }
        builder.end_repeat();
        const Schedule schedule = unroll(builder.finish());
        const auto done = before(schedule);
        for (std::uint32_t later = 0; later < schedule.ops.size(); ++later) {
            for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
                if (conflict(schedule.ops[later], schedule.ops[earlier])) {
                    INFO("seed " << seed << ", ops " << earlier << " and " << later);
                    REQUIRE(done[later][earlier]);
                }
            }
            const IndexRange range = dependency_range(schedule, later);
            for (std::uint32_t d = range.first; d < range.last; ++d) {
                const std::uint32_t earlier = schedule.dependencies[d].op;
                INFO("seed " << seed << ", ops " << earlier << " and " << later);
                REQUIRE(conflict(schedule.ops[later], schedule.ops[earlier]));
            }
        }
    }
}

TEST_CASE("graph: ops after a repeat wait for all iterations that touch the same bytes",
          "[graph][builder]") {
    constexpr std::uint64_t kSegment = 8;
    for (unsigned seed = 1; seed <= 400; ++seed) {
        std::mt19937 random(seed);
        const std::uint64_t total = kSegment * (2 + random() % 5);
        Builder builder(request_of(Collective::allreduce, 2, total), 0, "test");
        const std::array<Slice, 3> pieces = {builder.scratch(kSegment),
                                             advance(part(builder.scratch(total), 0, kSegment)),
                                             advance(builder.output(0, kSegment))};
        const auto copy_any = [&] {
            Slice source = any_slice(random, pieces, kSegment);
            Slice target = any_slice(random, pieces, kSegment);
            source.length = target.length = std::min(source.length, target.length);
            builder.copy(source, target);
        };
        builder.begin_repeat(total, kSegment);
        for (unsigned op = 2 + random() % 6; op > 0; --op) {
            copy_any();
        }
        builder.end_repeat();
        for (unsigned op = 1 + random() % 4; op > 0; --op) {
            copy_any();
        }
        const Schedule schedule = unroll(builder.finish());
        const auto done = before(schedule);
        for (std::uint32_t later = 0; later < schedule.ops.size(); ++later) {
            for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
                INFO("seed " << seed << ", ops " << earlier << " and " << later);
                REQUIRE((done[later][earlier] ||
                         !conflict(schedule.ops[later], schedule.ops[earlier])));
            }
        }
    }
}
