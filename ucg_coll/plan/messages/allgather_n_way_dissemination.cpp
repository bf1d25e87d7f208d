// N-way dissemination allgather: Bruck's (allgather_bruck.cpp) with several messages a round, as
// the paper has it for several ports, and a base for each round (dissemination.hpp). Before a round
// a member has as many blocks as the distance, beginning with its own, and sends them to those at
// multiples of the distance below it.
#include <algorithm>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/dissemination.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/crowding.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// What goes at a multiple of the distance: all blocks in hand, or as many as are still missing.
Rank blocks_at(std::int64_t hop, std::int64_t distance, std::int64_t members) {
    return static_cast<Rank>(std::min(distance, members - hop));
}

struct Arrival {
    Slice landing;
    std::vector<Slice> runs;
};

/// One round at one member: with those at the multiples of `distance` below `end`.
struct Round {
    Builder& builder;
    const Team& team;
    const BlockMap& target;
    std::int64_t distance = 1;
    std::int64_t end = 1;

    std::vector<Arrival> receive() const {
        std::vector<Arrival> arrivals;
        for (std::int64_t hop = distance; hop < end; hop += distance) {
            const Rank from = neighbour_index(team, static_cast<Rank>(hop));
            std::vector<Slice> runs = target.runs(from, blocks_at(hop, distance, team.size()));
            const Slice landing = landing_place(builder, runs);
            builder.recv(team.rank(from), landing);
            arrivals.push_back({landing, std::move(runs)});
        }
        return arrivals;
    }

    /// `own`: the one block of the first round.
    void send(Slice own) const {
        Slice outgoing = own;
        Rank packed_blocks = distance == 1 ? 1 : 0; // All but the last message are alike.
        for (std::int64_t hop = distance; hop < end; hop += distance) {
            const Rank to = neighbour_index(team, static_cast<Rank>(-hop));
            const Rank blocks = blocks_at(hop, distance, team.size());
            if (blocks != packed_blocks) {
                outgoing = packed(builder, target.runs(team.index(), blocks));
                packed_blocks = blocks;
            }
            builder.send(team.rank(to), outgoing);
        }
    }

    void unpack_all(std::span<const Arrival> arrivals) const {
        for (const Arrival& arrival : arrivals) {
            unpack(builder, arrival.landing, arrival.runs);
        }
    }
};

/// How long blocks are. A run of neighbours' is priced as average ones, or as the longest alone.
struct Lengths {
    explicit Lengths(const graph::Request& request)
        : longest(longest_block(request)),
          average(divide_up(all_blocks(request), static_cast<std::uint64_t>(request.rank_count))) {}

    std::uint64_t of(Rank blocks) const {
        return std::max(longest, average * static_cast<std::uint64_t>(blocks));
    }

    std::uint64_t longest;
    std::uint64_t average;
};

class Price {
  public:
    Price(const Link& link, const graph::Request& request)
        : link_(link), count_(request.rank_count), lengths_(request) {}

    double operator()(const DisseminationRounds& rounds) const {
        double ns = link_.copy_ns(lengths_.longest);
        std::int64_t distance = 1;
        for (unsigned round = 0; round < rounds.rounds; ++round) {
            const std::uint64_t first = lengths_.of(blocks_at(distance, distance, count_));
            ns += round == 0 ? link_.message_ns(first) : link_.passing_on_ns(first);
            const std::int64_t end =
                std::min<std::int64_t>(distance * rounds.base_of(round), count_);
            for (std::int64_t hop = 2 * distance; hop < end; hop += distance) {
                const std::uint64_t bytes = lengths_.of(blocks_at(hop, distance, count_));
                ns += link_.relay_ns(bytes); // One goes and one comes.
            }
            distance = end;
        }
        return ns;
    }

  private:
    Link link_;
    Rank count_;
    Lengths lengths_;
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
    return crowded_exchange_ns(facts, flat_link(facts, Traffic::dense), 2 * all_blocks(request),
                               [&](const Link& link) { return Price(link, request)(rounds); });
}

template <graph::Collective collective>
constexpr Algorithm row() {
    return {
        .name = "n_way_dissemination",
        .collective = collective,
        .summary = "growing runs of blocks to several others a round (Bruck et al. 1997)",
        .eligible = serves_all,
        .cost_ns = cost_ns,
        .build = Row::build,
        .build_with = Row::build_with,
        .argument = "the rounds, such as a4,a3",
    };
}

} // namespace

void allgather_n_way_dissemination(Builder& builder, const Team& team,
                                   const MultiplyingSchedule& rounds, Slice own,
                                   const BlockMap& target) {
    const std::int64_t members = team.size();
    std::int64_t distance = 1;
    for (const Phase& phase : rounds.phases) {
        const Round round{builder, team, target, distance,
                          std::min(distance * phase.base, members)};
        if (distance == 1) {
            // Before the receives, which may copy at once while others wait.
            round.send(own);
            const std::vector<Arrival> arrivals = round.receive();
            builder.copy(own, target.block(team.index()));
            round.unpack_all(arrivals);
        } else {
            const std::vector<Arrival> arrivals = round.receive(); // Sends wait for earlier ones.
            round.send({});
            round.unpack_all(arrivals);
        }
        distance = round.end;
    }
    if (distance == 1) {
        builder.copy(own, target.block(team.index()));
    }
}

const Algorithm kAllgatherNWayDissemination = row<graph::Collective::allgather>();
const Algorithm kAllgathervNWayDissemination = row<graph::Collective::allgatherv>();

} // namespace ucg::plan
