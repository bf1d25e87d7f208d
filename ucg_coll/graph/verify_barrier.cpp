// The step of verify that proves the meaning of a barrier: no rank leaves before every rank has
// entered.
#include "ucg_coll/graph/rank_sets.hpp"
#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {
namespace {

/// Returns whether `rank` knows, when all its ops have completed and it leaves, that `other` has
/// entered. `sets` is entered(world).
bool hears_of(const World& world, const RankSets& sets, Rank rank, Rank other) {
    const auto at = static_cast<std::size_t>(rank);
    for (OpRef op = world.base[at]; op < world.base[at + 1]; ++op) {
        if (sets.has(RankSets::completion(op), other)) {
            return true;
        }
    }
    return rank == other;
}

} // namespace

Status check_barrier(const World& world) {
    const RankSets sets = entered(world);
    for (Rank rank = 0; rank < world.rank_count(); ++rank) {
        for (Rank other = 0; other < world.rank_count(); ++other) {
            if (!hears_of(world, sets, rank, other)) {
                return failure(Code::invalid_argument,
                               "rank {}: no op waits until rank {} has entered the barrier", rank,
                               other);
            }
        }
    }
    return Status();
}

} // namespace ucg::graph::proof
