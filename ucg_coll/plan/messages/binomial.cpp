#include "ucg_coll/plan/messages/binomial.hpp"

#include <algorithm>

namespace ucg::plan {

BinomialTree::BinomialTree(const Team& team, Rank root) {
    // Numbered from the root, node v has the children v + 2^k with 2^k below v's lowest bit.
    const auto count = std::int64_t{team.size()};
    const std::int64_t node = (team.index() - root + count) % count;
    const auto member = [&](std::int64_t v) { return static_cast<Rank>((v + root) % count); };
    const std::int64_t low_bit = node == 0 ? count : node & -node;
    const auto subtree = [&](std::int64_t v, std::int64_t reach) {
        return Subtree{member(v), static_cast<Rank>(std::min(reach, count - v))};
    };
    own_ = subtree(node, low_bit);
    for (std::int64_t bit = 1; bit < low_bit && node + bit < count; bit *= 2) {
        children_.push_back(subtree(node + bit, bit));
    }
    if (node != 0) {
        parent_ = member(node - low_bit);
    }
}

} // namespace ucg::plan
