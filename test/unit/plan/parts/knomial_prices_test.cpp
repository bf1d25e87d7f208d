#include <algorithm>
#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/plan/parts/knomial.hpp"
#include "ucg_coll/plan/parts/knomial_prices.hpp"

namespace ucg::plan {
namespace {

/// Prices in whole numbers, which floating point adds exactly.
struct Steps {
    bool overlaps = true;
    double pushed_ns = 0;

    TreeMessage message(const TreeChild& child) const {
        const double ns = 100 + 10 * child.members;
        return {ns, 7, overlaps, pushed_ns};
    }
    static double at_node(Rank members) { return members > 1 ? 3 : 0; }
    static double at_level(std::int64_t /*span*/, unsigned children) { return children; }
    static std::size_t level(std::int64_t /*span*/) { return 0; }
};

/// How many members the subtree below the member at `index` has, itself included.
Rank members_of(Rank count, Rank index, unsigned radix) {
    Rank members = 1;
    const KnomialNode node(count, 0, index, radix);
    for (const Rank child : node.children()) {
        members += members_of(count, child, radix);
    }
    return members;
}

/// The price downwards, computed member by member.
double down_ns(Rank count, Rank index, unsigned radix) {
    const KnomialNode node(count, 0, index, radix);
    double sent_ns = 0;
    double last_ns = 0;
    for (unsigned level = node.levels(); level-- > 0;) {
        for (const Rank child : node.children(level)) {
            const double ns = 100 + 10 * members_of(count, child, radix);
            last_ns = std::max(last_ns, sent_ns + ns + down_ns(count, child, radix));
            sent_ns += 7;
        }
    }
    return std::max(last_ns, sent_ns + Steps::at_node(members_of(count, index, radix)));
}

double up_ns(Rank count, Rank index, unsigned radix) {
    const KnomialNode node(count, 0, index, radix);
    double ns = Steps::at_node(members_of(count, index, radix));
    for (unsigned level = 0; level < node.levels(); ++level) {
        const auto children = node.children(level);
        for (const Rank child : children) {
            const double alone_ns = 100 + 10 * members_of(count, child, radix);
            ns = std::max(ns + 7, up_ns(count, child, radix) + alone_ns);
        }
        ns += children.empty() ? 0 : static_cast<double>(children.size());
    }
    return ns;
}

} // namespace

TEST_CASE("plan: a tree costs what its longest path does, member by member", "[plan][knomial]") {
    for (const unsigned radix : {2U, 3U, 5U, 8U}) {
        for (const Rank count : {1, 2, 3, 9, 12, 17, 64, 65}) {
            CAPTURE(radix, count);
            const Steps steps;
            CHECK(KnomialPrice(radix, steps).down_ns(count) == down_ns(count, 0, radix));
            CHECK(KnomialPrice(radix, steps).up_ns(count) == up_ns(count, 0, radix));
        }
    }
}

TEST_CASE("plan: a receiver takes messages that do not overlap one by one", "[plan][knomial]") {
    // The message from 1 ends at 3 + 110. 2 has by then taken what 3 sent, and its own takes 120
    // after that.
    CHECK(KnomialPrice(2, Steps{false, 0}).up_ns(4) == 3 + 110 + 1 + 120 + 1);
    // 1 has copied 3 of 60 when the root starts to copy with it, and each copies a half of the
    // rest: 31.5. Then 2, which has taken what 3 sent in the same way, begins together with the
    // root.
    CHECK(KnomialPrice(2, Steps{false, 60}).up_ns(4) == 31.5 + 1 + 120 + 1);
    // With three members, 2 has nothing to wait for: it has copied 32.5.
    CHECK(KnomialPrice(2, Steps{false, 60}).up_ns(3) == 32.5 + 27.5 / 2 + 1);
}

} // namespace ucg::plan
