// Direct alltoall: in step i each member sends to the one i above it and receives from the one i
// below it, so that no member is everybody's target at once. One step at a time this is the
// pairwise exchange, with a window of steps under way the linear algorithm. Thakur, Rabenseifner,
// Gropp, "Optimization of collective communication operations in MPICH", 2005, section 3.3.
#include <algorithm>
#include <array>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/network/network.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;

constexpr Rank kPairwise = 1;

/// Returns the window of one rank. Only the two ends of a message of an alltoallv know its length,
/// so each rank has a window of its own: one step at a time if its messages, of `mean_bytes` on
/// average, are long. Different windows do no harm, since ranks wait for lower steps only.
Rank own_window(const Facts& facts, graph::Collective collective, std::uint64_t mean_bytes,
                Rank window) {
    const bool alone = collective == graph::Collective::alltoallv &&
                       flat_link(facts, Traffic::dense).is_bound_by_way_out(mean_bytes);
    return alone ? kPairwise : window;
}

template <graph::Collective collective, Rank window>
double cost_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t block = uniform_bytes(request);
    const Rank own = own_window(facts, collective, block, window);
    const std::uint64_t all_bytes = static_cast<std::uint64_t>(request.rank_count) * block;
    const double alone_ns = oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * all_bytes), 3 * all_bytes,
        [&](const Link& link) {
            return alltoall_rotated_ns(link, request.rank_count, block, own);
        });
    return contended_ns(facts, alone_ns, 1, block);
}

/// Returns the mean length of the blocks that this rank sends and receives.
std::uint64_t mean_bytes(const BlockMap& source, const BlockMap& target) {
    const std::uint64_t sent = source.run_bytes(0, source.count());
    const std::uint64_t received = target.run_bytes(0, target.count());
    const std::uint64_t mean = sent / 2 + received / 2 + (sent % 2 + received % 2) / 2;
    return mean / static_cast<std::uint64_t>(source.count());
}

template <graph::Collective collective, Rank window>
graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, window == kPairwise ? "pairwise" : "linear");
    const Team team = Team::whole(request.rank_count, rank);
    const BlockMap target = output_blocks(builder, request);
    const BlockMap source = request.in_place ? target : input_blocks(builder, request);
    const Rank own = own_window(facts, collective, mean_bytes(source, target), window);
    if (request.in_place) {
        alltoall_in_place(builder, team, target, own);
    } else {
        alltoall_rotated(builder, team, source, target, own);
    }
    return builder.finish();
}

template <graph::Collective collective, Rank window>
constexpr std::string_view summary() {
    if (window == kPairwise) {
        return "one exchange at a time (Thakur, Rabenseifner, Gropp 2005)";
    }
    return collective == graph::Collective::alltoallv
               ? "every block directly, a window of messages under way, or one where they are "
                 "long and cross hosts"
               : "every block directly, a window of messages under way";
}

template <graph::Collective collective, Rank window>
constexpr Algorithm row() {
    return {
        .name = window == kPairwise ? "pairwise" : "linear",
        .collective = collective,
        .summary = summary<collective, window>(),
        .cost_ns = cost_ns<collective, window>,
        .build = build<collective, window>,
    };
}

} // namespace

