#include <algorithm>
#include <utility>
#include <vector>

#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"

namespace ucg::graph {
namespace {

Schedule parse(std::string_view text) {
    Result<Schedule> schedule = parse_text(text);
    INFO(schedule.status().message());
    REQUIRE(schedule.ok());
    return *std::move(schedule);
}

std::string lowered_text(std::string_view text) {
    return to_text(lower(parse(text)).value());
}

/// Odd peers are reached by another transport than even ones.
std::uint8_t parity(Rank peer, void* /*context*/) {
    return peer % 2 == 1 ? 1 : 0;
}

/// A random schedule that can be lowered: repeats have few enough iterations to be written out,
/// only permitted dependencies remain, and flag slots are used only where they are read.
Schedule random_program(std::uint32_t seed) {
    Schedule schedule = test::random_schedule(seed);
    for (Repeat& repeat : schedule.repeats) {
        repeat.iterations = 2 + repeat.iterations % 39;
    }
    const auto repeat_of = [&](std::uint32_t op) {
        return std::find_if(
            schedule.repeats.begin(), schedule.repeats.end(), [&](const Repeat& repeat) {
                return op >= repeat.first_op && op < repeat.first_op + repeat.op_count;
            });
    };
    const auto keep_off_flag_slots = [](Slice& slice) {
        slice.buffer = slice.buffer == BufferKind::flag_slot ? BufferKind::scratch : slice.buffer;
    };
    for (Slice& operand : schedule.operands) {
        if (operand.owner == schedule.rank) {
            keep_off_flag_slots(operand);
        }
    }
    for (std::uint32_t i = 0; i < schedule.ops.size(); ++i) {
        const IndexRange range = dependency_range(schedule, i);
        for (std::uint32_t d = range.first; d < range.last; ++d) {
            Dependency& dependency = schedule.dependencies[d];
            const auto repeat = repeat_of(i);
            if (repeat == schedule.repeats.end() || repeat != repeat_of(dependency.op)) {
                dependency.distance = 0;
            }
        }
        Op& op = schedule.ops[i];
        keep_off_flag_slots(op.target);
        if (op.kind != OpKind::copy || op.source.owner == schedule.rank) {
            keep_off_flag_slots(op.source);
        }
    }
    return schedule;
}

constexpr std::string_view kPipeline =
    "schedule bcast pipeline rank 1 of 3 input 0 output 40 scratch 32 element 1\n"
    "repeat 0..2 times 3 segment 16 last 8 rotation 2\n"
    "0: recv from 0 scratch[0:16]% after 2(-2)\n"
    "1: copy scratch[0:16]% -> output[0:16]+ after 0\n"
    "2: send to 2 scratch[0:16]% after 0\n";

} // namespace

TEST_CASE("graph: messages that follow one another without a wait are posted together",
          "[graph][lowering]") {
    CHECK(lowered_text("schedule allreduce hand rank 0 of 2 input 8 output 8 scratch 8 element 8\n"
                       "0: send to 1 input[0:8]\n"
                       "1: recv from 1 scratch[0:8]\n"
                       "2: reduce input[0:8] scratch[0:8] -> output[0:8] after 1\n"
                       "3: await 1 after 2\n"
                       "4: signal 1\n"
                       "5: signal 1 after 3\n") ==
          "0: post\n"
          "  send to 1 input[0:8], step 0, slot 0\n"
          "  recv from 1 scratch[0:8], step 0, slot 1\n"
          "1: reduce input[0:8] scratch[0:8] -> output[0:8] after slot 1\n"
          "2: post\n"
          "  await 1, step 0, slot 2\n"
          "  signal 1, step 0, slot 3\n"
          "3: post after slot 2\n"
          "  signal 1, step 1, slot 4\n"
          "4: finish after slot 0, 3, 4\n");
}

TEST_CASE("graph: only messages of one carrier are posted together", "[graph][lowering]") {
    const Schedule schedule =
        parse("schedule bcast hand rank 0 of 6 input 8 output 0 scratch 0 element 1\n"
              "0: send to 1 input[0:8]\n"
              "1: send to 3 input[0:8]\n"
              "2: send to 2 input[0:8]\n"
              "3: send to 5 input[0:8]\n");
    const LoweredSchedule lowered = lower(schedule, {parity, nullptr}).value();
    REQUIRE(lowered.steps.size() == 4);
    CHECK(lowered.steps[0].count == 2);
    CHECK(lowered.steps[0].carrier == 1);
    CHECK(lowered.steps[1].count == 1);
    CHECK(lowered.steps[1].carrier == 0);
    CHECK(lowered.steps[2].count == 1);
    CHECK(lowered.steps[2].carrier == 1);
    const LoweredSchedule by_one = lower(schedule).value();
    CHECK(by_one.steps.size() == 2);
    CHECK(by_one.messages == lowered.messages);
    CHECK(by_one != lowered);
}

TEST_CASE("graph: in a repeat a message has slots that it takes in turn", "[graph][lowering]") {
    CHECK(lowered_text(kPipeline) == "repeat 3 times\n"
                                     "  0: post after slot 4-7(-2), 0-3(-4)\n"
                                     "    recv from 0 scratch[0:16]%, step 0 + 1 k, slot 0-3\n"
                                     "  1: copy scratch[0:16]% -> output[0:16]+ after slot 0-3\n"
                                     "  2: post after slot 4-7(-4)\n"
                                     "    send to 2 scratch[0:16]%, step 0 + 1 k, slot 4-7\n"
                                     "  3: end_iteration, back to 0\n"
                                     "4: finish after slot 0-3(all), 4-7(all)\n");
}

TEST_CASE("graph: messages are numbered through repeats", "[graph][lowering]") {
    const LoweredSchedule lowered =
        lower(parse("schedule bcast hand rank 0 of 2 input 16 output 0 scratch 0 element 1\n"
                    "0: send to 1 input[0:1]\n"
                    "repeat 1..3 times 5 segment 1 last 1 rotation 1\n"
                    "1: send to 1 input[1:2]+\n"
                    "2: await 1\n"
                    "3: send to 1 input[6:7]+\n"
                    "4: send to 1 input[12:13]\n"
                    "5: await 1\n"))
            .value();
    const auto first = [&](std::size_t i) { return lowered.messages[i].first_step; };
    const auto each = [&](std::size_t i) { return lowered.messages[i].steps_per_iteration; };
    REQUIRE(lowered.messages.size() == 6);
    CHECK(first(0) == 0);
    CHECK((first(1) == 1 && each(1) == 2));
    CHECK((first(3) == 2 && each(3) == 2));
    CHECK(first(4) == 11);
    CHECK((first(2) == 0 && each(2) == 1)); // Signals are counted separately.
    CHECK(first(5) == 5);
    CHECK(lowered.slot_count == 1 + 3 * 4 + 2);
}

TEST_CASE("graph: waits for flag slots one after another become one", "[graph][lowering]") {
    CHECK(lowered_text("schedule allreduce hand rank 0 of 4 input 8 output 8 scratch 0 element 8 "
                       "flag_slot 8\n"
                       "0: share input[0:8]\n"
                       "1: copy flag_slot@2[0:0] -> output[0:0]\n"
                       "2: copy flag_slot@1[0:0] -> output[0:0]\n"
                       "3: copy flag_slot@2[0:0] -> output[0:0]\n"
                       "4: reduce input[0:8] flag_slot@1[0:8] flag_slot@3[0:8] -> output[0:8]\n"
                       "5: copy flag_slot@1[0:0] -> output[0:0]\n") ==
          "0: share input[0:8]\n"
          "1: wait after flag_slot 2, 1\n"
          "2: reduce input[0:8] flag_slot@1[0:8] flag_slot@3[0:8] -> output[0:8] after flag_slot "
          "2, 1, 3\n"
          "3: finish\n");
}

TEST_CASE("graph: own scratch is found by a base of its own", "[graph][lowering]") {
    const LoweredSchedule lowered =
        lower(parse("schedule bcast hand rank 0 of 2 input 8 output 8 scratch 24 element 1 exposed "
                    "own_scratch 16\n"
                    "0: copy input[0:8] -> scratch[0:8]\n"
                    "1: copy input[0:8] -> scratch[12:20]\n"))
            .value();
    // Is it the rank's own scratch, and from which byte on?
    std::vector<std::pair<bool, std::uint64_t>> scratch;
    for (const Address& address : lowered.addresses) {
        if (address.buffer == BufferKind::scratch) {
            scratch.emplace_back(address.is_own_scratch(), address.offset);
        }
    }
    CHECK(scratch == std::vector<std::pair<bool, std::uint64_t>>{{false, 0}, {true, 4}});
}

TEST_CASE("graph: lowered steps wait for all that the schedule says", "[graph][lowering]") {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        const Schedule schedule = random_program(seed);
        CHECK(verify_lowering(schedule, lower(schedule).value()).message() == "");
    }
}

