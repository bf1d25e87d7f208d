// Reduce-scatter by n-way dissemination: the allgather of that name (allgather_n_way_dissemination
// .cpp) run backwards, as Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for
// all-to-all communications in multiport message-passing systems", 1997, reverse theirs. Before the
// round at a distance a member has partial results for its own block and those of the members above
// it, as many as the distance times the base. It cuts them at the multiples of the distance, sends
// each part to the member whose block it begins with, and combines what comes with the part that it
// keeps. Any number of members takes as many rounds as there are bases, and each block but one
// leaves once: nothing is folded, unlike in recursive halving. The operand of the farthest member
// comes first, the own one last: one expression for each block in every run, but not in the order
// of ranks, hence for commutative operators.
#include <algorithm>
#include <vector>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/dissemination.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;
using Slices = std::vector<Slice>;

/// One round, which turns partial results for the blocks 0 .. end - 1 above a member into partial
/// results for the first `distance` of them.
struct Round {
    std::int64_t distance = 1;
    std::int64_t end = 1;

    /// Returns how many blocks go to the member that is `hop` above.
    Rank blocks_at(std::int64_t hop) const {
        return static_cast<Rank>(std::min(distance, end - hop));
    }
    /// Returns how far above the farthest member is that blocks go to.
    std::int64_t last_hop() const { return (end - 1) / distance * distance; }
};

/// Returns the rounds in the order in which they run.
std::vector<Round> rounds_of(const MultiplyingSchedule& schedule, Rank count) {
    std::vector<Round> rounds;
    std::int64_t distance = 1;
    for (const Phase& phase : schedule.phases) {
        const std::int64_t end = std::min<std::int64_t>(distance * phase.base, count);
        rounds.push_back({distance, end});
        distance = end;
    }
    std::reverse(rounds.begin(), rounds.end());
    return rounds;
}

/// The program of one member.
class Dissemination {
  public:
    Dissemination(Builder& builder, const Team& team, const BlockMap& source, Slice target)
        : builder_(builder), team_(team), source_(source), target_(target) {}

    void append(const std::vector<Round>& rounds) {
        Slices arrivals = receive(rounds.front());
        for (std::size_t i = 0; i < rounds.size(); ++i) {
            send(rounds[i]);
            Slices next;
            if (i + 1 < rounds.size()) { // Posted before the wait for this round's messages.
                next = receive(rounds[i + 1]);
            }
            combine(rounds[i], arrivals);
            arrivals = std::move(next);
        }
    }

  private:
    /// Appends the receives. Returns where the messages arrive, by rising distance.
    Slices receive(const Round& round) {
        Slices arrivals;
        for (std::int64_t hop = round.distance; hop < round.end; hop += round.distance) {
            const Rank from = neighbour_index(team_, static_cast<Rank>(-hop));
            const Rank blocks = round.blocks_at(hop);
            arrivals.push_back(builder_.scratch(source_.run_bytes(team_.index(), blocks)));
            builder_.recv(team_.rank(from), arrivals.back());
        }
        return arrivals;
    }

    void send(const Round& round) {
        for (std::int64_t hop = round.distance; hop < round.end; hop += round.distance) {
            const Rank to = neighbour_index(team_, static_cast<Rank>(hop));
            const Slices parts = held(static_cast<Rank>(hop), round.blocks_at(hop));
            builder_.send(team_.rank(to), packed(builder_, parts));
        }
    }

    /// Returns what this member has for `blocks` blocks, from the one `first` above its own on.
    Slices held(Rank first, Rank blocks) const {
        const Rank index = neighbour_index(team_, first);
        if (first_round_) {
            return source_.runs(index, blocks);
        }
        return {part(partial_, source_.run_bytes(team_.index(), first),
                     source_.run_bytes(index, blocks))};
    }

    void combine(const Round& round, const Slices& arrivals) {
        const auto kept = static_cast<Rank>(round.distance);
        const bool last = kept == 1;
        const Slice result =
            last ? target_ : builder_.scratch(source_.run_bytes(team_.index(), kept));
        // The farthest member may send fewer blocks than others; source_ may start over in between.
        std::uint64_t begin = 0;
        for (const Slice& own : stretches(round)) {
            Slices operands;
            for (auto arrival = arrivals.rbegin(); arrival != arrivals.rend(); ++arrival) {
                if (begin < arrival->length) {
                    operands.push_back(part(*arrival, begin, own.length));
                }
            }
            operands.push_back(own);
            const Slice place = part(result, begin, own.length);
            reduce_to_result(builder_, operands, place); // Only the last may overlap source_.
            begin += own.length;
        }
        partial_ = result;
        first_round_ = false;
    }

    /// Returns what this member keeps, in parts each of which has the same operands throughout.
    Slices stretches(const Round& round) const {
        const auto kept = static_cast<Rank>(round.distance);
        const Rank fewest = round.blocks_at(round.last_hop());
        Slices parts = held(0, fewest);
        if (fewest < kept) {
            const Slices rest = held(fewest, kept - fewest);
            parts.insert(parts.end(), rest.begin(), rest.end());
        }
        std::erase_if(parts, [](const Slice& slice) { return slice.length == 0; });
        return parts;
    }

    Builder& builder_;
    const Team& team_;
    const BlockMap& source_;
    Slice target_;
    Slice partial_; ///< For its own block and those above, after the first round.
    bool first_round_ = true;
};

