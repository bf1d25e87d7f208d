// Rabenseifner's reduce ("Optimization of collective reduction operations", 2004): reduce-scatter
// by recursive halving, then a binomial gather to the root, which always acts in the fold.
#include "ucg_coll/plan/messages/halving.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * request.bytes),
        4 * request.bytes, [&](const Link& link) {
            return reduce_rabenseifner_ns(link, request.rank_count, request.bytes,
                                          request.element_bytes);
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kReduceRabenseifner.name);
    reduce_rabenseifner(builder, Team::whole(request.rank_count, rank), request.root,
                        contribution(builder, request), builder.output(0, request.bytes),
                        operator_of(request));
    return builder.finish();
}

} // namespace

void reduce_rabenseifner(Builder& builder, const Team& team, Rank root, Slice source, Slice target,
                         Operator op) {
    if (team.size() == 1) {
        builder.copy(source, target);
        return;
    }
    const Fold fold(team, root);
    const Halving halving(source.length, op.element_bytes);
    const Slice partial = fold_in(builder, team, fold, source);
    if (!fold.acts()) {
        return;
    }
    const Rank root_position = fold.position_of(root);
    const Extent stretch = stretch_to_gather(fold, halving, root_position);
    const Slice room = team.index() == root ? target : builder.scratch(stretch.length);
    const VectorView held{room, stretch.offset};
    reduce_scatter_halving(builder, team, fold, halving, partial, held);
    gather_doubling(builder, team, fold, halving, root_position, held);
}

/// Returns the time of the fold and of the halving, in which all members take part.
static double shared_ns(const Link& link, Rank count, std::uint64_t bytes,
                        std::uint64_t element_bytes) {
    const Rank size = static_cast<Rank>(floor_power_of_two(static_cast<std::uint32_t>(count)));
    const double fold_ns =
        size == count ? 0 : link.of_pairs().message_ns(bytes) + link.reduce_ns(2, bytes);
    const Source source = folds(count) ? Source::fresh : Source::settled;
    return fold_ns + halving_ns(link, size, bytes, element_bytes, source) +
           halving_reduce_ns(link, size, bytes, element_bytes, bytes);
}

/// Returns the time of the gather. What cannot be halved the root has from the start.
static double gather_ns(const Link& link, Rank count, std::uint64_t bytes,
                        std::uint64_t element_bytes) {
    const Rank size = static_cast<Rank>(floor_power_of_two(static_cast<std::uint32_t>(count)));
    // Near the root one rank sends at a time, and there the ways lead to other hosts where ranks go
    // round over them.
    return doubling_ns(link.levels().are_by_host() ? link : link.shared_by(1), size, bytes,
                       element_bytes, Sender::waits, 2 * element_bytes);
}

double reduce_rabenseifner_ns(const Link& link, Rank count, std::uint64_t bytes,
                              std::uint64_t element_bytes) {
    // The root takes part in all, so that the next begins when it is done.
    const double calls = link.is_across_hosts() ? 1 + cost::kBeforeAtRoot : 1;
    return calls * reduce_rabenseifner_once_ns(link, count, bytes, element_bytes);
}

double reduce_rabenseifner_once_ns(const Link& link, Rank count, std::uint64_t bytes,
                                   std::uint64_t element_bytes) {
    return shared_ns(link, count, bytes, element_bytes) +
           gather_ns(link, count, bytes, element_bytes);
}

const Algorithm kReduceRabenseifner = {
    .name = "rabenseifner",
    .collective = graph::Collective::reduce,
    .summary = "reduce-scatter by halving, then a binomial gather (Rabenseifner 2004)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
