#include "test/support/catch.hpp"
#include "ucg_coll/plan/halving.hpp"

namespace ucg::plan {

TEST_CASE("plan: halving cuts at elements, the lower half has the odd one", "[plan][halving]") {
    const Halving halving(7 * 8, 8);
    CHECK(halving.kept(0, 1).length == 56);
    CHECK(halving.kept(0, 2).length == 32);
    CHECK(halving.kept(1, 2).offset == 32);
    CHECK(halving.kept(1, 2).length == 24);
    CHECK(halving.kept(3, 4).offset == 48);
    CHECK(halving.kept(3, 4).length == 8);
    CHECK(halving.kept(3, 8).length == 8);
    CHECK(halving.kept(7, 8).length == 0);
}

TEST_CASE("plan: a fold leaves a power of two, in rank order", "[plan][fold]") {
    for (const Rank count : {1, 2, 3, 6, 7, 12, 31, 33}) {
        for (const Rank kept : {kNoRank, 0, count / 2, count - 1}) {
            Rank acting = 0;
            for (Rank index = 0; index < count; ++index) {
                const Fold fold(Team::whole(count, index), kept);
                CHECK((fold.acts() || fold.partner() != kNoRank));
                if (index == kept) {
                    CHECK(fold.acts());
                }
                if (fold.acts()) {
                    CHECK(fold.position() == acting++);
                    CHECK(fold.member(fold.position()) == index);
                }
            }
            CHECK(acting == Fold(Team::whole(count, 0)).size());
        }
    }
}

} // namespace ucg::plan
