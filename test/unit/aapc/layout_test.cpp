#include "test/support/catch.hpp"
#include "test/unit/aapc/trees.hpp"

namespace ucg::aapc {

TEST_CASE("aapc: the root of the paper's example is s1, its subtrees are the largest first",
          "[aapc][layout]") {
    const Layout layout(test::paper_tree());
    CHECK(layout.root() == 0);
    REQUIRE(layout.subtree_count() == 3);
    CHECK(layout.size(0) == 3);
    CHECK(layout.size(1) == 2);
    CHECK(layout.size(2) == 1);
    for (std::uint32_t member = 0; member < 6; ++member) {
        CHECK(layout.position(member) == member);
        CHECK(layout.member(member) == member);
    }
}

TEST_CASE("aapc: the root is where no branch holds more than half", "[aapc][layout]") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 500; ++i) {
        const Tree tree = test::random_tree(random, 1 + random() % 12, 2 + random() % 40);
        const Layout layout(tree);
        CHECK(2 * layout.size(0) <= layout.member_count());
        CHECK(layout.subtree_count() >= 2);
        for (std::uint32_t j = 1; j < layout.subtree_count(); ++j) {
            CHECK(layout.size(j) <= layout.size(j - 1));
        }
    }
}

TEST_CASE("aapc: two machines on one switch have it for their root", "[aapc][layout]") {
    CHECK(Layout({{kNone, 0, 0}, {1, 2}}).root() == 0);
    CHECK(Layout({{kNone, 0, 1, 1}, {2, 3}}).root() == 1);
    // The root is a machine where most of the ranks are.
    CHECK(Layout({{kNone, 0, 0}, {1, 1, 1, 2}}).root() == 1);
    CHECK(Layout({{kNone, 0, 0}, {1, 1, 2, 2}}).root() == 0);
}

TEST_CASE("aapc: what lies below a link is an interval, links in a row are one", "[aapc][layout]") {
    // Node 0 has children 1 and 2; 1 has child 3 alone, which has machines 4 and 5; 2 has machines
    // 6, 7 and 8.
    const Layout layout({{kNone, 0, 0, 1, 3, 3, 2, 2, 2}, {4, 5, 6, 7, 8}});
    CHECK(layout.root() == 2);
    REQUIRE(layout.subtree_count() == 4);
    CHECK(layout.size(0) == 2);
    REQUIRE(layout.links().size() == 6);
    const TreeLink& machine = layout.link(layout.innermost_link(1));
    CHECK(machine.below == Interval{1, 2});
    REQUIRE(machine.outer != kNone);
    CHECK(layout.link(machine.outer).below == Interval{0, 2});
    CHECK(layout.link(machine.outer).outer == kNone);
}

TEST_CASE("aapc: links are those of the tree, and nest", "[aapc][layout]") {
    std::mt19937_64 random(2);
    for (int i = 0; i < 200; ++i) {
        const Tree tree =
            test::random_tree_of_ranks(random, 1 + random() % 9, 2 + random() % 12, 3);
        const Layout layout(tree);
        for (Position from = 0; from < layout.member_count(); ++from) {
            for (std::uint32_t link = layout.innermost_link(from); link != kNone;
                 link = layout.link(link).outer) {
                const Interval below = layout.link(link).below;
                CHECK(below.contains(from));
                CHECK(below.count() < layout.member_count());
                if (const std::uint32_t outer = layout.link(link).outer; outer != kNone) {
                    CHECK(below.count() < layout.link(outer).below.count());
                }
                // Every message from one side of the link to the other passes it.
                for (Position to = 0; to < layout.member_count(); ++to) {
                    const bool leaves = !below.contains(to);
                    const bool passes =
                        !test::path(tree, layout.member(from), layout.member(to)).empty();
                    CHECK((!leaves || passes));
                }
            }
        }
    }
}

} // namespace ucg::aapc
