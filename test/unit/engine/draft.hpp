// A schedule taken apart, so that ops can come and go.
#pragma once

#include <cstddef>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::test {

/// An op with what belongs to it.
struct Step {
    graph::Op op;
    std::vector<graph::Dependency> after;
    std::vector<graph::Slice> operands;
};

struct Draft {
    graph::Schedule header; ///< And repeats.
    std::vector<Step> steps;
};

Draft take_apart(const graph::Schedule& schedule);
graph::Schedule put_together(const Draft& draft);

graph::Dependency dependency(std::size_t op, std::size_t distance);

/// Takes step `index` out; what depended on it depends on nothing instead, or on what it did.
void remove(Draft& draft, std::size_t index, bool inherit);

/// Puts a step behind `index`, within its repeat if it is in one.
void insert_after(Draft& draft, std::size_t index, Step added);

} // namespace ucg::test
