#include "test/support/catch.hpp"
#include "test/unit/graph/schedules.hpp"

namespace ucg::graph {
namespace {

TEST_CASE("graph: JSON comes back as it was", "[graph][json]") {
    const auto seed = GENERATE(range(0U, 200U));
    const Schedule schedule = test::random_schedule(seed);
    for (const int indent : {-1, 2}) {
        const Result<Schedule> parsed = parse_json(to_json(schedule, indent));
        INFO(parsed.status().message());
        REQUIRE(parsed.ok());
        CHECK(*parsed == schedule);
    }
}

TEST_CASE("graph: malformed JSON names the path", "[graph][json]") {
    const std::string good =
        to_json(test::programs({test::request(Collective::allreduce, 1, 8)},
                               "rank scratch 8\n"
                               "copy input[0:8] -> scratch[0:8]\n"
                               "reduce input[0:8] scratch[0:8] -> output[0:8] after 0")[0],
                -1);
    REQUIRE(parse_json(good).ok());
    const auto with = [&](std::string_view from, std::string_view to) {
        std::string text = good;
        const std::size_t at = text.find(from);
        REQUIRE(at != std::string::npos);
        text.replace(at, from.size(), to);
        return std::string(parse_json(text).status().message());
    };
    SECTION("not JSON") {
        CHECK(with("{", "(").rfind("document: ", 0) == 0);
    }
    SECTION("not an object") {
        CHECK(parse_json("[]").status().message() == "document: expected an object");
    }
    SECTION("negative") {
        CHECK(with("\"offset\":0", "\"offset\":-1") ==
              "ops[0].source.offset: expected a non-negative integer");
    }
    SECTION("unknown name") {
        CHECK(with("\"copy\"", "\"move\"") ==
              "ops[0].kind: expected one of send, recv, copy, reduce, signal, await, publish, "
              "share");
    }
    SECTION("missing") {
        CHECK(with("\"rank\":0,", "") == "rank: expected a non-negative integer");
    }
    SECTION("misspelt") {
        CHECK(with("\"after\"", "\"aftr\"") == "ops[1].aftr: expected no such member");
    }
    SECTION("too large") {
        CHECK(with("\"after\":[{\"op\":0", "\"after\":[{\"op\":268435456") ==
              "ops[1].after[0].op: expected an integer of at most 268435455");
    }
    SECTION("wrong type") {
        CHECK(with("\"in_place\":false", "\"in_place\":0") == "in_place: expected true or false");
    }
    SECTION("not an array") {
        CHECK(with("\"operands\":[", "\"operands\":7,\"target\":[").find("ops[1]") == 0);
    }
}

} // namespace
} // namespace ucg::graph
