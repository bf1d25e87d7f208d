#include "ucg_coll/graph/rank_sets.hpp"

namespace ucg::graph::proof {

RankSets entered(const World& world) {
    RankSets sets(world);
    for (const Event event : world.events) {
        const std::size_t start = RankSets::start(event.op);
        const std::size_t completion = RankSets::completion(event.op);
        if (!event.completes) {
            sets.add(start, world.rank_of[event.op]);
            for (const Dependency dependency : world.dependencies(event.op)) {
                sets.add_all(start, RankSets::completion(world.depended(event.op, dependency)));
            }
            continue;
        }
        sets.add_all(completion, start);
        if (receives(world.op(event.op).kind)) {
            sets.add_all(completion, RankSets::start(world.match[event.op]));
        }
    }
    return sets;
}

RankSets leave_later(const World& world) {
    RankSets sets(world);
    // Backwards: each event hands its set to those that must come before it.
    for (auto event = world.events.rbegin(); event != world.events.rend(); ++event) {
        const std::size_t start = RankSets::start(event->op);
        const std::size_t completion = RankSets::completion(event->op);
        if (!event->completes) {
            for (const Dependency dependency : world.dependencies(event->op)) {
                sets.add_all(RankSets::completion(world.depended(event->op, dependency)), start);
            }
            continue;
        }
        sets.add(completion, world.rank_of[event->op]);
        sets.add_all(start, completion);
        if (receives(world.op(event->op).kind)) {
            sets.add_all(RankSets::start(world.match[event->op]), completion);
        }
    }
    return sets;
}

} // namespace ucg::graph::proof
