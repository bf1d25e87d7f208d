// Internal to verify: which ops are ordered by dependencies, messages and signals. A send's
// completion is known only by itself, see verify_order.
#pragma once

#include <vector>

#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {

/// Answers "is X ordered before Y" by a search backwards from Y, which looks at nothing that
/// completed before X in the topological order. Mostly X is a dependency of Y and the search ends
/// at once. Exact, unlike vector clocks, which would need a total order of each rank's ops.
class HappensBefore {
  public:
    explicit HappensBefore(const World& world) : world_(world), seen_(world.op_count(), 0) {}

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

    /// `op` has completed: hence it has started, and so has the op that it received from.
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
