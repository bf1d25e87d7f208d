// Tree barrier: arrivals are gathered up a k-ary tree, the release goes down the same tree. Half
// the signals of dissemination at twice the depth. Li, Hoefler, Snir, "NUMA-aware shared-memory
// collective communication for MPI", 2013, section 2.6.
#include <algorithm>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

/// The children of the member at `index`: members radix * index + 1, ..., radix * index + radix.
struct Children {
    std::int64_t first;
    std::int64_t last; ///< One past the last.
};

Children children_of(const Team& team, unsigned radix) {
    const std::int64_t first = std::int64_t{team.index()} * radix + 1;
    return {first, std::min<std::int64_t>(first + radix, team.size())};
}

Rank parent_of(const Team& team, unsigned radix) {
    return team.rank((team.index() - 1) / static_cast<Rank>(radix));
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse);
    return barrier_there_and_back_ns(facts, link, request.rank_count);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBarrierKaryTree.name);
    const Team team = Team::whole(request.rank_count, rank);
    const unsigned radix =
        barrier_tree_radix(flat_link(facts, Traffic::sparse), request.rank_count);
    OpIds last;
    barrier_arrive(builder, team, radix, last);
    barrier_release(builder, team, radix, last);
    return builder.finish();
}

} // namespace

void barrier_arrive(Builder& builder, const Team& team, unsigned radix, OpIds& last) {
    OpIds arrived = last;
    const Children children = children_of(team, radix);
    for (std::int64_t child = children.first; child < children.last; ++child) {
        arrived.push_back(builder.await(team.rank(static_cast<Rank>(child)), last));
    }
    last = std::move(arrived);
    if (team.index() != 0) {
        last = {builder.signal(parent_of(team, radix), last)};
    }
}

void barrier_release(Builder& builder, const Team& team, unsigned radix, OpIds& last) {
    if (team.index() != 0) {
        last = {builder.await(parent_of(team, radix), last)};
    }
    OpIds released = last;
    const Children children = children_of(team, radix);
    for (std::int64_t child = children.first; child < children.last; ++child) {
        released.push_back(builder.signal(team.rank(static_cast<Rank>(child)), last));
    }
    last = std::move(released);
}

namespace {

/// What a signal costs at one level of the machine.
struct Signal {
    double message_ns;
    double take_ns;
    double busy_ns;
};
using Signals = LevelPrices<Signal>;

Signals signals_of(const Link& link) {
    return {link, [](const Link& way) {
                return Signal{way.message_ns(0), way.take_overhead_ns(), way.gap_ns(0)};
            }};
}

/// Returns the sum of ns_of(signal, position among its siblings, from 1, number of siblings) over
/// the members on the path between the root and the member at `index`.
template <typename NsOf>
double path_ns(const Signals& signals, Rank count, Rank index, unsigned radix, NsOf ns_of) {
    const auto width = static_cast<Rank>(radix);
    double ns = 0;
    while (index > 0) {
        const Rank parent = (index - 1) / width;
        const Rank siblings = std::min(width, count - 1 - parent * width);
        ns += ns_of(signals.between(parent, index), index - parent * width, siblings);
        index = parent;
    }
    return ns;
}

/// Returns the greatest path_ns() of three members: the last one, the last one above the last
/// level, and the last one that has all of its siblings.
template <typename NsOf>
double longest_path_ns(const Signals& signals, Rank count, unsigned radix, NsOf ns_of) {
    std::int64_t first = 0; // The first member of the last level.
    while (first * radix + 1 < count) {
        first = first * radix + 1;
    }
    const Rank last = count - 1;
    const Rank above = std::max(static_cast<Rank>(first) - 1, 0);
    // The last member that has all of its siblings.
    const Rank full = std::max(
        above, last > 0 ? (last - 1) / static_cast<Rank>(radix) * static_cast<Rank>(radix) : 0);
    return std::max({path_ns(signals, count, last, radix, ns_of),
                     path_ns(signals, count, above, radix, ns_of),
                     path_ns(signals, count, full, radix, ns_of)});
}

double arrive_ns(const Signals& signals, Rank count, unsigned radix) {
    return longest_path_ns(signals, count, radix,
                           [](const Signal& signal, Rank /*place*/, Rank siblings) {
                               return signal.message_ns + (siblings - 1) * signal.take_ns;
                           });
}

double release_ns(const Signals& signals, Rank count, unsigned radix) {
    return longest_path_ns(signals, count, radix,
                           [](const Signal& signal, Rank place, Rank /*siblings*/) {
                               return signal.message_ns + (place - 1) * signal.busy_ns;
                           });
}

} // namespace

double barrier_tree_ns(const Link& link, Rank count, unsigned radix) {
    return release_ns(signals_of(link), count, radix);
}

double barrier_there_and_back_once_ns(const Link& link, Rank count, unsigned radix) {
    return longest_path_ns(signals_of(link), count, radix,
                           [](const Signal& signal, Rank place, Rank /*siblings*/) {
                               return 2 * signal.message_ns + (place - 1) * signal.busy_ns;
                           });
}

unsigned barrier_tree_radix(const Link& link, Rank count) {
    const Signals signals = signals_of(link);
    return cheapest_radix(
        count, [&](unsigned radix) { return release_ns(signals, count, radix); }, link.radix_max());
}

double barrier_there_and_back_ns(const Facts& facts, const Link& link, Rank count) {
    const Signals signals = signals_of(link);
    const unsigned radix = barrier_tree_radix(link, count);
    const double span_ns = arrive_ns(signals, count, radix) + release_ns(signals, count, radix);
    return oversubscribed_ns(facts, link, 0, span_ns, [&](const Work& work) {
        return 2 * all_but_one(count) * work.link().message_ns(0);
    });
}

const Algorithm kBarrierKaryTree = {
    .name = "kary_tree",
    .collective = graph::Collective::barrier,
    .summary = "arrivals go up a k-ary tree, the release comes down (Li, Hoefler, Snir 2013)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
