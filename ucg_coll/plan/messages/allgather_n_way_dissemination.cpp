// N-way dissemination allgather: Bruck's (allgather_bruck.cpp) with several messages a round, as
// the paper has it for several ports, and a base for each round (dissemination.hpp). Before a round
// a member has as many blocks as the distance, beginning with its own, and sends them to those at
// multiples of the distance below it.
#include <algorithm>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/dissemination.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Returns how many blocks go to the member that is `hop`, a multiple of the distance, below: all
/// that the sender has, or as many as that member still lacks.
Rank blocks_at(std::int64_t hop, std::int64_t distance, std::int64_t members) {
    return static_cast<Rank>(std::min(distance, members - hop));
}

/// Where a message is received, and the places of its blocks.
struct Arrival {
    Slice landing;
    std::vector<Slice> runs;
};

/// Blocks first, first + 1, ... after a member's own.
struct Run {
    Rank first = 0;
    Rank count = 0;

    bool operator==(const Run&) const = default;
};

/// One round at one member, which exchanges messages with the members at those multiples of
/// `distance` that are less than `end`.
struct Round {
    Builder& builder;
    const Team& team;
    const BlockMap& target;
    BlocksHeld held;
    std::int64_t distance = 1;
    std::int64_t end = 1;

    /// Returns which blocks the member at `index` lacks of those that the member `hop` above it
    /// passes on, counted from the latter.
    Run lacking(std::int64_t hop, Rank index) const {
        const Rank blocks = blocks_at(hop, distance, team.size());
        const auto has = std::clamp(held(index, team.size()) - static_cast<Rank>(hop), 0, blocks);
        return {has, blocks - has};
    }

    std::vector<Slice> runs_of(Rank index, const Run& run) const {
        return target.runs((index + run.first) % team.size(), run.count);
    }

    std::vector<Arrival> receive() const {
        std::vector<Arrival> arrivals;
        for (std::int64_t hop = distance; hop < end; hop += distance) {
            const Rank from = neighbour_index(team, static_cast<Rank>(hop));
            std::vector<Slice> runs = runs_of(from, lacking(hop, team.index()));
            const Slice landing = landing_place(builder, runs);
            builder.recv(team.rank(from), landing);
            arrivals.push_back({landing, std::move(runs)});
        }
        return arrivals;
    }

    /// Appends the sends. `own` is this member's block, which is all that the first round sends.
    void send(Slice own) const {
        Slice outgoing = own;
        Run at_hand = {0, distance == 1 ? 1 : 0}; // What `outgoing` has: most messages are alike.
        for (std::int64_t hop = distance; hop < end; hop += distance) {
            const Rank to = neighbour_index(team, static_cast<Rank>(-hop));
            const Run run = lacking(hop, to);
            if (run.count > 0 && run != at_hand) {
                outgoing = packed(builder, runs_of(team.index(), run));
                at_hand = run;
            }
            builder.send(team.rank(to), run.count > 0 ? outgoing : Slice());
        }
    }

    void unpack_all(std::span<const Arrival> arrivals) const {
        for (const Arrival& arrival : arrivals) {
            unpack(builder, arrival.landing, arrival.runs);
        }
    }
};

class Price {
  public:
    Price(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest)
        : link_(link), count_(count), total_(total), longest_(longest) {}
    Price(const Link& link, const graph::Request& request)
        : Price(link, request.rank_count, all_blocks(request), longest_block(request)) {}

    double operator()(const DisseminationRounds& rounds) const {
        double ns = rounds.rounds == 0 ? link_.copy_ns(longest_) : 0;
        std::int64_t distance = 1;
        for (unsigned round = 0; round < rounds.rounds; ++round) {
            const std::int64_t end =
                std::min<std::int64_t>(distance * rounds.base_of(round), count_);
            const Rank next = round + 1 < rounds.rounds ? rounds.base_of(round + 1) : 1;
            ns += round_ns(distance, end,
                           link_.rotated(static_cast<std::uint64_t>(distance),
                                         static_cast<std::uint64_t>(end * next),
                                         static_cast<Rank>((end - 1) / distance)));
            distance = end;
        }
        return ns;
    }

