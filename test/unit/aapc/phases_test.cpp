#include <map>
#include <string>

#include "test/support/catch.hpp"
#include "test/unit/aapc/trees.hpp"

namespace ucg::aapc {
namespace {

/// Every message in its phase, as found by Phases::of.
std::vector<std::vector<PhaseMessage>> list_phases(const Phases& phases) {
    std::vector<std::vector<PhaseMessage>> list(phases.count());
    for (const Use& use : all_messages(phases)) {
        REQUIRE(use.phase < phases.count());
        list[use.phase].push_back(use.message);
    }
    return list;
}

/// Checks that every phase is free of contention, and that looking up a phase gives the messages
/// that name it as theirs.
void check(const Tree& tree) {
    const Layout layout(tree);
    const Phases phases(layout);
    REQUIRE(phases.count() ==
            std::uint64_t{layout.size(0)} * (layout.member_count() - layout.size(0)));
    const std::vector<std::vector<PhaseMessage>> list = list_phases(phases);
    for (std::uint64_t phase = 0; phase < phases.count(); ++phase) {
        std::map<test::Edge, PhaseMessage> passed;
        for (const PhaseMessage& message : list[phase]) {
            for (const test::Edge edge :
                 test::path(tree, layout.member(message.source), layout.member(message.target))) {
                REQUIRE(passed.emplace(edge, message).second);
            }
        }
        std::size_t found = 0;
        for (std::uint32_t i = 0; i < layout.subtree_count(); ++i) {
            for (const auto& message : {phases.leaving(i, phase), phases.local(i, phase)}) {
                found += message.has_value();
                REQUIRE((!message || phases.of(*message) == phase));
            }
            const auto entering = phases.entering(i, phase);
            REQUIRE((!entering || phases.of(*entering) == phase));
            REQUIRE((!entering || layout.subtree_of(entering->target) == i));
        }
        REQUIRE(found == list[phase].size());
    }
}

std::string row(const Phases& phases, std::uint64_t phase) {
    std::string text;
    const auto append = [&](const std::optional<PhaseMessage>& message) {
        if (message) {
            text += text.empty() ? "" : " ";
            text += std::to_string(message->source) + std::to_string(message->target);
        }
    };
    for (std::uint32_t i = 0; i < 3; ++i) {
        append(phases.leaving(i, phase));
    }
    for (std::uint32_t i = 0; i < 3; ++i) {
        append(phases.local(i, phase));
    }
    return text;
}

} // namespace

TEST_CASE("aapc: the paper's example gives its table 4", "[aapc][phases]") {
    const Layout layout(test::paper_tree());
    const Phases phases(layout);
    REQUIRE(phases.count() == 9);
    const std::vector<std::string> expected = {
        "04 35 51 10", "13 45 52 21", "24 50 02",    "03 32 20", "14 30 01 43",
        "23 31 12",    "05 40",       "15 41 53 34", "25 42 54",
    };
    for (std::uint64_t phase = 0; phase < phases.count(); ++phase) {
        CHECK(row(phases, phase) == expected[phase]);
    }
}

TEST_CASE("aapc: the rotate pattern gives table 2 of the paper", "[aapc][phases]") {
    // The subtrees have six, six and four machines: t_0 -> t_2 begins at phase 36, after t_0 ->
    // t_1.
    Tree tree{{kNone, 0, 0, 0}, {}};
    for (std::uint32_t i = 0; i < 16; ++i) {
        tree.member_nodes.push_back(static_cast<std::uint32_t>(tree.parents.size()));
        tree.parents.push_back(1 + i / 6);
    }
    const Layout layout(tree);
    const Phases phases(layout);
    REQUIRE(layout.size(0) == 6);
    REQUIRE(phases.group_begin(0, 2) == 36);
    for (std::uint32_t place = 0; place < 24; ++place) {
        const auto message = phases.leaving(0, 36 + place);
        REQUIRE(message);
        CHECK(message->source == (place + place / 12) % 6);
        CHECK(message->target == 12 + place % 4);
    }
    check(tree);
}

TEST_CASE("aapc: no contention in any phase, every message once", "[aapc][phases][thorough]") {
    std::mt19937_64 random(20050404);
    for (int i = 0; i < 1000; ++i) {
        const auto machines = static_cast<std::uint32_t>(2 + random() % 63);
        check(test::random_tree(random, static_cast<std::uint32_t>(1 + random() % 20), machines));
    }
}

TEST_CASE("aapc: no contention with several ranks on a machine", "[aapc][phases]") {
    std::mt19937_64 random(20050405);
    for (int i = 0; i < 200; ++i) {
        const auto machines = static_cast<std::uint32_t>(2 + random() % 14);
        check(test::random_tree_of_ranks(random, static_cast<std::uint32_t>(1 + random() % 6),
                                         machines, 5));
    }
}

TEST_CASE("aapc: no contention on any tree of up to seven machines", "[aapc][phases]") {
    CHECK(test::every_tree(4).size() > 5);
    for (std::uint32_t machines = 2; machines <= 7; ++machines) {
        for (const Tree& tree : test::every_tree(machines)) {
            check(tree);
        }
    }
}

} // namespace ucg::aapc
