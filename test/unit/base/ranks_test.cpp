#include "test/support/catch.hpp"
#include "ucg_coll/base/ranks.hpp"

using ucg::Rank;
using ucg::Ranks;

TEST_CASE("base: ranks are those of a list, or consecutive", "[base][ranks]") {
    const std::vector<Rank> list = {7, 3, 9};
    const Ranks listed = list;
    CHECK(std::vector<Rank>(listed.begin(), listed.end()) == list);
    CHECK(listed.front() == 7);
    CHECK(listed[1] == 3);
    CHECK(listed.back() == 9);
    const Ranks three = Ranks::consecutive(5, 3);
    CHECK(std::vector<Rank>(three.begin(), three.end()) == std::vector<Rank>{5, 6, 7});
    CHECK(three.size() == 3);
    CHECK(three.back() == 7);
}

TEST_CASE("base: a rank is found among ranks that rise", "[base][ranks]") {
    const std::vector<Rank> list = {3, 7, 9};
    const Ranks listed = list;
    const Ranks consecutive = Ranks::consecutive(5, 3);
    for (Rank rank = 0; rank < 12; ++rank) {
        CHECK(listed.contains(rank) == (rank == 3 || rank == 7 || rank == 9));
        CHECK(consecutive.contains(rank) == (rank >= 5 && rank <= 7));
        CHECK_FALSE(Ranks().contains(rank));
    }
}

TEST_CASE("base: no ranks", "[base][ranks]") {
    CHECK(Ranks().empty());
    CHECK(Ranks::consecutive(4, 0).begin() == Ranks::consecutive(4, 0).end());
    const std::vector<Rank> none;
    CHECK(Ranks(none).empty());
}