class Price {
  public:
    Price(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest)
        : link_(link), count_(count), total_(total), longest_(longest) {}
    Price(const Link& link, const graph::Request& request)
        : Price(link, request.rank_count, all_blocks(request), longest_block(request)) {}

    double operator()(const DisseminationRounds& rounds) const {
        double ns = count_ == 1 ? link_.copy_ns(total_) : 0;
        std::int64_t distance = 1;
        for (unsigned i = 0; i < rounds.rounds; ++i) {
            const std::int64_t end = std::min<std::int64_t>(distance * rounds.base_of(i), count_);
            // They run from the last to the first.
            const Rank next = i + 1 < rounds.rounds ? rounds.base_of(i + 1) : 1;
            ns += round_ns({distance, end},
                           link_.rotated(static_cast<std::uint64_t>(distance),
                                         static_cast<std::uint64_t>(end * next),
                                         static_cast<Rank>((end - 1) / distance)),
                           i + 1 == rounds.rounds);
            distance = end;
        }
        return ns;
    }

  private:
    double round_ns(const Round& round, const Link& link, bool first) const {
        const auto peers = static_cast<Rank>((round.end - 1) / round.distance);
        const auto coming = static_cast<Rank>(round.end - round.distance); // Blocks, in all.
        const std::uint64_t bytes =
            std::max(longest_, bytes_of(coming) / static_cast<std::uint64_t>(peers));
        double ns = link.phase_ns(bytes, first ? Source::settled : Source::fresh,
                                  Link::round_of(peers), 0, &link_);
        // At most members one message wraps around the end of the vector and is packed.
        ns += first && round.distance > 1 ? link_.copy_ns(bytes) : 0;
        ns += peers > 1 ? link.contention_ns(bytes_of(coming)) : 0;
        return ns + link.reduce_arrived_ns(static_cast<unsigned>(peers) + 1,
                                           bytes_of(static_cast<Rank>(round.distance)), total_);
    }

    std::uint64_t bytes_of(Rank blocks) const {
        const std::uint64_t mean = divide_up(total_, static_cast<std::uint64_t>(count_));
        return std::max(saturated_multiply(mean, static_cast<std::uint64_t>(blocks)), longest_);
    }

    Link link_;
    Rank count_;
    std::uint64_t total_; ///< Length of each member's vector.
    std::uint64_t longest_;
};

graph::Schedule build_as(const graph::Request& request, Rank rank,
                         const MultiplyingSchedule& rounds) {
    Builder builder(request, rank,
                    fmt::format("{}:{}", kReduceScatterNWayDissemination.name, to_text(rounds)));
    reduce_scatter_n_way_dissemination(builder, Team::whole(request.rank_count, rank), rounds,
                                       reduce_scatter_source(builder, request),
                                       reduce_scatter_target(builder, request));
    return builder.finish();
}

using Row = DisseminationRow<Price, build_as>;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const DisseminationRounds rounds = Row::cheapest(facts, request);
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * all_blocks(request)),
        3 * all_blocks(request), [&](const Link& link) { return Price(link, request)(rounds); });
}

Result<graph::Schedule> build_with(const Facts& facts, const graph::Request& request, Rank rank,
                                   std::string_view argument) {
    const Result<MultiplyingSchedule> rounds = parse_dissemination(argument, request.rank_count);
    if (rounds.ok()) {
        for (const Phase& round : rounds->phases) {
            if (round.base > kPhaseOperandsMax) {
                return failure(Code::invalid_argument, "{} combines more than {} operands at once",
                               to_text(round), kPhaseOperandsMax);
            }
        }
    }
    return Row::build_with(facts, request, rank, argument);
}

constexpr std::string_view kSummary =
    "an n-way dissemination backwards, any number of ranks without folding (Bruck and others 1997)";
constexpr std::string_view kArgument = "the rounds from the last to the first, such as a4,a3";

} // namespace

void reduce_scatter_n_way_dissemination(Builder& builder, const Team& team,
                                        const MultiplyingSchedule& rounds, const BlockMap& source,
                                        Slice target) {
    UCG_ASSERT(disseminates(rounds, team.size()).ok());
    if (team.size() == 1) {
        builder.copy(source.block(0), target);
        return;
    }
    Dissemination(builder, team, source, target).append(rounds_of(rounds, team.size()));
}

DisseminationRounds reduce_scatter_dissemination_rounds(const Link& link, Rank count,
                                                        std::uint64_t total,
                                                        std::uint64_t longest) {
    return cheapest_rounds(count, Price(link, count, total, longest));
}

double reduce_scatter_n_way_dissemination_ns(const Link& link, Rank count, std::uint64_t total,
                                             std::uint64_t longest,
                                             const DisseminationRounds& rounds) {
    return Price(link, count, total, longest)(rounds);
}

constexpr Algorithm kReduceScatterNWayDissemination = {
    .name = "n_way_dissemination",
    .collective = graph::Collective::reduce_scatter,
    .summary = kSummary,
    .cost_ns = cost_ns,
    .build = Row::build,
    .needs = kReduceScatterAnyOrder,
    .build_with = build_with,
    .argument = kArgument,
};

constexpr Algorithm kReduceScatterBlockNWayDissemination =
    for_collective(kReduceScatterNWayDissemination, graph::Collective::reduce_scatter_block);

} // namespace ucg::plan