  private:
    double round_ns(std::int64_t distance, std::int64_t end, const Link& link) const {
        const auto peers = static_cast<Rank>((end - 1) / distance);
        const auto coming = static_cast<Rank>(end - distance); // Blocks, of all messages together.
        const std::uint64_t bytes =
            std::max(longest_, bytes_of(coming) / static_cast<std::uint64_t>(peers));
        const bool first = distance == 1;
        const double ns = link.phase_ns(bytes, first ? Source::settled : Source::fresh,
                                        Link::round_of(peers), first ? link_.copy_ns(longest_) : 0,
                                        &link_); // The own block, while messages travel.
        // A run that wraps around the end of the vector is packed, and unpacked by its receiver.
        return ns + (first ? 0 : 2 * link_.copy_ns(bytes)) +
               (peers > 1 ? link.contention_ns(bytes_of(coming)) : 0);
    }

    /// Returns the length of so many blocks, of which one may be the longest.
    std::uint64_t bytes_of(Rank blocks) const {
        const std::uint64_t mean = divide_up(total_, static_cast<std::uint64_t>(count_));
        return std::max(saturated_multiply(mean, static_cast<std::uint64_t>(blocks)), longest_);
    }

    Link link_;
    Rank count_;
    std::uint64_t total_;
    std::uint64_t longest_;
};

graph::Schedule build_as(const graph::Request& request, Rank rank,
                         const MultiplyingSchedule& rounds) {
    Builder builder(request, rank,
                    fmt::format("{}:{}", kAllgatherNWayDissemination.name, to_text(rounds)));
    allgather_n_way_dissemination(builder, Team::whole(request.rank_count, rank), rounds,
                                  own_contribution(builder, request),
                                  output_blocks(builder, request));
    return builder.finish();
}

using Row = DisseminationRow<Price, build_as>;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const DisseminationRounds rounds = Row::cheapest(facts, request);
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * all_blocks(request)),
        2 * all_blocks(request), [&](const Link& link) { return Price(link, request)(rounds); });
}

template <graph::Collective collective>
constexpr Algorithm row() {
    return {
        .name = "n_way_dissemination",
        .collective = collective,
        .summary = "growing runs of blocks to several others a round (Bruck et al. 1997)",
        .cost_ns = cost_ns,
        .build = Row::build,
        .build_with = Row::build_with,
        .argument = "the rounds, such as a4,a3",
    };
}

} // namespace

void allgather_n_way_dissemination(Builder& builder, const Team& team,
                                   const MultiplyingSchedule& rounds, Slice own,
                                   const BlockMap& target, BlocksHeld held) {
    const std::int64_t members = team.size();
    std::int64_t distance = 1;
    for (const Phase& phase : rounds.phases) {
        const Round round{builder, team,     target,
                          held,    distance, std::min(distance * phase.base, members)};
        if (distance == 1) {
            // Before the receives, which may copy at once while others wait.
            round.send(own);
            const std::vector<Arrival> arrivals = round.receive();
            builder.copy(own, target.block(team.index()));
            round.unpack_all(arrivals);
        } else {
            // The receives are posted first, since the sends wait for those of earlier rounds.
            const std::vector<Arrival> arrivals = round.receive();
            round.send({});
            round.unpack_all(arrivals);
        }
        distance = round.end;
    }
    if (distance == 1) {
        builder.copy(own, target.block(team.index()));
    }
}

DisseminationRounds allgather_dissemination_rounds(const Link& link, Rank count,
                                                   std::uint64_t total, std::uint64_t longest) {
    return cheapest_rounds(count, Price(link, count, total, longest));
}

double allgather_n_way_dissemination_ns(const Link& link, Rank count, std::uint64_t total,
                                        std::uint64_t longest, const DisseminationRounds& rounds) {
    return Price(link, count, total, longest)(rounds);
}

const Algorithm kAllgatherNWayDissemination = row<graph::Collective::allgather>();
const Algorithm kAllgathervNWayDissemination = row<graph::Collective::allgatherv>();

} // namespace ucg::plan
