// The part of verify's order that is about lifetimes: other ranks may use a rank's buffers from its
// first op to its last. An op that touches them must know that their owner has entered, and the
// owner must not leave before the access has ended: once it has left, its caller may change the
// input and read the output, and its scratch is given back.
#include <algorithm>

#include "ucg_coll/graph/print.hpp"
#include "ucg_coll/graph/rank_sets.hpp"
#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {
namespace {

/// Calls visit(slice) for each slice of a peer that an op reads or writes.
template <typename Visit>
void for_each_foreign(const World& world, OpRef ref, Visit&& visit) {
    const Op& op = world.op(ref);
    const auto filter = [&](const Slice& slice) {
        if (slice.owner != world.rank_of[ref]) {
            visit(slice);
        }
    };
    if (has_source(op.kind)) {
        filter(op.source);
    }
    for (const Slice& operand : world.operands(ref)) {
        filter(operand);
    }
    if (has_target(op.kind)) {
        filter(op.target);
    }
}

bool has_foreign(const World& world) {
    bool found = false;
    for (OpRef ref = 0; ref < world.op_count() && !found; ++ref) {
        for_each_foreign(world, ref, [&](const Slice&) { found = true; });
    }
    return found;
}

} // namespace

Status check_lifetime(World& world) {
    if (!has_foreign(world)) {
        return Status();
    }
    const RankSets in = entered(world);
    const RankSets out = leave_later(world);
    Status status;
    for (OpRef ref = 0; ref < world.op_count() && status.ok(); ++ref) {
        for_each_foreign(world, ref, [&](const Slice& slice) {
            const std::string text = slice_text(slice, world.rank_of[ref]);
            if (!in.has(RankSets::start(ref), slice.owner)) {
                status = reject(world, ref,
                                fmt::format("touches {} before rank {} is known to have entered",
                                            text, slice.owner));
            } else if (!out.has(RankSets::completion(ref), slice.owner)) {
                status = reject(world, ref,
                                fmt::format("touches {}, and rank {} may leave before that ends",
                                            text, slice.owner));
            }
        });
    }
    return status;
}

} // namespace ucg::graph::proof
