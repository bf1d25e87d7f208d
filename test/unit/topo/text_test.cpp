// The text forms of machines and placements: golden text, round trips, and the messages for
// malformed text.
#include <random>

#include "test/support/catch.hpp"
#include "topo/topo.hpp"

using namespace ucg;
using namespace ucg::topo;

TEST_CASE("topo: the text of a machine", "[topo][text]") {
    const std::string text = "machine cores 2 l2_bytes 1048576 l3_bytes 0 memory_bytes 8589934592\n"
                             "core 0: package 0 numa 0 l3 0 l2 0 threads 0,2\n"
                             "core 1: package 0 numa 1 l3 1 l2 1 threads none\n";
    const Machine machine({{.threads = {0, 2}}, {.numa = 1, .l3 = 1, .l2 = 1, .threads = {}}},
                          {.l2_bytes = 1 << 20, .l3_bytes = 0, .memory_bytes = 8ULL << 30});
    CHECK(to_text(machine) == text);
    const Result<Machine> parsed = parse_machine(text);
    REQUIRE(parsed.ok());
    CHECK(*parsed == machine);
    SECTION("blanks, comments and empty lines do not count") {
        const Result<Machine> loose =
            parse_machine("# A machine.\r\n\n  machine cores 2 l2_bytes 1048576 l3_bytes 0 "
                          "memory_bytes 8589934592 #\n"
                          "core 0 : package 0 numa 0 l3 0 l2 0 threads 0 , 2\n\t\n"
                          "core 1: package 0 numa 1 l3 1 l2 1 threads none");
        INFO(loose.status().message());
        REQUIRE(loose.ok());
        CHECK(*loose == machine);
    }
    SECTION("a machine of which nothing is known") {
        const Result<Machine> empty = parse_machine(to_text(Machine()));
        REQUIRE(empty.ok());
        CHECK(*empty == Machine());
    }
}

TEST_CASE("topo: machines of all shapes come back from their text", "[topo][text]") {
    const auto description = GENERATE(
        "package:2 numa:1 l3:1 core:6 pu:1", "package:4 numa:1 l3:1 l2:8 core:1 pu:2",
        "package:2 numa:4 l3:2 core:8 pu:2", "numa:1 pu:1", "package:1 numa:2 l2:8 core:2 pu:4");
    const Result<Machine> machine = machine_from_synthetic(description);
    REQUIRE(machine.ok());
    const Result<Machine> again = parse_machine(to_text(*machine));
    REQUIRE(again.ok());
    CHECK(*again == *machine);
}

TEST_CASE("topo: malformed machines are refused with the place and what was expected",
          "[topo][text][malformed]") {
    const std::string header = "machine cores 2 l2_bytes 0 l3_bytes 0 memory_bytes 0\n";
    const std::string core0 = "core 0: package 0 numa 0 l3 0 l2 0 threads 0\n";
    const auto message = [](const std::string& text) {
        const Result<Machine> machine = parse_machine(text);
        REQUIRE_FALSE(machine.ok());
        CHECK(machine.status().code() == Code::invalid_argument);
        return std::string(machine.status().message());
    };
    SECTION("nothing") {
        CHECK(message("\n# only a comment\n") ==
              "line 1, column 1: expected \"machine\", found nothing");
    }
    SECTION("another header") {
        CHECK(message("machines cores 1") ==
              "line 1, column 1: expected \"machine\", found \"machines\"");
    }
    SECTION("a header that ends early") {
        CHECK(message("machine cores 2 l2_bytes 0\n") ==
              "line 1, column 27: expected \"l3_bytes\", found the end of the line");
    }
    SECTION("a negative count") {
        CHECK(message("machine cores -2 l2_bytes 0\n") ==
              "line 1, column 15: expected a count of cores, found \"-2\"");
    }
    SECTION("more cores than any machine has") {
        CHECK(message("machine cores 4000000000 l2_bytes 0\n") ==
              "line 1, column 15: expected a count of cores of at most 1048576, found "
              "\"4000000000\"");
    }
    SECTION("a number beyond 64 bits") {
        CHECK(
            message("machine cores 2 l2_bytes 99999999999999999999\n") ==
            "line 1, column 26: expected a number of bytes of at most 18446744073709551615, found "
            "\"99999999999999999999\"");
    }
    SECTION("a core out of order") {
        CHECK(message(header + "core 1: package 0 numa 0 l3 0 l2 0 threads 0\n") ==
              "line 2, column 6: expected core 0, found core 1");
    }
    SECTION("a package that cannot be") {
        CHECK(message(header + "core 0: package 2 numa 0 l3 0 l2 0 threads 0\n") ==
              "line 2, column 17: expected a package's number of at most 1, found \"2\"");
    }
    SECTION("letters for a number") {
        CHECK(message(header + "core 0: package 0 numa x l3 0 l2 0 threads 0\n") ==
              "line 2, column 24: expected a NUMA domain's number, found \"x\"");
    }
    SECTION("a list that ends with a comma") {
        CHECK(message(header + "core 0: package 0 numa 0 l3 0 l2 0 threads 0,\n") ==
              "line 2, column 46: expected a CPU's number, found the end of the line");
    }
    SECTION("words behind the line") {
        CHECK(message(header + "core 0: package 0 numa 0 l3 0 l2 0 threads 0 1\n") ==
              "line 2, column 46: expected the end of the line, found \"1\"");
    }
    SECTION("one CPU of two cores") {
        CHECK(message(header + core0 + "core 1: package 0 numa 0 l3 0 l2 1 threads 0\n") ==
              "line 3, column 44: expected a CPU of core 1 alone, found CPU 0, which core 0 has");
    }
    SECTION("too few cores") {
        CHECK(message(header + core0) == "expected 2 cores, found the end of the text after 1");
    }
    SECTION("too many cores") {
        CHECK(message(header + core0 + "core 1: package 0 numa 0 l3 0 l2 1 threads 1\n" + core0) ==
              "line 4, column 1: expected the end of the text after 2 cores, found another line");
    }
}

