#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/graph/graph.hpp"

namespace ucg::graph {
namespace {

constexpr std::uint64_t kBytes = 1024;

Request reduce_request(std::uint64_t bytes, std::uint64_t element_bytes) {
    Request request;
    request.collective = Collective::reduce;
    request.rank_count = 2;
    request.bytes = bytes;
    request.element_bytes = element_bytes;
    return request;
}

/// The step of rank 0's lowered program that reduces.
Step reducing_step(Builder& b) {
    const LoweredSchedule lowered = lower(b.finish()).value();
    for (const Step& step : lowered.steps) {
        if (step.kind == StepKind::reduce || step.kind == StepKind::reduce_parts) {
            return step;
        }
    }
    FAIL("no reduction");
    return {};
}

/// The kind of step by which rank 0 reduces `bytes` that it receives from rank 1.
StepKind
reduction(std::uint64_t element_bytes,
          const std::function<void(Builder&, const Slice& mine, const Slice& theirs)>& rest,
          std::uint64_t bytes = kBytes) {
    Builder b(reduce_request(bytes, element_bytes), 0, "sum");
    const Slice theirs = b.scratch(bytes);
    b.recv(1, theirs);
    rest(b, b.input(0, bytes), theirs);
    const Step step = reducing_step(b);
    CHECK((step.kind == StepKind::reduce || step.message == 0));
    return step.kind;
}

void reduce(Builder& b, const Slice& mine, const Slice& theirs) {
    const std::array<Slice, 2> operands = {mine, theirs};
    b.reduce(operands, b.output(0, mine.length));
}

} // namespace

TEST_CASE("graph: a message that only a reduction reads is combined where it arrives",
          "[graph][lowering]") {
    CHECK(reduction(8, reduce) == StepKind::reduce_parts);
    const auto sent_between = [](Builder& b, const Slice& mine, const Slice& theirs) {
        b.send(1, mine);
        reduce(b, mine, theirs);
    };
    CHECK(reduction(8, sent_between) == StepKind::reduce_parts);
}

TEST_CASE("graph: a message that is posted behind others is combined where it arrives, too",
          "[graph][lowering]") {
    Builder b(reduce_request(kBytes, 8), 0, "sum");
    const Slice mine = b.input(0, kBytes);
    const Slice theirs = b.scratch(kBytes);
    for (int i = 0; i < 3; ++i) {
        b.send(1, mine);
    }
    b.copy(mine, b.scratch(kBytes)); // The copy makes another step post what follows.
    b.recv(1, theirs);
    reduce(b, mine, theirs);
    const Step step = reducing_step(b);
    CHECK(step.kind == StepKind::reduce_parts);
    CHECK(step.message == 3);
}

TEST_CASE("graph: a message that others read, too, or that is short, is copied first",
          "[graph][lowering]") {
    CHECK(reduction(12, reduce, 1020) == StepKind::reduce); // An element lies across two lines.
    CHECK(reduction(8, reduce, kCacheLine) == StepKind::reduce);
    const auto read_again = [](Builder& b, const Slice& mine, const Slice& theirs) {
        reduce(b, mine, theirs);
        b.send(1, part(theirs, 8, 8));
    };
    CHECK(reduction(8, read_again) == StepKind::reduce);
    const auto read_twice = [](Builder& b, const Slice& mine, const Slice& theirs) {
        const std::array<Slice, 3> operands = {mine, theirs, theirs};
        b.reduce(operands, b.output(0, mine.length));
    };
    CHECK(reduction(8, read_twice) == StepKind::reduce);
    const auto half = [](Builder& b, const Slice& mine, const Slice& theirs) {
        const std::array<Slice, 2> operands = {part(mine, 0, 512), part(theirs, 0, 512)};
        b.reduce(operands, b.output(0, 512));
    };
    CHECK(reduction(8, half) == StepKind::reduce);
    const auto copied_before = [](Builder& b, const Slice& mine, const Slice& theirs) {
        b.copy(mine, b.output(0, mine.length));
        reduce(b, mine, theirs);
    };
    CHECK(reduction(8, copied_before) == StepKind::reduce);
    const auto two_awaited = [](Builder& b, const Slice& mine, const Slice& theirs) {
        const Slice more = b.scratch(mine.length);
        b.recv(1, more);
        const std::array<Slice, 3> operands = {mine, theirs, more};
        b.reduce(operands, b.output(0, mine.length));
    };
    CHECK(reduction(8, two_awaited) == StepKind::reduce);
}

} // namespace ucg::graph
