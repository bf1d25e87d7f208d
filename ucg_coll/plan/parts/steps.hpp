// Steps that pieces of all mechanisms share: whose vector is read, and how operands are combined
// where the target overlaps one of them.
#pragma once

#include <span>
#include <vector>

#include "ucg_coll/graph/graph.hpp"

namespace ucg::plan {

using OpIds = std::vector<graph::OpId>;

/// What an algorithm needs to know of a reduction's operator.
struct Operator {
    std::uint64_t element_bytes = 1; ///< Vectors may be cut at multiples of this.
    bool commutative = true;
};
Operator operator_of(const graph::Request& request);

/// Returns a broadcast's vector: the input at the root, the output elsewhere.
graph::Slice bcast_data(const graph::Builder& builder, const graph::Request& request);

/// Returns where a rank's whole vector is read: the input, or the output if the rank's request is
/// in place.
graph::Slice contribution(const graph::Builder& builder, const graph::Request& request);

/// Reduces to `target`. If `target` overlaps another operand than the first, which a reduction's
/// target must not, this reduces to the first operand and copies that to `target`.
/// REQUIRES: in that case operands[0] is the rank's own scratch.
void reduce_to(graph::Builder& builder, std::span<const graph::Slice> operands,
               graph::Slice target);

/// Returns whether the slices share bytes.
bool overlap(const graph::Slice& a, const graph::Slice& b);

/// Reduces to scratch and returns it: operands[0] if that is the rank's own scratch, else a new
/// piece.
graph::Slice reduce_to_scratch(graph::Builder& builder, std::span<const graph::Slice> operands);

} // namespace ucg::plan
