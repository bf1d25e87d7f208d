#include "ucg_coll/plan/parts/steps.hpp"

#include <algorithm>

namespace ucg::plan {

using graph::BufferKind;
using graph::Builder;
using graph::Slice;

bool overlap(const Slice& a, const Slice& b) {
    return a.owner == b.owner && a.buffer == b.buffer && a.offset < b.end() && b.offset < a.end();
}

static bool is_scratch(const Builder& builder, const Slice& slice) {
    return slice.buffer == BufferKind::scratch && slice.owner == builder.rank();
}

Operator operator_of(const graph::Request& request) {
    return {request.element_bytes, request.commutative};
}

Slice bcast_data(const Builder& builder, const graph::Request& request) {
    return builder.rank() == request.root ? builder.input(0, request.bytes)
                                          : builder.output(0, request.bytes);
}

Slice contribution(const Builder& builder, const graph::Request& request) {
    const bool elsewhere = graph::rooted(request.collective) && builder.rank() != request.root;
    return request.in_place && !elsewhere ? builder.output(0, request.bytes)
                                          : builder.input(0, request.bytes);
}

void reduce_to(Builder& builder, std::span<const Slice> operands, Slice target) {
    const bool direct = std::none_of(operands.begin() + 1, operands.end(),
                                     [&](const Slice& slice) { return overlap(slice, target); });
    if (direct) {
        builder.reduce(operands, target);
        return;
    }
    UCG_ASSERT(is_scratch(builder, operands[0]));
    builder.reduce(operands, operands[0]);
    builder.copy(operands[0], target);
}

Slice reduce_to_scratch(Builder& builder, std::span<const Slice> operands) {
    const Slice target =
        is_scratch(builder, operands[0]) ? operands[0] : builder.scratch(operands[0].length);
    builder.reduce(operands, target);
    return target;
}

} // namespace ucg::plan
