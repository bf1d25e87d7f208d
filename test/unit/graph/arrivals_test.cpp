#include <array>
#include <cstdint>
#include <functional>
#include <string>
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

namespace {

/// What the proof says of rank 0's schedule if its reduction, the first one, is to combine operand
/// `arriving` where `message` arrives. Empty: nothing against it.
std::string refusal(const Schedule& schedule, std::uint32_t arriving = 1,
                    std::uint32_t message = 0) {
    LoweredSchedule lowered = lower(schedule).value();
    REQUIRE(verify_lowering(schedule, lowered).message() == "");
    for (Step& step : lowered.steps) {
        if (step.kind == StepKind::reduce || step.kind == StepKind::reduce_parts) {
            step.kind = StepKind::reduce_parts;
            step.message = message;
            step.arriving = arriving;
            return std::string(verify_lowering(schedule, lowered).message());
        }
    }
    FAIL("no reduction");
    return "";
}

/// A schedule that receives `bytes` from rank 1, does what `rest` says, and then reads the message
/// once more if `reads_again`.
Schedule receives(const std::function<void(Builder&, const Slice& mine, const Slice& theirs)>& rest,
                  bool reads_again = false, std::uint64_t element_bytes = 8,
                  std::uint64_t bytes = kBytes) {
    Builder b(reduce_request(bytes, element_bytes), 0, "sum");
    const Slice theirs = b.scratch(bytes);
    b.recv(1, theirs);
    rest(b, b.input(0, bytes), theirs);
    if (reads_again) {
        b.send(1, part(theirs, 8, 8));
    }
    return b.finish();
}

} // namespace

TEST_CASE("graph: the proof refuses what needs a message that is combined where it arrives",
          "[graph][lowering]") {
    CHECK(refusal(receives(reduce)) == "");
    CHECK(refusal(receives(reduce, true)) ==
          "rank 0, op 2 (send): reads a message that was combined where it arrived");
    const auto twice = [](Builder& b, const Slice& mine, const Slice& theirs) {
        const std::array<Slice, 3> operands = {mine, theirs, theirs};
        b.reduce(operands, b.output(0, mine.length));
    };
    CHECK(refusal(receives(twice)) ==
          "rank 0, op 1 (reduce): reads a message that was combined where it arrived");
    const auto overwritten = [](Builder& b, const Slice& mine, const Slice& theirs) {
        reduce(b, mine, theirs);
        b.copy(mine, theirs);
    };
    CHECK(refusal(receives(overwritten, true)) == "");
}

TEST_CASE("graph: the proof refuses reductions that cannot combine a message where it arrives",
          "[graph][lowering]") {
    const std::string cannot = "rank 0, op 1 (reduce): cannot combine a message where it arrives";
    CHECK(refusal(receives(reduce), 0) == cannot);
    CHECK(refusal(receives(reduce), 2) == cannot);
    CHECK(refusal(receives(reduce, false, 12, 1020)) == cannot);
    const auto sends_first = [](Builder& b, const Slice& mine, const Slice& theirs) {
        b.send(1, mine);
        reduce(b, mine, theirs);
    };
    CHECK(refusal(receives(sends_first)) == "");
    CHECK(refusal(receives(sends_first), 1, 1) ==
          "rank 0, op 1 (send): cannot be combined where it arrives");
    const auto copies_first = [](Builder& b, const Slice& mine, const Slice& theirs) {
        b.copy(mine, b.output(0, mine.length));
        reduce(b, mine, theirs);
    };
    CHECK(refusal(receives(copies_first)) ==
          "rank 0, op 0 (recv): is to be combined where it arrives, but another step comes before "
          "its reduction");
}

} // namespace ucg::graph
