// Trees to schedule.
#pragma once

#include <random>
#include <vector>

#include "ucg_coll/aapc/aapc.hpp"

namespace ucg::aapc::test {

/// Figure 1: switch 0 (s1) has switches 1 (s0) and 2 (s3) and machine n5; members are n0 to n5.
Tree paper_tree();

/// `machines` members, each a node of its own below one of `switches`, in a tree of any shape;
/// switches without machines below them are among them.
Tree random_tree(std::mt19937_64& random, std::uint32_t switches, std::uint32_t machines);

/// The same, with 1 to `ranks_max` members at each machine, numbered in any order.
Tree random_tree_of_ranks(std::mt19937_64& random, std::uint32_t switches, std::uint32_t machines,
                          std::uint32_t ranks_max);

/// Every shape of tree with so many machines whose switches all have two branches or more, with
/// each of its switches as node 0.
std::vector<Tree> every_tree(std::uint32_t machines);

/// A directed edge of the tree: the link above a node, and a direction.
using Edge = std::uint32_t;
/// The edges that a message between two members passes, found by climbing, in order.
std::vector<Edge> path(const Tree& tree, std::uint32_t from, std::uint32_t to);

} // namespace ucg::aapc::test
