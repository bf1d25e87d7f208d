// The notation of recursive multiplying: its text, its value, and the number of ranks that it is
// for.
#include <string>

#include "test/support/catch.hpp"
#include "ucg_coll/plan/multiplying/schedule.hpp"

namespace ucg::plan::test {
namespace {

MultiplyingSchedule parsed(std::string_view text) {
    const Result<MultiplyingSchedule> schedule = parse_multiplying_schedule(text);
    INFO(schedule.status().message());
    REQUIRE(schedule.ok());
    return *schedule;
}

std::string reason_against(std::string_view text) {
    const Status status = rank_count_of(parsed(text)).status();
    CHECK(status.code() == Code::invalid_argument);
    return std::string(status.message());
}

std::string parse_error(std::string_view text) {
    const Status status = parse_multiplying_schedule(text).status();
    CHECK(status.code() == Code::invalid_argument);
    return std::string(status.message());
}

struct Example {
    std::string_view text;
    Rank rank_count;
};

/// Every schedule in the paper: table 2, figures 17 to 22, sections 4.1 and 5.
constexpr Example kPaper[] = {
    {"a4", 4},
    {"a6", 6},
    {"a8", 8},
    {"a2,a4", 8},
    {"a2,a2,a2", 8},
    {"a3,a2", 6},
    {"a2,a5", 10},
    {"a3,a4", 12},
    {"a4,a4", 16},
    {"a4,a6", 24},
    {"a8,a4", 32},
    {"a8,a6", 48},
    {"a8,a8", 64},
    {"a8,a3,a4", 96},
    {"a8,a4,a4", 128},
    {"c4m2,a2,a2,e4m2", 6},
    {"c6m2,a2,a2,e6m2", 7},
    {"m1g2a3,n1g3a2", 7},
    {"m3g2a2,n3g2a2", 7},
};

} // namespace

TEST_CASE("multiplying: the paper's schedules are for the paper's ranks", "[multiplying]") {
    for (const Example& example : kPaper) {
        INFO(example.text);
        const MultiplyingSchedule schedule = parsed(example.text);
        CHECK(to_text(schedule) == example.text);
        CHECK(parsed(to_text(schedule)) == schedule);
        const Result<Rank> count = rank_count_of(schedule);
        REQUIRE(count.ok());
        CHECK(*count == example.rank_count);
        CHECK(fits(schedule, example.rank_count).ok());
        CHECK_FALSE(fits(schedule, example.rank_count + 1).ok());
    }
}

TEST_CASE("multiplying: text is what the phases say", "[multiplying]") {
    CHECK(parsed("c6m2,a2,a2,e6m2") == MultiplyingSchedule{{collapse_phase(6, 2), factor_phase(2),
                                                            factor_phase(2), expand_phase(6, 2)}});
    CHECK(parsed("m1g2a3,n1g3a2") ==
          MultiplyingSchedule{{merge_phase(1, 2, 3), inverse_merge_phase(1, 3, 2)}});
    CHECK_FALSE(parsed("a2,a4") == parsed("a4,a2"));
}

TEST_CASE("multiplying: one rank needs no phases", "[multiplying]") {
    CHECK(parsed("") == MultiplyingSchedule{});
    CHECK(to_text(MultiplyingSchedule{}).empty());
    CHECK(fits({}, 1).ok());
    CHECK(fits({}, 2).message() == "the schedule '' is for 1 ranks, not for 2");
}

TEST_CASE("multiplying: merges within a collapse and remainders of any size", "[multiplying]") {
    CHECK(*rank_count_of(parsed("c4m2,m1g2a2,n1g2a2,e4m2")) == 7);
    CHECK(*rank_count_of(parsed("m9g2a2,n9g2a2")) == 13);
    CHECK(*rank_count_of(parsed("m1g10a3,a5,n1g15a2")) == 31);
    CHECK(*rank_count_of(parsed("c3m3,e3m3")) == 3);
    CHECK(*rank_count_of(parsed("c6m3,a3,e6m3")) == 7);
}

TEST_CASE("multiplying: text that is none is refused where it goes wrong", "[multiplying]") {
    CHECK(parse_error("a4;a2") == "'a4;a2', position 2: expected ',' or the end, found ';'");
    CHECK(parse_error("a4,") == "'a4,', position 3: expected a phase: aB, cTmB, eTmB, mRgGaB or "
                                "nRgGaB, found the end");
    CHECK(parse_error("4,2") == "'4,2', position 0: expected a phase: aB, cTmB, eTmB, mRgGaB or "
                                "nRgGaB, found '4'");
    CHECK(parse_error("ax") == "'ax', position 1: expected the base, a number, found 'x'");
    CHECK(parse_error("a-2") == "'a-2', position 1: expected the base, a number, found '-'");
    CHECK(parse_error("c6,a2") == "'c6,a2', position 2: expected 'm' and the base, found ','");
    CHECK(parse_error("m1a3") ==
          "'m1a3', position 2: expected 'g' and the number of groups, found 'a'");
    CHECK(parse_error("m1g2m3") == "'m1g2m3', position 4: expected 'a' and the base, found 'm'");
    CHECK(parse_error("a2,a99999999999") == "'a2,a99999999999', position 4: expected the base, a "
                                            "number in the range of ranks, found '9'");
    CHECK(parse_error(" a2").find("position 0") != std::string::npos);
}

TEST_CASE("multiplying: phases that contradict each other are named", "[multiplying]") {
    CHECK(reason_against("a1") == "phase 1 (a1) has a base below 2");
    CHECK(reason_against("a2,a70000") == "phase 2 (a70000) has a base above 65535");
    CHECK(reason_against("a60000,a60000") ==
          "phase 2 (a60000) takes the product of the bases above 2147483647");
    CHECK(reason_against("a2,c4m2") == "phase 2 (c4m2) is a collapse, which is the first phase");
    CHECK(reason_against("c4m2,a2") == "phase 1 (c4m2) has no expand at the end");
    CHECK(reason_against("a2,e4m2") == "phase 2 (e4m2) has no collapse to undo");
    CHECK(reason_against("c4m2,a2,e2m2") == "phase 3 (e2m2) does not undo c4m2");
    CHECK(reason_against("c4m2,a2,e4m2,a2") ==
          "phase 4 (a2) follows an expand, which is the last phase");
    CHECK(reason_against("c5m2,a2,e5m2") ==
          "phase 1 (c5m2) has the threshold 5, which is no positive multiple of the base 2");
    CHECK(reason_against("c8m2,a2,e8m2") ==
          "phase 1 (c8m2) leaves 4 ranks at least, but the phases inside are for 2");
    CHECK(reason_against("a2,m1g1a2,n1g2a2") ==
          "phase 2 (m1g1a2) is a merge, which is the first phase but for a collapse");
    CHECK(reason_against("m1g2a2,a2") == "phase 1 (m1g2a2) has no inverse merge at the end");
    CHECK(reason_against("a2,n1g2a2") == "phase 2 (n1g2a2) has no merge to undo");
    CHECK(reason_against("m1g2a2,n2g2a2") == "phase 2 (n2g2a2) has another remainder than m1g2a2");
    CHECK(reason_against("m1g2a2,n1g2a2,a2") ==
          "phase 3 (a2) follows an inverse merge, which only an expand may");
    CHECK(reason_against("m0g2a2,n0g2a2") ==
          "phase 1 (m0g2a2) merges nothing: remainder and groups are at least 1");
    CHECK(reason_against("m1g3a3,n1g3a2") ==
          "phase 1 (m1g3a3) has 3 groups of 3, 9 ranks, but the product of the bases is 6: it "
          "needs 2 groups");
    CHECK(reason_against("m1g2a3,n1g2a2") ==
          "phase 2 (n1g2a2) has 2 groups of 2, 4 ranks, but the product of the bases is 6: it "
          "needs 3 groups");
    CHECK(reason_against("m200000g2a2,n200000g2a2") ==
          "phase 1 (m200000g2a2) reduces 100002 operands at a time, 65535 are possible");
}

} // namespace ucg::plan::test
