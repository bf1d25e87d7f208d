#include <vector>

#include "test/support/catch.hpp"
#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {
namespace {

std::vector<Rank> members(const Team& team) {
    std::vector<Rank> ranks;
    for (Rank index = 0; index < team.size(); ++index) {
        ranks.push_back(team.rank(index));
    }
    return ranks;
}

} // namespace

TEST_CASE("plan: a team starts at any of its members", "[plan][team]") {
    const Team team = Team::whole(5, 1).starting_at(3);
    CHECK(members(team) == std::vector<Rank>{3, 4, 0, 1, 2});
    CHECK(team.index() == 3);
    CHECK(members(team.starting_at(1)) == std::vector<Rank>{4, 0, 1, 2, 3});
    CHECK(team.starting_at(1).index() == 2);
    CHECK(members(Team::rotated(5, 1, 3)) == members(team));
}

TEST_CASE("plan: whoever stands in for a member does so wherever the team starts", "[plan][team]") {
    const std::vector<Rank> leaders = {0, 4, 8};
    const Team team = Team::of(leaders, 1).with(1, 5);
    CHECK(members(team.starting_at(1)) == std::vector<Rank>{5, 8, 0});
    CHECK(team.starting_at(1).index() == 0);
    CHECK(members(Team::of(leaders, 1).starting_at(1).with(0, 5)) == std::vector<Rank>{5, 8, 0});
}

} // namespace ucg::plan
