#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/engine/engine.hpp"
#include "ucg_coll/engine/operators.hpp"
#include "ucg_coll/graph/builder.hpp"
#include "ucg_coll/transport/loopback/loopback.hpp"

namespace ucg {
namespace {

using engine::InstructionKind;
using graph::Builder;
using graph::Slice;
using transport::Delivery;

constexpr std::uint64_t kBytes = 1024;

/// How rank 0's program begins that receives `bytes` from rank 1 and reduces them.
struct Lowered {
    InstructionKind reduction;
    std::size_t parts;
};

Lowered lowered(std::uint64_t element_bytes,
                const std::function<void(Builder&, const Slice& mine, const Slice& theirs)>& rest,
                std::uint64_t bytes = kBytes) {
    graph::Request request;
    request.collective = graph::Collective::reduce;
    request.rank_count = 2;
    request.bytes = bytes;
    request.element_bytes = element_bytes;
    Builder b(request, 0, "sum");
    const Slice theirs = b.scratch(bytes);
    b.recv(1, theirs);
    rest(b, b.input(0, bytes), theirs);
    transport::LoopbackFabric fabric(2, Delivery::immediate);
    const auto routes = fabric.routes(0);
    const engine::Program program = engine::lower(b.finish(), routes).value();
    for (const engine::Instruction& each : program.instructions) {
        if (each.kind == InstructionKind::reduce || each.kind == InstructionKind::reduce_parts) {
            return {each.kind, program.parts.size()};
        }
    }
    FAIL("no reduction");
    return {};
}

void reduce(Builder& b, const Slice& mine, const Slice& theirs) {
    const std::array<Slice, 2> operands = {mine, theirs};
    b.reduce(operands, b.output(0, mine.length));
}

} // namespace

TEST_CASE("engine: a message that only a reduction reads is combined where it arrives",
          "[engine][lower]") {
    const Lowered sum = lowered(8, reduce);
    CHECK(sum.reduction == InstructionKind::reduce_parts);
    CHECK(sum.parts == 1);
    const Lowered sent_between = lowered(8, [](Builder& b, const Slice& mine, const Slice& theirs) {
        b.send(1, mine);
        reduce(b, mine, theirs);
    });
    CHECK(sent_between.reduction == InstructionKind::reduce_parts);
}

TEST_CASE("engine: a message that others read, too, or that is short, is copied first",
          "[engine][lower]") {
    CHECK(lowered(12, reduce, 1020).reduction == InstructionKind::reduce); // Across lines.
    CHECK(lowered(8, reduce, kCacheLine).reduction == InstructionKind::reduce);
    const auto read_again = [](Builder& b, const Slice& mine, const Slice& theirs) {
        reduce(b, mine, theirs);
        b.send(1, graph::part(theirs, 8, 8));
    };
    CHECK(lowered(8, read_again).reduction == InstructionKind::reduce);
    const auto read_twice = [](Builder& b, const Slice& mine, const Slice& theirs) {
        const std::array<Slice, 3> operands = {mine, theirs, theirs};
        b.reduce(operands, b.output(0, mine.length));
    };
    CHECK(lowered(8, read_twice).reduction == InstructionKind::reduce);
    const auto half = [](Builder& b, const Slice& mine, const Slice& theirs) {
        const std::array<Slice, 2> operands = {graph::part(mine, 0, 512),
                                               graph::part(theirs, 0, 512)};
        b.reduce(operands, b.output(0, 512));
    };
    CHECK(lowered(8, half).reduction == InstructionKind::reduce);
    const auto copied_before = [](Builder& b, const Slice& mine, const Slice& theirs) {
        b.copy(mine, b.output(0, mine.length));
        reduce(b, mine, theirs);
    };
    CHECK(lowered(8, copied_before).reduction == InstructionKind::reduce);
    const auto two_awaited = [](Builder& b, const Slice& mine, const Slice& theirs) {
        const Slice more = b.scratch(mine.length);
        b.recv(1, more);
        const std::array<Slice, 3> operands = {mine, theirs, more};
        b.reduce(operands, b.output(0, mine.length));
    };
    CHECK(lowered(8, two_awaited).reduction == InstructionKind::reduce);
}

} // namespace ucg