void alltoall_rotated(Builder& builder, const Team& team, const BlockMap& source,
                      const BlockMap& target, Rank window) {
    using Step = std::array<graph::OpId, 2>; // The send and the receive.
    std::vector<Step> before(static_cast<std::size_t>(std::min(window, team.size())),
                             {graph::kNoOp, graph::kNoOp});
    std::vector<Step> under_way = before;
    for (Rank first = 1; first < team.size(); first += window) {
        const Rank steps = std::min(window, team.size() - first);
        // Sends come first: a receive may copy a message that is there already, which takes long,
        // and ranks that wait for the sends can copy meanwhile. Both ends of a message wait for
        // lower steps only, so the lowest step is never stuck.
        for (Rank i = 0; i < steps; ++i) {
            const Rank to = neighbour_index(team, first + i);
            const auto place = static_cast<std::size_t>(i);
            under_way[place][0] = builder.send(team.rank(to), source.block(to), before[place]);
        }
        for (Rank i = 0; i < steps; ++i) {
            const Rank from = neighbour_index(team, -(first + i));
            const auto place = static_cast<std::size_t>(i);
            under_way[place][1] = builder.recv(team.rank(from), target.block(from), before[place]);
        }
        if (first == 1) { // While messages travel.
            builder.copy(source.block(team.index()), target.block(team.index()));
        }
        before = under_way;
    }
    if (team.size() == 1) {
        builder.copy(source.block(0), target.block(0));
    }
}

void alltoall_in_place(Builder& builder, const Team& team, const BlockMap& blocks, Rank window) {
    const Rank places = std::min(window, team.size());
    std::vector<graph::Slice> aside;
    aside.reserve(static_cast<std::size_t>(places));
    for (Rank i = 0; i < places; ++i) {
        aside.push_back(builder.scratch(blocks.bytes_max()));
    }
    MessageWindow under_way(places);
    for (Rank step = 0; step < team.size(); ++step) {
        const Rank partner = (step - team.index() + team.size()) % team.size();
        if (partner == team.index()) {
            continue; // Its own block stays where it is.
        }
        const graph::Slice block = blocks.block(partner);
        const graph::Slice leaving =
            part(aside[static_cast<std::size_t>(step % places)], 0, block.length);
        builder.copy(block, leaving, under_way.after());
        const Rank peer = team.rank(partner);
        const graph::OpId sent = builder.send(peer, leaving, under_way.after());
        const graph::OpId received = builder.recv(peer, block, under_way.after());
        under_way.push({received, sent});
    }
}

double alltoall_rotated_ns(const Link& link, Rank count, std::uint64_t block_bytes, Rank window) {
    const double copy_ns = link.copy_ns(block_bytes);
    if (count == 1) {
        return copy_ns;
    }
    // The last message of a window is priced like one to the farthest members.
    const auto steps_ns = [&](Rank peers, double beside_ns) {
        const auto phase_ns = [&](const Link& step, Rank messages) {
            return step.phase_ns(block_bytes, Source::settled, Link::round_of(messages), beside_ns);
        };
        return phase_ns(link, 1) + link.to_all_ns(1, count, [&](const Link& step) {
            return phase_ns(step, peers) - phase_ns(step, 1);
        });
    };
    // Latency is paid once for each window.
    if (window == kPairwise) {
        const auto step_ns = [&](const Link& step) {
            return std::max(step.phase_ns(block_bytes, Source::settled, Link::round_of(1)),
                            step.relay_gap_ns(block_bytes, Source::settled));
        };
        return link.not_hidden_ns(copy_ns, block_bytes) + link.to_all_ns(count - 1, count, step_ns);
    }
    const Rank first = std::min(window, count - 1);
    const Rank further = count - 1 - first;
    const Rank full_windows = further / window;
    const Rank last = further % window;
    const double contention_ns =
        count > 2 && link.is_bound_by_way_out(block_bytes)
            ? link.contention_ns(static_cast<std::uint64_t>(count - 1) * block_bytes)
            : 0;
    return steps_ns(first, copy_ns) + full_windows * steps_ns(window, 0) +
           (last > 0 ? steps_ns(last, 0) : 0) + contention_ns;
}

const Algorithm kAlltoallPairwise = row<graph::Collective::alltoall, kPairwise>();
const Algorithm kAlltoallLinear = row<graph::Collective::alltoall, kWindow>();
const Algorithm kAlltoallvPairwise = row<graph::Collective::alltoallv, kPairwise>();
const Algorithm kAlltoallvLinear = row<graph::Collective::alltoallv, kWindow>();

} // namespace ucg::plan
