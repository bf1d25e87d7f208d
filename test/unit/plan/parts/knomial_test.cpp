#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/plan/parts/knomial.hpp"

namespace ucg::plan {
namespace {

std::vector<Rank> children(const KnomialNode& node) {
    return {node.children().begin(), node.children().end()};
}

} // namespace

TEST_CASE("plan: the binomial tree of eight", "[plan][knomial]") {
    CHECK(children(KnomialNode(8, 0, 0, 2)) == std::vector<Rank>{1, 2, 4});
    CHECK(children(KnomialNode(8, 0, 4, 2)) == std::vector<Rank>{5, 6});
    CHECK(KnomialNode(8, 0, 6, 2).parent() == 4);
    CHECK(KnomialNode(8, 0, 0, 2).parent() == kNoRank);
}

TEST_CASE("plan: a wider tree rooted elsewhere", "[plan][knomial]") {
    const KnomialNode root(10, 7, 7, 3);
    CHECK(root.parent() == kNoRank);
    // These have the numbers 1, 2, 3, 6 and 9.
    CHECK(children(root) == std::vector<Rank>{8, 9, 0, 3, 6});
    CHECK(root.levels() == 3);
    CHECK(KnomialNode(10, 7, 3, 3).parent() == 7);
    CHECK(children(KnomialNode(10, 7, 3, 3)) == std::vector<Rank>{4, 5});
}

TEST_CASE("plan: parents and children agree, in every tree", "[plan][knomial]") {
    for (const unsigned radix : {2U, 3U, 5U, 8U}) {
        for (const Rank count : {1, 2, 3, 9, 17, 64, 65}) {
            const Rank root = count / 3;
            Rank edges = 0;
            for (Rank index = 0; index < count; ++index) {
                for (const Rank child : children(KnomialNode(count, root, index, radix))) {
                    CHECK(KnomialNode(count, root, child, radix).parent() == index);
                    ++edges;
                }
            }
            CHECK(edges == count - 1);
        }
    }
}

} // namespace ucg::plan
