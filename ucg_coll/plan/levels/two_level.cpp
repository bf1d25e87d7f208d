#include "ucg_coll/plan/levels/two_level.hpp"

namespace ucg::plan {

TwoLevels::TwoLevels(const Facts& facts, Rank rank, Rank root)
    : host_(Team::of(facts.placement.ranks_on(facts.placement.host(rank)),
                     facts.placement.index_on_host(rank))),
      leaders_(Team::of(facts.placement.leaders(), static_cast<Rank>(facts.placement.host(rank)))) {
    if (root == kNoRank) {
        return;
    }
    root_host_ = static_cast<Rank>(facts.placement.host(root));
    leaders_ = leaders_.with(root_host_, root);
    if (facts.placement.same_host(rank, root)) {
        host_leader_ = facts.placement.index_on_host(root);
    }
}

} // namespace ucg::plan
