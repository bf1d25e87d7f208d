// Internal to verify: which ops are ordered by dependencies, messages and signals. No op of another
// rank implies that a send has completed, see verify_order.
#pragma once

#include <vector>

#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {

/// Answers whether an op X is ordered before an op Y by a search backwards from Y, which looks at
/// nothing that completed before X in the topological order. Mostly X is a dependency of Y and the
/// search ends at once. The answer is exact, unlike that of vector clocks, which would need a total
/// order of each rank's ops.
class HappensBefore {
  public:
    explicit HappensBefore(const World& world) : world_(world), seen_(world.op_count(), 0) {}

    /// Returns whether x completes before y starts, whatever the order of arrival.
    bool ordered(OpRef x, OpRef y) {
        for (const Dependency dependency : world_.dependencies(y)) {
            if (world_.depended(y, dependency) == x) {
                return true;
            }
        }
        return search(x, y);
    }

  private:
    bool search(OpRef x, OpRef y) {
        ++stamp_;
        starts_.assign(1, y);
        while (!starts_.empty()) {
            const OpRef op = starts_.back();
            starts_.pop_back();
            for (const Dependency dependency : world_.dependencies(op)) {
                const OpRef on = world_.depended(op, dependency);
                if (on == x) {
                    return true;
                }
                if (world_.completed[on] > world_.completed[x]) {
                    visit(on);
                }
            }
        }
        return false;
    }

    /// Adds to the search what must have happened for `op` to have completed: its start, and, if it
    /// receives, the start of the other end.
    void visit(OpRef op) {
        push(op);
        if (receives(world_.op(op).kind)) {
            push(world_.match[op]);
        }
    }

    void push(OpRef op) {
        if (seen_[op] != stamp_) {
            seen_[op] = stamp_;
            starts_.push_back(op);
        }
    }

    const World& world_;
    std::vector<std::uint32_t> seen_;
    std::uint32_t stamp_ = 0;
    std::vector<OpRef> starts_;
};

} // namespace ucg::graph::proof
