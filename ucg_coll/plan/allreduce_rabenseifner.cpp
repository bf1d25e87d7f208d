// Rabenseifner's allreduce ("Optimization of collective reduction operations", 2004):
// reduce-scatter by recursive halving, then allgather by recursive doubling, with the fold to a
// power of two.
#include "ucg_coll/plan/crowding.hpp"
#include "ucg_coll/plan/halving.hpp"
#include "ucg_coll/plan/rows.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return crowded_exchange_ns(
        facts, flat_link(facts, Traffic::dense), 5 * request.bytes, [&](const Link& link) {
            return allreduce_rabenseifner_ns(link, request.rank_count, request.bytes);
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kAllreduceRabenseifner.name);
    allreduce_rabenseifner(builder, Team::whole(request.rank_count, rank),
                           contribution(builder, request), builder.output(0, request.bytes),
                           operator_of(request));
    return builder.finish();
}

} // namespace

void allreduce_rabenseifner(Builder& builder, const Team& team, Slice source, Slice target,
                            Operator op) {
    if (team.size() == 1) {
        builder.copy(source, target);
        return;
    }
    const Fold fold(team);
    const Halving halving(source.length, op.element_bytes);
    const Slice partial = fold_in(builder, team, fold, source);
    if (fold.acts()) {
        reduce_scatter_halving(builder, team, fold, halving, partial, VectorView{target, 0});
        allgather_doubling(builder, team, fold, halving, target);
    }
    fold_out(builder, team, fold, target);
}

double allreduce_rabenseifner_ns(const Link& link, Rank count, std::uint64_t bytes) {
    const Rank size = static_cast<Rank>(floor_power_of_two(static_cast<std::uint32_t>(count)));
    const double fold_ns =
        size == count ? 0 : 2 * link.message_ns(bytes) + link.reduce_ns(2, bytes);
    return fold_ns + halving_ns(link, size, bytes) +
           doubling_ns(link, size, bytes, Sender::exchanges) + halving_reduce_ns(link, size, bytes);
}

const Algorithm kAllreduceRabenseifner = {
    .name = "rabenseifner",
    .collective = graph::Collective::allreduce,
    .summary = "reduce-scatter by halving, allgather by doubling (Rabenseifner 2004)",
    .eligible = serves_all,
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
