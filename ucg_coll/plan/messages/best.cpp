#include "ucg_coll/plan/messages/best.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "ucg_coll/plan/messages/block_best.hpp"
#include "ucg_coll/plan/multiplying/choice.hpp"
#include "ucg_coll/plan/multiplying/piece.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

constexpr double kNever = std::numeric_limits<double>::infinity();

template <std::size_t kCount>
std::size_t cheapest(const std::array<double, kCount>& prices) {
    return static_cast<std::size_t>(std::min_element(prices.begin(), prices.end()) -
                                    prices.begin());
}

// Each of these returns the prices of the pieces in the order of the cases in NAME_best() below.

std::array<double, 4> bcast_prices(const Link& link, Rank count, std::uint64_t bytes) {
    return {bcast_knomial_ns(link, count, bytes, bcast_knomial_radix(link, count, bytes)),
            bcast_chain_ns(link, count, bytes, bcast_chain_segment(link, count, bytes)),
            link.is_across_hosts() && count > 2
                ? bcast_circulant_ns(link, count, bytes, bcast_circulant_phases(link, count, bytes))
                : kNever,
            bcast_scatter_allgather_ns(link, count, bytes, bcast_choices(link, count, bytes))};
}

std::array<double, 5> reduce_prices(const Link& link, Rank count, Rank root, std::uint64_t bytes,
                                    Operator op) {
    return {
        reduce_knomial_ns(link, count, root, bytes, op, reduce_knomial_radix(link, count, bytes)),
        reduce_chain_ns(link, count, root, bytes,
                        reduce_chain_segment(link, count, root, bytes, op)),
        link.is_across_hosts() && count > 2 && op.commutative
            ? reduce_circulant_ns(link, count, bytes, op,
                                  reduce_circulant_phases(link, count, bytes, op))
            : kNever,
        reduce_rabenseifner_ns(link, count, bytes, op.element_bytes),
        reduce_scatter_gather_ns(link, count, bytes, op,
                                 reduce_scatter_gather_choices(link, count, bytes, op))};
}

std::array<double, 6> allreduce_prices(const Link& link, Rank count, std::uint64_t bytes,
                                       Operator op) {
    return {allreduce_recursive_doubling_ns(link, count, bytes),
            op.commutative ? allreduce_ring_ns(link, count, bytes, op) : kNever,
            allreduce_rabenseifner_ns(link, count, bytes, op),
            allreduce_recursive_multiplying_ns(link, count, bytes),
            allreduce_elimination_ns(link, count, bytes),
            allreduce_reduce_scatter_allgather_ns(
                link, count, bytes, op,
                allreduce_reduce_scatter_allgather_choices(link, count, bytes, op))};
}

} // namespace

void bcast_best(Builder& builder, const Team& team, const Link& link, Rank root, Slice data) {
    const Rank count = team.size();
    switch (cheapest(bcast_prices(link, count, data.length))) {
    case 0:
        bcast_knomial(builder, team, root, data, bcast_knomial_radix(link, count, data.length));
        break;
    case 1:
        bcast_chain(builder, team, root, data, bcast_chain_segment(link, count, data.length));
        break;
    case 2:
        bcast_circulant(builder, team, root, data,
                        bcast_circulant_phases(link, count, data.length));
        break;
    default:
        bcast_scatter_allgather(builder, team, root, data, bcast_choices(link, count, data.length));
    }
}

double bcast_best_ns(const Link& link, Rank count, std::uint64_t bytes) {
    const auto prices = bcast_prices(link, count, bytes);
    return prices[cheapest(prices)];
}

void reduce_best(Builder& builder, const Team& team, const Link& link, Rank root, Slice source,
                 Slice target, Operator op) {
    const Rank count = team.size();
    const std::uint64_t bytes = source.length;
    switch (cheapest(reduce_prices(link, count, root, bytes, op))) {
    case 0:
        reduce_knomial(builder, team, root, source, target, op,
                       reduce_knomial_radix(link, count, bytes));
        break;
    case 1:
        reduce_chain(builder, team, root, source, target,
                     reduce_chain_segment(link, count, root, bytes, op));
        break;
    case 2:
        reduce_circulant(builder, team, root, source, target, op,
                         reduce_circulant_phases(link, count, bytes, op));
        break;
    case 3: reduce_rabenseifner(builder, team, root, source, target, op); break;
    default:
        reduce_scatter_gather(builder, team, root, source, target, op,
                              reduce_scatter_gather_choices(link, count, bytes, op));
    }
}

double reduce_best_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes, Operator op) {
    const auto prices = reduce_prices(link, count, root, bytes, op);
    return prices[cheapest(prices)];
}

void allreduce_best(Builder& builder, const Team& team, const Link& link, Slice source,
                    Slice target, Operator op) {
    const Rank count = team.size();
    switch (cheapest(allreduce_prices(link, count, source.length, op))) {
    case 0: allreduce_recursive_doubling(builder, team, source, target); break;
    case 1: allreduce_ring(builder, team, source, target, op); break;
    case 2: allreduce_rabenseifner(builder, team, source, target, op); break;
    case 3:
        allreduce_recursive_multiplying(
            builder, team, allreduce_recursive_multiplying_schedule(link, count, source.length),
            source, target);
        break;
    case 4: allreduce_elimination(builder, team, source, target); break;
    default:
        allreduce_reduce_scatter_allgather(
            builder, team, source, target, op,
            allreduce_reduce_scatter_allgather_choices(link, count, source.length, op));
    }
}

double allreduce_best_ns(const Link& link, Rank count, std::uint64_t bytes, Operator op) {
    const auto prices = allreduce_prices(link, count, bytes, op);
    return prices[cheapest(prices)];
}

} // namespace ucg::plan
