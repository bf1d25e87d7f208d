#include <string>

#include "test/support/catch.hpp"
#include "test/unit/aapc/trees.hpp"

namespace ucg::aapc {
namespace {

std::vector<std::string> names(std::uint32_t count) {
    std::vector<std::string> list;
    for (std::uint32_t i = 0; i < count; ++i) {
        list.push_back("n" + std::to_string(i));
    }
    return list;
}

Listed list_of(const Tree& tree) {
    const Layout layout(tree);
    return list_schedule(Phases(layout), names(layout.member_count()));
}

std::string refusal(std::string_view text) {
    return std::string(parse_listed(text).status().message());
}

/// The text of a list with `phases` for three machines, without synchronisations unless they are
/// given.
std::string three(std::string_view phases, std::string_view syncs = "syncs 0\n") {
    return fmt::format("aapc 1\nmachines 3\na\nb\nc\n{}{}", phases, syncs);
}

constexpr std::string_view kPhases = "phases 2\n0>1 1>2 2>0\n0>2 1>0 2>1\n";

} // namespace

TEST_CASE("aapc: lists are read back as they were printed", "[aapc][listed]") {
    std::mt19937_64 random(17);
    for (int i = 0; i < 50; ++i) {
        const auto switches = static_cast<std::uint32_t>(1 + random() % 6);
        const Listed listed = list_of(
            test::random_tree(random, switches, static_cast<std::uint32_t>(2 + random() % 20)));
        const Result<Listed> read = parse_listed(to_text(listed));
        INFO(read.status().message());
        REQUIRE(read.ok());
        CHECK(*read == listed);
        CHECK(hash_of(*read) == hash_of(listed));
    }
}

TEST_CASE("aapc: a machine's steps by a list have the list's synchronisations", "[aapc][listed]") {
    std::mt19937_64 random(18);
    for (int i = 0; i < 50; ++i) {
        const Listed listed =
            list_of(test::random_tree(random, static_cast<std::uint32_t>(1 + random() % 6),
                                      static_cast<std::uint32_t>(2 + random() % 12)));
        std::size_t awaits = 0;
        std::size_t signals = 0;
        for (Position machine = 0; machine < listed.machines.size(); ++machine) {
            const std::vector<MemberStep> steps = steps_of(listed, machine);
            CHECK(steps.size() == 2 * (listed.machines.size() - 1));
            for (const MemberStep& step : steps) {
                awaits += step.awaits.size();
                signals += step.signals.size();
            }
        }
        CHECK(awaits == listed.syncs.size());
        CHECK(signals == listed.syncs.size());
    }
}

TEST_CASE("aapc: comments, empty lines and line ends of Windows are no part of a list",
          "[aapc][listed]") {
    const Result<Listed> read = parse_listed(
        "# Ours.\r\n\r\naapc 1\r\n#\r\nmachines 2\r\na\r\nb.example\r\nphases 2\r\n0>1\r\n1>0\r\n"
        "syncs 0\r\n\r\n# The end.");
    INFO(read.status().message());
    REQUIRE(read.ok());
    CHECK(read->machines == std::vector<std::string>{"a", "b.example"});
    // A phase may be empty.
    CHECK(parse_listed("aapc 1\nmachines 2\na\nb\nphases 2\n\n0>1 1>0\nsyncs 0\n").ok());
}

TEST_CASE("aapc: what is no list is refused with its line", "[aapc][listed]") {
    CHECK(refusal("") == "line 1: expected 'aapc N', found the end of the text");
    CHECK(refusal("aapc 2\n") == "line 1: expected 'aapc N' with N from 1 to 1, found 'aapc 2'");
    CHECK(refusal("aapc 1\nmachines 1\na\n") ==
          "line 2: expected 'machines N' with N from 2 to 4096, found 'machines 1'");
    CHECK(refusal("aapc 1\nmachines 2\na\na\n") == "line 4: machine a is there twice");
    CHECK(refusal("aapc 1\nmachines 2\na b\n") == "line 3: 'a b' is no machine's name");
    CHECK(refusal("aapc 1\nmachines 2\na") ==
          "line 4: expected the name of machine 1 of 2, found the end");
    CHECK(refusal(three("phases 1\n0>3\n")) ==
          "line 7: expected a message S>T between two of 3 machines, found '0>3'");
    CHECK(refusal(three("phases 1\n1>1\n")) ==
          "line 7: expected a message S>T between two of 3 machines, found '1>1'");
    CHECK(refusal(three("phases 1\n0>1,1>2\n")) ==
          "line 7: expected a blank between messages, found ',1>2'");
    CHECK(refusal(three("phases 1\n0>1 0>2\n")) == "line 7: machine 0 sends twice in phase 0");
    CHECK(refusal(three("phases 1\n0>1 2>1\n")) == "line 7: machine 1 receives twice in phase 0");
    CHECK(refusal(three("phases 2\n0>1\n0>1\n")) == "line 8: message 0>1 is in phase 0 already");
    CHECK(refusal(three("phases 2\n0>1 1>2 2>0\n0>2 1>0\n")) ==
          "line 8: 5 of 6 messages are in a phase: 2>1 is not");
    CHECK(refusal(three("phases 2\n0>1 1>2 2>0\n")) ==
          "line 8: expected a message S>T between two of 3 machines, found 'syncs 0'");
    CHECK(refusal(three(kPhases, "syncs 1\n0>2 1>2\n")) ==
          "line 10: 1>2 of phase 0 cannot wait for 0>2 of phase 1");
    CHECK(refusal(three(kPhases, "syncs 1\n0>1 0>2\n")) ==
          "line 10: machine 0 sends its messages one after another anyway");
    CHECK(refusal(three(kPhases, "syncs 1\n0>1 2>1 x\n")) ==
          "line 10: expected the end of the line, found ' x'");
    CHECK(refusal(three(kPhases, "syncs 0\nmore\n")) ==
          "line 10: nothing comes after the synchronisations, found 'more'");
}

} // namespace ucg::aapc
