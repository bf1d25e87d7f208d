#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"

namespace ucg::graph {
namespace {

constexpr std::string_view kHeader =
    "schedule allreduce ring rank 0 of 2 input 8 output 8 scratch 8 element 8\n";

std::string problem(std::string_view text) {
    return std::string(parse_text(text).status().message());
}
std::string op_problem(std::string_view op) {
    return problem(std::string(kHeader) + std::string(op));
}

TEST_CASE("graph: text comes back as it was", "[graph][text]") {
    const Schedule schedule = test::random_schedule(GENERATE(range(0U, 200U)));
    const std::string text = to_text(schedule);
    INFO(text);
    const Result<Schedule> parsed = parse_text(text);
    INFO(parsed.status().message());
    REQUIRE(parsed.ok());
    CHECK(*parsed == schedule);
}

TEST_CASE("graph: text allows comments, blank lines and indentation", "[graph][text]") {
    const auto parsed = parse_text("\n# A comment.\n" + std::string(kHeader) +
                                   "\n   0:  signal   1\n  # Another.\n\t1: await 1 after 0\r\n");
    INFO(parsed.status().message());
    REQUIRE(parsed.ok());
    CHECK(parsed->ops.size() == 2);
}

TEST_CASE("graph: malformed text is located", "[graph][text]") {
    SECTION("nothing") {
        CHECK(problem("") == "line 1, column 1: expected \"schedule\", found the end of the text");
    }
    SECTION("no header") {
        CHECK(problem("0: signal 1") == "line 1, column 1: expected \"schedule\", found \"0\"");
    }
    SECTION("unknown collective") {
        CHECK(problem("schedule allreduc x") ==
              "line 1, column 10: expected the name of a collective, found \"allreduc\"");
    }
    SECTION("header cut short") {
        CHECK(problem("schedule bcast x rank 0 of") ==
              "line 1, column 27: expected a rank, found the end of the line");
    }
    SECTION("text after the header") {
        CHECK(problem(std::string(kHeader.substr(0, kHeader.size() - 1)) + " inplace")
                  .find("expected the end of the line, found \"inplace\"") != std::string::npos);
    }
    SECTION("open quote") {
        CHECK(problem("schedule bcast \"x rank 0") ==
              "line 1, column 25: expected a closing quote, found the end of the line");
    }
    SECTION("escape") {
        CHECK(problem("schedule bcast \"\\n\"").find("expected one of") != std::string::npos);
    }
    SECTION("op number") {
        CHECK(op_problem("1: signal 1") == "line 2, column 1: expected op 0, found \"1\"");
    }
    SECTION("op kind") {
        CHECK(op_problem("0: sent to 1 input[0:8]") ==
              "line 2, column 4: expected send, recv, copy, reduce, signal, await, publish or "
              "share, found "
              "\"sent\"");
    }
    SECTION("buffer") {
        CHECK(op_problem("0: send to 1 inptu[0:8]") ==
              "line 2, column 14: expected input, output, scratch or flag_slot, found \"inptu\"");
    }
    SECTION("slice backwards") {
        CHECK(op_problem("0: send to 1 input[8:0]") ==
              "line 2, column 23: expected a slice that does not end before it begins, found "
              "\"]\"");
    }
    SECTION("number too large") {
        CHECK(op_problem("0: send to 1 input[0:99999999999999999999]")
                  .find("column 22: expected an end offset of at most") != std::string::npos);
    }
    SECTION("rank too large") {
        CHECK(op_problem("0: signal 4294967296").find("column 11: expected a rank of at most") !=
              std::string::npos);
    }
    SECTION("no arrow") {
        CHECK(op_problem("0: copy input[0:8] output[0:8]") ==
              "line 2, column 20: expected \"->\", found \"output\"");
    }
    SECTION("distance") {
        CHECK(op_problem("0: signal 1 after 0(-16)") ==
              "line 2, column 22: expected a number of iterations of at most 15, found \"16\"");
    }
    SECTION("nothing after \"after\"") {
        CHECK(op_problem("0: signal 1 after") ==
              "line 2, column 18: expected the number of an op, found the end of the line");
    }
    SECTION("repeat in the wrong place") {
        CHECK(op_problem("repeat 3..4 times 2 segment 8 last 8") ==
              "line 2, column 8: expected op 0, before which the repeat stands, found \"3\"");
    }
    SECTION("repeat that ends before it begins") {
        CHECK(op_problem("0: signal 1\nrepeat 1..0 times 2 segment 8 last 8") ==
              "line 3, column 13: expected a range that does not end before it begins, found "
              "\"times\"");
    }
    SECTION("repeat without its ops") {
        CHECK(op_problem("repeat 0..1 times 2 segment 8 last 8\n0: signal 1\n") ==
              "line 3: the repeat of ops 0..1 has no op 1 yet");
        CHECK(op_problem("repeat 0..1 times 2 segment 8 last 8\n0: signal 1\n"
                         "repeat 1..1 times 2 segment 8 last 8\n1: signal 1\n") ==
              "line 4: the repeat of ops 0..1 has no op 1 yet");
    }
    SECTION("trailing text") {
        CHECK(op_problem("0: signal 1 now") ==
              "line 2, column 13: expected the end of the line, found \"now\"");
    }
}

} // namespace
} // namespace ucg::graph
