// verify, network: messages that pass one link the same way follow one another. Then a link always
// carries one of them at its full rate, and none waits in a switch.
#include <algorithm>

#include "ucg_coll/graph/happens_before.hpp"

namespace ucg::graph::proof {
namespace {

/// By edge: the sends of bytes that pass it, in an order in which they may start.
std::vector<std::vector<OpRef>> list_users(const World& world) {
    std::vector<std::vector<OpRef>> users(world.network->nodes.size() * 2);
    std::vector<Edge> path;
    for (const Event event : world.events) {
        const Op& op = world.op(event.op);
        if (!event.completes && op.kind == OpKind::send && op.source.length > 0) {
            find_path(*world.network, world.rank_of[event.op], op.peer, path);
            for (const Edge edge : path) {
                users[edge.index()].push_back(event.op);
            }
        }
    }
    return users;
}

} // namespace

/// Neighbours are enough: if any two are ordered, they are in this order.
Status check_contention(World& world) {
    if (world.network == nullptr) {
        return Status();
    }
    HappensBefore before(world);
    const auto follows = [&](OpRef earlier, OpRef later) {
        return before.ordered(earlier, later) || before.ordered(world.match[earlier], later);
    };
    const std::vector<std::vector<OpRef>> users = list_users(world);
    for (std::uint32_t index = 0; index < users.size(); ++index) {
        for (std::size_t i = 1; i < users[index].size(); ++i) {
            const OpRef earlier = users[index][i - 1];
            const OpRef later = users[index][i];
            if (!follows(earlier, later)) {
                const Edge edge{index / 2, index % 2 == 1};
                return reject(world, later,
                              fmt::format("contention: may meet the message of {} on {}",
                                          world.describe(earlier), describe(*world.network, edge)));
            }
        }
    }
    return Status();
}

} // namespace ucg::graph::proof
