#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"
#include "ucg_coll/graph/lowering.hpp"

namespace ucg::graph {
namespace {

TEST_CASE("graph: a part of a slice", "[graph][schedule]") {
    const Slice whole{100, 50, 3, BufferKind::scratch, Stride::advance};
    CHECK(part(whole, 10, 20) == Slice{110, 20, 3, BufferKind::scratch, Stride::advance});
    CHECK(part(whole, 50, 0).length == 0);
}

TEST_CASE("graph: slices move by their stride and the last is shorter", "[graph][schedule]") {
    const Repeat repeat{0, 1, 5, 64, 10, 3};
    const auto moved = [&](Stride stride, std::uint64_t k) {
        return at_iteration({1000, 64, 0, BufferKind::scratch, stride}, repeat, k);
    };
    CHECK(moved(Stride::fixed, 2) == Slice{1000, 64, 0, BufferKind::scratch, Stride::fixed});
    CHECK(moved(Stride::advance, 2).offset == 1128);
    CHECK(moved(Stride::rotate, 3).offset == 1000);
    CHECK(moved(Stride::rotate, 4) == Slice{1064, 10, 0, BufferKind::scratch, Stride::fixed});
}

TEST_CASE("graph: unrolling maps every dependency exactly", "[graph][schedule]") {
    // One op is before the repeat, two are in it, one is behind it; dependencies within reach back
    // 1 and 2 iterations.
    const auto schedule =
        parse_text("schedule bcast t rank 1 of 2 input 0 output 40 scratch 32 element 1\n"
                   "0: signal 0\n"
                   "repeat 1..2 times 3 segment 16 last 8 rotation 2\n"
                   "1: recv from 0 scratch[0:16]% after 0 2(-2)\n"
                   "2: copy scratch[0:16]% -> output[0:16]+ after 1 2(-1)\n"
                   "3: signal 0 after 2\n");
    REQUIRE(schedule.ok());
    CHECK(to_text(unroll(*schedule)) ==
          "schedule bcast t rank 1 of 2 input 0 output 40 scratch 32 element 1\n"
          "0: signal 0\n"
          "1: recv from 0 scratch[0:16] after 0\n"
          "2: copy scratch[0:16] -> output[0:16] after 1\n"
          "3: recv from 0 scratch[16:32] after 0\n"
          "4: copy scratch[16:32] -> output[16:32] after 3 2\n"
          "5: recv from 0 scratch[0:8] after 0 2\n"
          "6: copy scratch[0:8] -> output[32:40] after 5 4\n"
          "7: signal 0 after 2 4 6\n");
}

TEST_CASE("graph: messages of a repeat wait for those of its window before",
          "[graph][schedule][repeat]") {
    const auto schedule =
        parse_text("schedule bcast t rank 1 of 2 input 0 output 6 scratch 0 element 1\n"
                   "repeat 0..1 times 6 segment 1 last 1 rotation 1\n"
                   "0: recv from 0 output[0:1]+\n"
                   "1: copy output[0:1]+ -> output[0:1]+ after 0\n");
    REQUIRE(schedule.ok());
    const Schedule unrolled = unroll(*schedule);
    REQUIRE(unrolled.dependencies.size() == 6 + 2);
    CHECK(dependency_range(unrolled, 6).first == dependency_range(unrolled, 6).last);
    for (const std::uint32_t later : {8U, 10U}) {
        const IndexRange range = dependency_range(unrolled, later);
        REQUIRE(range.last - range.first == 1);
        CHECK(unrolled.dependencies[range.first].op == later - 8);
    }
    for (std::uint32_t rotation = 1; rotation <= 15; ++rotation) {
        const std::uint32_t in_flight = iterations_in_flight({0, 1, 2, 1, 1, rotation});
        CHECK(in_flight == (rotation < 4 ? 4 : rotation < 8 ? 8 : 16));
    }
}

TEST_CASE("graph: without repeats unrolling changes nothing", "[graph][schedule]") {
    Schedule schedule = test::random_schedule(7);
    schedule.repeats.clear();
    CHECK(unroll(schedule) == schedule);
}

TEST_CASE("graph: reductions keep their operands when unrolled", "[graph][schedule]") {
    const auto schedule =
        parse_text("schedule allreduce t rank 0 of 1 input 20 output 20 scratch 8 element 1\n"
                   "repeat 0..0 times 3 segment 8 last 4 rotation 1\n"
                   "0: reduce input[0:8]+ scratch[0:8] -> output[0:8]+\n");
    REQUIRE(schedule.ok());
    const Schedule unrolled = unroll(*schedule);
    REQUIRE(unrolled.operands.size() == 6);
    CHECK(unrolled.ops[2].first_operand == 4);
    CHECK(unrolled.operands[4] == Slice{16, 4, 0, BufferKind::input, Stride::fixed});
    CHECK(unrolled.operands[5] == Slice{0, 4, 0, BufferKind::scratch, Stride::fixed});
}

TEST_CASE("graph: pictures show ranks, ops and messages", "[graph][dot]") {
    const auto schedules =
        test::programs({test::request(Collective::bcast, 2, 8)},
                       "rank\n send to 1 input[0:8]\nrank\n recv from 0 output[0:8]");
    const std::string dot = to_dot(schedules);
    CHECK(dot.find("subgraph cluster_0") != std::string::npos);
    CHECK(dot.find("label=\"rank 1 of 2: bcast by_hand\"") != std::string::npos);
    CHECK(dot.find("label=\"0: recv from 0 output[0:8]\"") != std::string::npos);
    CHECK(dot.find("r0_0 -> r1_0") != std::string::npos);
    CHECK(to_dot(std::span(schedules).first(1)).find("->") == std::string::npos);
    const auto shares = test::programs({test::request(Collective::bcast, 2, 8)},
                                       "rank flag_slot 8\n share input[0:8]\n"
                                       "rank flag_slot 0\n copy flag_slot@0[0:8] -> output[0:8]");
    CHECK(to_dot(shares).find("  r0_0 -> r1_0 [") != std::string::npos);
    CHECK(to_dot(std::span(shares).last(1)).find("-> r1_0 [") == std::string::npos);
}

} // namespace
} // namespace ucg::graph
