// The k-nomial tree over the members of a team. A member's parent is its own number, counted from
// the root, with the lowest digit in base k that is not 0 replaced by 0; so every subtree holds
// consecutive numbers, and subtrees follow one another in the order of the children.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::plan {

/// One member's place in the tree. Members are named by their index in the team.
class KnomialNode {
  public:
    /// REQUIRES: 0 <= root, index < count; radix >= 2.
    KnomialNode(Rank count, Rank root, Rank index, unsigned radix);

    /// Returns the parent; kNoRank at the root.
    Rank parent() const { return parent_; }
    /// Returns all children, those with the smallest subtrees first, in the order of their numbers.
    std::span<const Rank> children() const& { return children_; }
    std::span<const Rank> children() const&& = delete; // The node would die before the span.
    /// Returns how many levels the children have. The children of one level have subtrees of
    /// radix^level members; the last subtrees may have fewer.
    unsigned levels() const { return static_cast<unsigned>(level_begin_.size()) - 1; }
    std::span<const Rank> children(unsigned level) const&;

  private:
    Rank parent_ = kNoRank;
    std::vector<Rank> children_;
    std::vector<std::uint32_t> level_begin_ = {0}; // Into children_, levels() + 1 entries.
};

} // namespace ucg::plan
