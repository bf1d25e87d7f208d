// A schedule taken apart into steps, so that ops can be added and removed.
#pragma once

#include <cstddef>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::test {

/// An op with everything that belongs to it.
struct DraftStep {
    graph::Op op;
    std::vector<graph::Dependency> after;
    std::vector<graph::Slice> operands;
};

struct Draft {
    graph::Schedule header; ///< The repeats are in it as well.
    std::vector<DraftStep> steps;
};

Draft take_apart(const graph::Schedule& schedule);
graph::Schedule put_together(const Draft& draft);

graph::Dependency dependency(std::size_t op, std::size_t distance);

/// Removes step `index`. Steps that depended on it then depend on nothing in its place, or, with
/// `inherit`, on what it depended on.
void remove(Draft& draft, std::size_t index, bool inherit);

/// Inserts a step after step `index`, within the repeat of that one if it is in one.
void insert_after(Draft& draft, std::size_t index, DraftStep added);

} // namespace ucg::test