TEST_CASE("graph: a lowered schedule that leaves out a wait is refused", "[graph][lowering]") {
    std::size_t left_out = 0;
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        const Schedule schedule = random_program(seed);
        const LoweredSchedule whole = lower(schedule).value();
        for (std::size_t i = 0; i < whole.waits.size(); ++i) {
            LoweredSchedule lowered = whole;
            Wait& wait = lowered.waits[i];
            if (wait.distance > 0 || wait.mask > 0) {
                continue; // Another wait may also establish what this one waits for.
            }
            CAPTURE(seed, i);
            wait = {0, 3, 255, false}; // It now names an iteration that no repeat here reaches.
            CHECK_FALSE(verify_lowering(schedule, lowered).ok());
            ++left_out;
        }
    }
    CHECK(left_out > 100);
}

TEST_CASE("graph: what a repeat still has in flight is waited for", "[graph][lowering]") {
    const Schedule schedule = parse(kPipeline);
    LoweredSchedule lowered = lower(schedule).value();
    REQUIRE(verify_lowering(schedule, lowered).message() == "");
    Schedule longer = schedule;
    longer.repeats[0].iterations = 9;
    lowered.repeats[0].iterations = 9;
    REQUIRE(verify_lowering(longer, lowered).message() == "");
    lowered.waits.back().every_slot = false;
    CHECK(verify_lowering(longer, lowered).message() ==
          "rank 1: the end does not wait for send 23 written out");
    lowered = lower(longer).value();
    lowered.steps[1].wait_count = 0;
    CHECK(verify_lowering(longer, lowered).message() ==
          "rank 1, op 1 (copy): does not wait for recv 0 written out");
}

