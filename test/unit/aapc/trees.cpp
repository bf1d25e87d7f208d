#include "test/unit/aapc/trees.hpp"

#include <algorithm>
#include <array>

namespace ucg::aapc::test {
namespace {

/// A node of a tree: a switch has branches, a machine has none.
struct Shape {
    std::vector<Shape> branches;
};

using Branches = std::vector<Shape>;

std::vector<Shape> every_branch(std::uint32_t machines);

/// Every set of branches with `machines` machines in all. No branch has more than `largest`
/// machines, and those that have `largest` are numbered `from` or higher in every_branch(largest).
std::vector<Branches> every_set(std::uint32_t machines, std::uint32_t largest, std::size_t from) {
    if (machines == 0) {
        return {{}};
    }
    std::vector<Branches> sets;
    for (std::uint32_t size = std::min(largest, machines); size > 0; --size) {
        const std::vector<Shape> first = every_branch(size);
        for (std::size_t i = size == largest ? from : 0; i < first.size(); ++i) {
            for (Branches& rest : every_set(machines - size, size, i)) {
                rest.insert(rest.begin(), first[i]);
                sets.push_back(std::move(rest));
            }
        }
    }
    return sets;
}

/// Every branch with so many machines: a machine by itself, or a switch with several branches.
std::vector<Shape> every_branch(std::uint32_t machines) {
    if (machines == 1) {
        return {Shape{}};
    }
    std::vector<Shape> shapes;
    for (Branches& branches : every_set(machines, machines - 1, 0)) {
        shapes.push_back({std::move(branches)});
    }
    return shapes;
}

void append(Tree& tree, const Shape& shape, std::uint32_t parent) {
    const auto node = static_cast<std::uint32_t>(tree.parents.size());
    tree.parents.push_back(parent);
    if (shape.branches.empty()) {
        tree.member_nodes.push_back(node);
    }
    for (const Shape& branch : shape.branches) {
        append(tree, branch, node);
    }
}

/// The same tree with `top` as node 0.
Tree rerooted(const Tree& tree, std::uint32_t top) {
    std::vector<std::uint32_t> number(tree.parents.size(), kNone);
    std::vector<std::uint32_t> order = {top};
    Tree turned{{kNone}, tree.member_nodes};
    number[top] = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (std::uint32_t node = 0; node < number.size(); ++node) {
            const bool joined = tree.parents[node] == order[i] || tree.parents[order[i]] == node;
            if (joined && number[node] == kNone) {
                number[node] = static_cast<std::uint32_t>(order.size());
                order.push_back(node);
                turned.parents.push_back(static_cast<std::uint32_t>(i));
            }
        }
    }
    for (std::uint32_t& node : turned.member_nodes) {
        node = number[node];
    }
    return turned;
}

bool is_switch(const Tree& tree, std::uint32_t node) {
    return std::find(tree.member_nodes.begin(), tree.member_nodes.end(), node) ==
           tree.member_nodes.end();
}

} // namespace

Tree paper_tree() {
    return {{kNone, 0, 0, 1, 1, 1, 2, 2, 0}, {3, 4, 5, 6, 7, 8}};
}

Tree random_tree(std::mt19937_64& random, std::uint32_t switches, std::uint32_t machines) {
    Tree tree{{kNone}, {}};
    for (std::uint32_t node = 1; node < switches; ++node) {
        tree.parents.push_back(static_cast<std::uint32_t>(random() % node));
    }
    for (std::uint32_t machine = 0; machine < machines; ++machine) {
        tree.member_nodes.push_back(static_cast<std::uint32_t>(tree.parents.size()));
        tree.parents.push_back(static_cast<std::uint32_t>(random() % switches));
    }
    return tree;
}

Tree random_tree_of_ranks(std::mt19937_64& random, std::uint32_t switches, std::uint32_t machines,
                          std::uint32_t ranks_max) {
    Tree tree = random_tree(random, switches, machines);
    for (std::uint32_t machine = 0; machine < machines; ++machine) {
        const std::uint64_t more = random() % ranks_max;
        tree.member_nodes.insert(tree.member_nodes.end(), more, tree.member_nodes[machine]);
    }
    std::shuffle(tree.member_nodes.begin(), tree.member_nodes.end(), random);
    return tree;
}

std::vector<Tree> every_tree(std::uint32_t machines) {
    std::vector<Tree> trees;
    for (const Shape& shape : every_branch(machines)) {
        Tree tree;
        append(tree, shape, kNone);
        for (std::uint32_t node = 0; node < tree.parents.size(); ++node) {
            if (is_switch(tree, node)) {
                trees.push_back(rerooted(tree, node));
            }
        }
    }
    return trees;
}

std::vector<Edge> path(const Tree& tree, std::uint32_t from, std::uint32_t to) {
    std::vector<Edge> up;
    std::vector<Edge> down;
    std::uint32_t a = tree.member_nodes[from];
    std::uint32_t b = tree.member_nodes[to];
    while (a != b) { // Parents have lower numbers than their children.
        if (a > b) {
            up.push_back(2 * a);
            a = tree.parents[a];
        } else {
            down.push_back(2 * b + 1);
            b = tree.parents[b];
        }
    }
    up.insert(up.end(), down.rbegin(), down.rend());
    return up;
}

} // namespace ucg::aapc::test
