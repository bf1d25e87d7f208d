// Broadcast of a vector in blocks, each of which takes its own tree of a circulant graph: as many
// rounds as any broadcast of so many blocks needs, and every link carries the vector once.
#include <algorithm>

#include "ucg_coll/plan/messages/circulant.hpp"
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/needs.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Appends all rounds of one phase. piece_of(number) returns the slice for a block number.
template <typename PieceOf>
void one_phase(Builder& builder, const Team& from_root, const CirculantPhase& phase,
               PieceOf piece_of) {
    for (const CirculantPhase::Round& round : phase.rounds()) {
        if (from_root.index() != 0) {
            builder.recv(from_root.rank(round.from), piece_of(round.received));
        }
        if (round.to != 0) {
            builder.send(from_root.rank(round.to), piece_of(round.sent));
        }
    }
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse);
    const Rank count = request.rank_count;
    const std::uint64_t phases = bcast_circulant_phases(link, count, request.bytes);
    const double span_ns = bcast_circulant_ns(link, count, request.bytes, phases);
    const std::uint64_t blocks = circulant_block_count(count, phases);
    return oversubscribed_pieces_ns(facts, link, request, span_ns, blocks, [&](const Work& work) {
        return work.link().message_ns(request.bytes / blocks);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastCirculant.name);
    const Link link = flat_link(facts, Traffic::sparse);
    bcast_circulant(builder, Team::whole(request.rank_count, rank), request.root,
                    bcast_data(builder, request),
                    bcast_circulant_phases(link, request.rank_count, request.bytes));
    return builder.finish();
}

} // namespace

void bcast_circulant(Builder& builder, const Team& team, Rank root, Slice data,
                     std::uint64_t phases) {
    if (team.size() == 1 || data.length == 0) {
        return;
    }
    const Team from_root = team.starting_at(root);
    const CirculantPhase phase(team.size(), from_root.index());
    const CirculantBlocks blocks(data.length, circulant_round_count(team.size()), phases, 1,
                                 CirculantBlocks::Order::rising);
    const auto unrolled = [&](std::uint64_t number) {
        one_phase(builder, from_root, phase,
                  [&](int block) { return blocks.of(data, block, number); });
    };
    unrolled(0);
    if (phases > 2) {
        builder.begin_repeat((phases - 2) * blocks.phase_bytes(), blocks.phase_bytes());
        one_phase(builder, from_root, phase,
                  [&](int block) { return advance(blocks.of(data, block, 1)); });
        builder.end_repeat();
    }
    if (phases > 1) {
        unrolled(phases - 1);
    }
}

double bcast_circulant_ns(const Link& link, Rank count, std::uint64_t bytes, std::uint64_t phases) {
    if (count == 1 || bytes == 0) {
        return 0;
    }
    const unsigned rounds = circulant_round_count(count);
    const auto further = static_cast<double>((phases - 1) * rounds);
    const std::uint64_t block = bytes / circulant_block_count(count, phases);
    const auto hop_ns = [&](const Link& hop) { return hop.message_ns(block, Source::fresh); };
    return link.rounds_ns(0, rounds, 2, Link::Partners::rotated, hop_ns) +
           further * link.relay_gap_ns(block, Source::fresh) +
           link.sends_before_ns(further + rounds, block);
}

std::uint64_t bcast_circulant_phases(const Link& link, Rank count, std::uint64_t bytes) {
    const auto rounds = static_cast<Rank>(circulant_round_count(count));
    const std::uint64_t block =
        pipeline_segment(bytes, rounds, link.relay_gap_fixed_ns(), link.relay_gap_per_byte_ns(), 1);
    return circulant_phases(count, bytes, block, 1, [&](std::uint64_t phases) {
        return bcast_circulant_ns(link, count, bytes, phases);
    });
}

constexpr Need kNeeds[] = {kHostEach, kMoreThanTwoRanks};

const Algorithm kBcastCirculant = {
    .name = "circulant",
    .collective = graph::Collective::bcast,
    .summary = "in blocks over a circulant graph, in the fewest rounds (Träff 2024)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
