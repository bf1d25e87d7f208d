// Trees of switches and machines, for tests that schedule an alltoall on them.
#pragma once

#include <random>
#include <vector>

#include "ucg_coll/aapc/aapc.hpp"

namespace ucg::aapc::test {

/// The tree of figure 1: switch 0 (s1) has switches 1 (s0) and 2 (s3) and machine n5; members are
/// n0 to n5.
Tree paper_tree();

/// A tree of any shape with `machines` members, each of which is a node below one of `switches`
/// switches. Some switches may have no machines below them.
Tree random_tree(std::mt19937_64& random, std::uint32_t switches, std::uint32_t machines);

/// The same, with 1 to `ranks_max` members on each machine, numbered in any order.
Tree random_tree_of_ranks(std::mt19937_64& random, std::uint32_t switches, std::uint32_t machines,
                          std::uint32_t ranks_max);

/// Every shape of tree with so many machines in which each switch has at least two branches, once
/// for each of its switches as node 0.
std::vector<Tree> every_tree(std::uint32_t machines);

/// A directed edge of the tree: the link above a node, and a direction.
using Edge = std::uint32_t;
/// The edges that a message between two members passes, in order. They are found by climbing the
/// tree.
std::vector<Edge> path(const Tree& tree, std::uint32_t from, std::uint32_t to);

} // namespace ucg::aapc::test
