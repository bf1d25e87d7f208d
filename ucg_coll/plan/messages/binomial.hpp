// The binomial tree over a team, rooted anywhere: subtrees are runs of neighbours, so that a gather
// or scatter moves each in one piece.
#pragma once

#include <vector>

#include "ucg_coll/plan/parts/team.hpp"

namespace ucg::plan {

/// One member's place in the tree. Members are named by their index in the team.
class BinomialTree {
  public:
    /// A subtree: `count` members first, first + 1, ..., starting over after the team's last. Its
    /// root is `first`.
    struct Subtree {
        Rank first = 0;
        Rank count = 0;
    };

    BinomialTree(const Team& team, Rank root);

    /// The subtree whose root is this member.
    Subtree own() const { return own_; }
    /// The subtrees of this member's children, in the order of the members, that is, from the
    /// smallest to the largest (except that the last may be smaller).
    const std::vector<Subtree>& children() const { return children_; }
    /// The index of this member's parent; kNoRank at the root.
    Rank parent() const { return parent_; }

  private:
    Subtree own_;
    std::vector<Subtree> children_;
    Rank parent_ = kNoRank;
};

} // namespace ucg::plan