TEST_CASE("topo: the text of a placement", "[topo][text]") {
    const std::string text = "rank 0: host 0 package 1 numa 2 cache 3 core 4\n"
                             "rank 1: host 0 package 1 numa 2 cache 3\n"
                             "rank 2: host 1 package 1\n"
                             "rank 3: host 1\n";
    const Placement placement({{0, 1, 2, 3, 4, Distance::core},
                               {0, 1, 2, 3, 0, Distance::cache},
                               {1, 1, 0, 0, 0, Distance::package},
                               {1, 0, 0, 0, 0, Distance::host}});
    CHECK(to_text(placement) == text);
    const Result<Placement> parsed = parse_placement(text);
    REQUIRE(parsed.ok());
    CHECK(*parsed == placement);
    REQUIRE(parse_placement("").ok());
    CHECK(parse_placement("")->rank_count() == 0);
}

TEST_CASE("topo: random placements come back from their text", "[topo][text]") {
    const auto seed = GENERATE(range(1U, 21U));
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t limit) {
        return static_cast<std::uint32_t>(random() % limit);
    };
    std::vector<Place> places(below(200));
    for (Place& place : places) {
        place = {below(9), below(2),  below(4),
                 below(8), below(64), static_cast<Distance>(below(kDistanceCount - 1))};
    }
    const Placement placement(places);
    const Result<Placement> again = parse_placement(to_text(placement));
    INFO("seed " << seed << ": " << again.status().message());
    REQUIRE(again.ok());
    CHECK(*again == placement);
}

TEST_CASE("topo: malformed placements are refused with the place and what was expected",
          "[topo][text][malformed]") {
    const auto message = [](const std::string& text) {
        const Result<Placement> placement = parse_placement(text);
        REQUIRE_FALSE(placement.ok());
        CHECK(placement.status().code() == Code::invalid_argument);
        return std::string(placement.status().message());
    };
    const std::string first = "rank 0: host 0\n";
    SECTION("another word") {
        CHECK(message(first + "node 1: host 0\n") ==
              "line 2, column 1: expected \"rank\", found \"node\"");
    }
    SECTION("a rank missing") {
        CHECK(message(first + "\nrank 2: host 0\n") ==
              "line 3, column 6: expected rank 1, found rank 2");
    }
    SECTION("a rank beyond what a group can have") {
        CHECK(message("rank 2147483647: host 0\n") ==
              "line 1, column 6: expected a rank of at most 2147483646, found \"2147483647\"");
    }
    SECTION("no colon") {
        CHECK(message("rank 0 host 0\n") == "line 1, column 8: expected \":\", found \"host\"");
    }
    SECTION("no host") {
        CHECK(message("rank 0: package 0\n") ==
              "line 1, column 9: expected \"host\", found \"package\"");
    }
    SECTION("no number") {
        CHECK(message("rank 0: host\n") ==
              "line 1, column 13: expected a host's number, found the end of the line");
    }
    SECTION("a level left out") {
        CHECK(message("rank 0: host 0 package 1 cache 2\n") ==
              "line 1, column 26: expected \"numa\" or the end of the line, found \"cache\"");
    }
    SECTION("a fraction") {
        CHECK(message("rank 0: host 0.5\n") ==
              "line 1, column 14: expected a host's number, found \"0.5\"");
    }
    SECTION("a level twice") {
        CHECK(message("rank 0: host 0 package 1 numa 2 cache 3 core 4 core 5\n") ==
              "line 1, column 48: expected the end of the line, found \"core\"");
    }
    SECTION("a long word is cut") {
        CHECK(message(std::string(100, 'x')) ==
              "line 1, column 1: expected \"rank\", found \"" + std::string(40, 'x') + "\"...");
    }
}

TEST_CASE("topo: damaged text is refused or read, and what is read prints as itself",
          "[topo][text][malformed]") {
    const auto seed = GENERATE(range(1U, 201U));
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto damage = [&](std::string text) {
        static constexpr std::string_view kBytes = "0123456789,:# \n\t-xrank\xff";
        for (std::uint32_t i = random() % 4; i > 0; --i) {
            const std::size_t at = random() % text.size();
            switch (random() % 3) {
            case 0: text[at] = kBytes[random() % kBytes.size()]; break;
            case 1: text.erase(at, random() % 8); break;
            default: text.insert(at, text.substr(random() % text.size(), random() % 8)); break;
            }
        }
        return text;
    };
    const Result<Machine> machine = machine_from_synthetic("package:2 l3:2 core:2 pu:2");
    REQUIRE(machine.ok());
    const Result<Machine> damaged_machine = parse_machine(damage(to_text(*machine)));
    if (damaged_machine.ok()) {
        CHECK(*parse_machine(to_text(*damaged_machine)) == *damaged_machine);
    } else {
        CHECK_FALSE(damaged_machine.status().message().empty());
    }
    const Placement placement = Placement::packed(*machine, 3, 5);
    const Result<Placement> damaged_placement = parse_placement(damage(to_text(placement)));
    if (damaged_placement.ok()) {
        CHECK(*parse_placement(to_text(*damaged_placement)) == *damaged_placement);
    } else {
        CHECK_FALSE(damaged_placement.status().message().empty());
    }
}
