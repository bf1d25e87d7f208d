#include "ucg_coll/aapc/layout.hpp"

#include <algorithm>

namespace ucg::aapc {
namespace {

/// Returns, by node, the number of members at it and below it, seen from node 0.
std::vector<std::uint32_t> members_below(const Tree& tree) {
    std::vector<std::uint32_t> count(tree.parents.size(), 0);
    for (const std::uint32_t node : tree.member_nodes) {
        UCG_ASSERT(node < count.size());
        ++count[node];
    }
    for (std::size_t node = count.size(); node-- > 1;) {
        UCG_ASSERT(tree.parents[node] < node);
        count[tree.parents[node]] += count[node];
    }
    return count;
}

/// Returns the root. The nodes that hold more than half of the members, at them or below, are a way
/// down from node 0; from the last of them on, no branch holds more than half (lemma 1).
std::uint32_t find_root(const Tree& tree, const std::vector<std::uint32_t>& below) {
    std::uint32_t root = 0;
    for (std::uint32_t node = 1; node < below.size(); ++node) {
        if (tree.parents[node] == root && below[node] > below[0] / 2) {
            root = node; // Its children stand after it.
        }
    }
    return root;
}

/// A node that the walk has entered: where it came from, the neighbour to look at next, and the
/// first position found from here on.
struct Visit {
    std::uint32_t node = 0;
    std::uint32_t came_from = kNone;
    std::size_t next_neighbour = 0;
    Position begin = 0;
};

/// What was found in one subtree of the root, in depth-first order.
struct Branch {
    std::vector<std::uint32_t> members;
    /// Positions count from the subtree's first. Inner ones come first.
    std::vector<TreeLink> links;
};

/// Nodes or members, by node.
using Lists = std::vector<std::vector<std::uint32_t>>;

/// Walks the subtree of `root` that begins with node `from`, depth first without recursion, since
/// trees may be deep.
Branch walk(const Lists& neighbours, const Lists& members_at, std::uint32_t root,
            std::uint32_t from) {
    Branch branch;
    std::vector<Visit> path;
    std::vector<std::uint32_t> open; // Links whose outer link is not known yet.
    const auto enter = [&](std::uint32_t node, std::uint32_t came_from) {
        path.push_back({node, came_from, 0, static_cast<Position>(branch.members.size())});
        branch.members.insert(branch.members.end(), members_at[node].begin(),
                              members_at[node].end());
    };
    enter(from, root);
    while (!path.empty()) {
        Visit& here = path.back();
        if (here.next_neighbour < neighbours[here.node].size()) {
            const std::uint32_t next = neighbours[here.node][here.next_neighbour++];
            if (next != here.came_from) {
                enter(next, here.node);
            }
            continue;
        }
        const Interval below{here.begin, static_cast<Position>(branch.members.size())};
        path.pop_back();
        const bool repeats = !open.empty() && branch.links[open.back()].below == below;
        if (below.count() == 0 || repeats) {
            continue;
        }
        const auto link = static_cast<std::uint32_t>(branch.links.size());
        while (!open.empty() && branch.links[open.back()].below.begin >= below.begin) {
            branch.links[open.back()].outer = link;
            open.pop_back();
        }
        branch.links.push_back({below, kNone});
        open.push_back(link);
    }
    return branch;
}

/// Returns every node's children, and then its parent.
Lists list_neighbours(const Tree& tree) {
    Lists neighbours(tree.parents.size());
    for (std::uint32_t node = 1; node < tree.parents.size(); ++node) {
        neighbours[tree.parents[node]].push_back(node);
    }
    for (std::uint32_t node = 1; node < tree.parents.size(); ++node) {
        neighbours[node].push_back(tree.parents[node]);
    }
    return neighbours;
}

/// Returns the root's subtrees, the largest first; members at the root are subtrees of their own.
std::vector<Branch> find_branches(const Tree& tree, std::uint32_t root) {
    const Lists neighbours = list_neighbours(tree);
    Lists members_at(tree.parents.size());
    for (std::uint32_t member = 0; member < tree.member_nodes.size(); ++member) {
        members_at[tree.member_nodes[member]].push_back(member);
    }
    std::vector<Branch> branches;
    for (const std::uint32_t member : members_at[root]) {
        branches.push_back({{member}, {}});
    }
    for (const std::uint32_t node : neighbours[root]) {
        branches.push_back(walk(neighbours, members_at, root, node));
    }
    std::stable_sort(branches.begin(), branches.end(), [](const Branch& a, const Branch& b) {
        return a.members.size() > b.members.size();
    });
    while (branches.back().members.empty()) {
        branches.pop_back();
    }
    return branches;
}

} // namespace

Layout::Layout(const Tree& tree) {
    UCG_ASSERT(!tree.parents.empty() && !tree.member_nodes.empty());
    root_ = find_root(tree, members_below(tree));
    first_.push_back(0);
    positions_.resize(tree.member_nodes.size());
    for (const Branch& branch : find_branches(tree, root_)) {
        const auto begin = static_cast<Position>(members_.size());
        const auto first_link = static_cast<std::uint32_t>(links_.size());
        for (const std::uint32_t member : branch.members) {
            positions_[member] = static_cast<Position>(members_.size());
            members_.push_back(member);
            node_.push_back(tree.member_nodes[member]);
            subtree_of_.push_back(static_cast<std::uint32_t>(first_.size()) - 1);
        }
        for (const TreeLink& link : branch.links) {
            links_.push_back({{begin + link.below.begin, begin + link.below.end},
                              link.outer == kNone ? kNone : first_link + link.outer});
        }
        first_.push_back(static_cast<Position>(members_.size()));
    }
    innermost_.resize(members_.size(), kNone);
    for (std::uint32_t link = static_cast<std::uint32_t>(links_.size()); link-- > 0;) {
        const Interval& below = links_[link].below; // Outer links come after inner ones.
        std::fill(innermost_.begin() + below.begin, innermost_.begin() + below.end, link);
    }
}

} // namespace ucg::aapc
