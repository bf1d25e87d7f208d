// Steps that pieces of all mechanisms share: whose vector is read, and how operands are combined
// where the target overlaps one of them.
#pragma once

#include <span>
#include <vector>

#include "ucg_coll/graph/graph.hpp"

namespace ucg::plan {

using OpIds = std::vector<graph::OpId>;

struct Operator {
    std::uint64_t element_bytes = 1; ///< Vectors may be cut at multiples of this.
    bool commutative = true;
};
Operator operator_of(const graph::Request& request);

/// A broadcast's vector: the input at the root, the output elsewhere.
graph::Slice bcast_data(const graph::Builder& builder, const graph::Request& request);

/// Where a rank's whole vector is read: the input, or the output where the request is in place.
graph::Slice contribution(const graph::Builder& builder, const graph::Request& request);

/// Reduces to `target`. If that overlaps another operand than the first, which a reduction must
/// not, it goes by way of the first. REQUIRES: then operands[0] is own scratch.
void reduce_to(graph::Builder& builder, std::span<const graph::Slice> operands,
               graph::Slice target);

/// Do they share bytes?
bool overlap(const graph::Slice& a, const graph::Slice& b);

/// Reduces to scratch, which it returns: operands[0], if it is own scratch, else a new piece.
graph::Slice reduce_to_scratch(graph::Builder& builder, std::span<const graph::Slice> operands);

} // namespace ucg::plan