TEST_CASE("graph: messages that may be in flight at a time have slots of their own",
          "[graph][lowering]") {
    const Schedule schedule =
        parse("schedule bcast hand rank 0 of 3 input 8 output 0 scratch 0 element 1\n"
              "0: send to 1 input[0:8]\n"
              "1: send to 2 input[0:8]\n");
    LoweredSchedule lowered = lower(schedule).value();
    lowered.messages[1].slot = 0;
    CHECK(verify_lowering(schedule, lowered).message() ==
          "rank 0, op 1 (send): takes slot 0 while send 0 written out may use it");
}

TEST_CASE("graph: a schedule with more than there are numbers for is refused",
          "[graph][lowering][limits]") {
    SECTION("slices") {
        constexpr std::uint32_t kOperands = 0xffff;
        Schedule schedule;
        schedule.rank_count = 2;
        schedule.operands.resize(kOperands);
        Op op;
        op.kind = OpKind::reduce;
        op.operand_count = kOperands;
        schedule.ops.assign(kOperands + 3, op);
        const Status status = lower(schedule).status();
        CHECK(status.code() == Code::unsupported);
        CHECK(status.message() == "rank 0, op 65535 (reduce): 4294967296 slices to copy or "
                                  "combine, at most 4294967295 can be run");
    }
    SECTION("as many slices as there are numbers") {
        Schedule schedule;
        schedule.rank_count = 2;
        Op op;
        op.kind = OpKind::reduce;
        op.operand_count = 0xffff;
        schedule.ops.assign(0xffff, op);
        op.operand_count = 0xfffe; // With the target this is the last number there is.
        schedule.ops.push_back(op);
        CHECK(check_limits(schedule).message() == "");
        ++schedule.ops.back().operand_count;
        CHECK(check_limits(schedule).code() == Code::unsupported);
    }
    SECTION("rotation") {
        Schedule schedule = parse(kPipeline);
        schedule.repeats[0].rotation = 16;
        const Status status = lower(schedule).status();
        CHECK(status.code() == Code::unsupported);
        CHECK(status.message() ==
              "rank 1, op 0 (recv): 16 buffers of a rotation, at most 15 can be run");
    }
}

} // namespace ucg::graph
