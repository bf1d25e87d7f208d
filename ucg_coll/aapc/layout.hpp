// A tree of links as the schedule sees it: its root, the subtrees of the root, largest first, and
// the members numbered in depth-first order within them, so that what lies below any link is an
// interval of numbers. Faraj, Yuan, "Message scheduling for all-to-all personalized communication
// on Ethernet switched clusters", IPDPS 2005, sections 3, 4.1 and 4.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::aapc {

inline constexpr std::uint32_t kNone = 0xffffffffU;

/// The switches and machines, and the members that take part. Each node but the first has a link to
/// its parent, whose number is lower than its own. Members (ranks, or machines of one rank) have no
/// link of their own: those of one node reach one another without the network.
struct Tree {
    std::vector<std::uint32_t> parents;      ///< By node: its parent; kNone for node 0.
    std::vector<std::uint32_t> member_nodes; ///< By member: its node.

    bool operator==(const Tree&) const = default;
};

/// A member's number in the schedule's order.
using Position = std::uint32_t;

/// Positions [begin, end).
struct Interval {
    Position begin = 0;
    Position end = 0;

    std::uint32_t count() const { return end - begin; }
    bool contains(Position position) const { return begin <= position && position < end; }
    bool operator==(const Interval&) const = default;
};

/// A link of the tree. Links below which no member or every member lies are left out, and links in
/// a row without a branch are one.
struct TreeLink {
    Interval below;              ///< The members on the side away from the root.
    std::uint32_t outer = kNone; ///< The next link on the way to the root.

    bool operator==(const TreeLink&) const = default;
};

/// The root of a tree, the root's subtrees and the order of the members. Takes memory and (but for
/// sorting the root's subtrees) time proportional to the nodes and members.
class Layout {
  public:
    /// REQUIRES: a tree as described, with at least one member.
    explicit Layout(const Tree& tree);

    /// Returns |M|, the number of members.
    std::uint32_t member_count() const { return static_cast<std::uint32_t>(members_.size()); }
    /// Returns the node whose subtrees are t_0, t_1, ...: the first one, from node 0 down, that has
    /// no link with more than half of the members beyond it (lemma 1).
    std::uint32_t root() const { return root_; }
    /// Returns k, the number of the root's subtrees.
    std::uint32_t subtree_count() const { return static_cast<std::uint32_t>(first_.size()) - 1; }
    /// Returns |M_i|, the number of members of subtree t_i. It does not increase with i.
    std::uint32_t size(std::uint32_t subtree) const {
        return first_[subtree + 1] - first_[subtree];
    }
    /// Returns the first position of t_i, |M_0| + ... + |M_i-1|; for i = k, the number of members.
    Position first(std::uint32_t subtree) const { return first_[subtree]; }
    std::uint32_t subtree_of(Position position) const { return subtree_of_[position]; }

    std::uint32_t member(Position position) const { return members_[position]; }
    Position position(std::uint32_t member) const { return positions_[member]; }

    std::span<const TreeLink> links() const { return links_; }
    const TreeLink& link(std::uint32_t index) const { return links_[index]; }
    /// Returns the innermost link above a position; kNone at the root.
    std::uint32_t innermost_link(Position position) const { return innermost_[position]; }
    /// Returns whether messages between the two stay within a node.
    bool on_one_node(Position a, Position b) const { return node_[a] == node_[b]; }

  private:
    std::uint32_t root_ = 0;
    std::vector<Position> first_;
    std::vector<std::uint32_t> subtree_of_;
    std::vector<std::uint32_t> members_;
    std::vector<Position> positions_;
    std::vector<std::uint32_t> node_;
    std::vector<std::uint32_t> innermost_;
    std::vector<TreeLink> links_;
};

} // namespace ucg::aapc
