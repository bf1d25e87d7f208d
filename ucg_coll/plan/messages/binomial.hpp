// The binomial tree over a team, rooted anywhere: subtrees are runs of neighbours, so that a gather
// or scatter moves each in one piece.
#pragma once

#include <vector>

#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

class BinomialTree {
  public:
    /// Members first, first + 1, ... `count` of them, starting over after the last. The first is
    /// the subtree's root.
    struct Subtree {
        Rank first = 0;
        Rank count = 0;
    };

    BinomialTree(const Team& team, Rank root);

    /// This member's subtree.
    Subtree own() const { return own_; }
    /// Its children's subtrees, in the order of the members, that is, from the smallest (except
    /// perhaps the last).
    const std::vector<Subtree>& children() const { return children_; }
    /// kNoRank at the root.
    Rank parent() const { return parent_; }

  private:
    Subtree own_;
    std::vector<Subtree> children_;
    Rank parent_ = kNoRank;
};

} // namespace ucg::plan
