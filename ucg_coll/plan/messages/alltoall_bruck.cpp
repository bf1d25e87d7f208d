// Bruck's alltoall: a block that has to go i members up makes one hop for each bit of i, together
// with all others that have this bit: ceil(log2 P) messages instead of P - 1, each block moved up
// to log2 P times. For short blocks. Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms
// for all-to-all communications in multiport message-passing systems", 1997.
//
// Bits are taken from the highest down. A block is packed from where its last hop left it (no
// rotation before, after Träff, Rougier, Hunold, "Implementing a classic: zero-copy all-to-all
// communication with MPI datatypes", 2014), and what is packed lies in runs: P copies in all rounds
// together.
#include <algorithm>
#include <bit>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/network/network.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Returns how many of the distances 0 .. limit - 1 have bit `bit` set. That is also the position
/// of `limit` among the distances that have the bit, if it has it.
std::uint64_t count_with_bit(std::uint64_t limit, unsigned bit) {
    const std::uint64_t half = std::uint64_t{1} << bit;
    const std::uint64_t rest = limit & (2 * half - 1);
    return ((limit >> (bit + 1)) << bit) + (rest > half ? rest - half : 0);
}

/// Returns how many times a block travels, on average.
double hops_ratio(Rank count) {
    const auto ranks = static_cast<std::uint64_t>(count);
    std::uint64_t hops = 0;
    for (unsigned bit = 0; bit < ceil_log2(ranks); ++bit) {
        hops += count_with_bit(ranks, bit);
    }
    return ranks > 1 ? static_cast<double>(hops) / static_cast<double>(ranks - 1) : 0;
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t all_bytes = static_cast<std::uint64_t>(request.rank_count) * request.bytes;
    const double alone_ns = oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * all_bytes), 4 * all_bytes,
        [&](const Link& link) {
            return alltoall_bruck_ns(link, request.rank_count, request.bytes);
        });
    return contended_ns(facts, alone_ns, hops_ratio(request.rank_count), request.bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kAlltoallBruck.name);
    const Team team = Team::whole(request.rank_count, rank);
    const BlockMap target = output_blocks(builder, request);
    const BlockMap source =
        request.in_place ? set_aside(builder, team, target) : input_blocks(builder, request);
    alltoall_bruck(builder, team, source, target, request.bytes);
    return builder.finish();
}

/// The rounds of one member.
class Rounds {
  public:
    Rounds(Builder& builder, const Team& team, const BlockMap& source, std::uint64_t block_bytes)
        : builder_(builder), team_(team), source_(source), block_bytes_(block_bytes),
          arrived_(ceil_log2(static_cast<std::uint64_t>(team.size()))) {}

    void run() {
        for (unsigned bit = static_cast<unsigned>(arrived_.size()); bit-- > 0;) {
            const Rank distance = Rank{1} << bit;
            arrived_[bit] = builder_.scratch(count_with_bit(size(), bit) * block_bytes_);
            builder_.recv(team_.rank(neighbour_index(team_, -distance)), arrived_[bit]);
            builder_.send(team_.rank(neighbour_index(team_, distance)),
                          packed(builder_, outgoing(bit)));
        }
    }

    /// Returns where the block that has to go `distance` up arrived in the round of `bit`, the
    /// latest of the rounds for the bits of `distance` so far.
    Slice arrived(std::uint64_t distance, unsigned bit) const {
        return part(arrived_[bit], count_with_bit(distance, bit) * block_bytes_, block_bytes_);
    }

  private:
    std::uint64_t size() const { return static_cast<std::uint64_t>(team_.size()); }

    /// Returns the blocks whose distance has `bit`, in rising order of distance. In runs of 2^bit
    /// they share all higher bits, and so lie together where they arrived before.
    std::vector<Slice> outgoing(unsigned bit) const {
        const std::uint64_t run = std::uint64_t{1} << bit;
        std::vector<Slice> slices;
        for (std::uint64_t first = run; first < size(); first += 2 * run) {
            const std::uint64_t count = std::min(run, size() - first);
            const std::uint64_t higher = first >> (bit + 1);
            if (higher == 0) { // Not moved yet.
                const Rank start = neighbour_index(team_, static_cast<Rank>(first));
                for (const Slice& slice : source_.runs(start, static_cast<Rank>(count))) {
                    append_slice(slices, slice);
                }
                continue;
            }
            const unsigned last_hop = bit + 1 + static_cast<unsigned>(std::countr_zero(higher));
            Slice slice = arrived(first, last_hop);
            slice.length = count * block_bytes_;
            append_slice(slices, slice);
        }
        return slices;
    }

    Builder& builder_;
    const Team& team_;
    const BlockMap& source_;
    std::uint64_t block_bytes_;
    std::vector<Slice> arrived_; ///< Where blocks arrive, by bit.
};

} // namespace

void alltoall_bruck(Builder& builder, const Team& team, const BlockMap& source,
                    const BlockMap& target, std::uint64_t block_bytes) {
    Rounds rounds(builder, team, source, block_bytes);
    rounds.run();
    builder.copy(source.block(team.index()), target.block(team.index()));
    for (Rank distance = 1; distance < team.size(); ++distance) {
        const auto moved = static_cast<std::uint64_t>(distance);
        builder.copy(rounds.arrived(moved, static_cast<unsigned>(std::countr_zero(moved))),
                     target.block(neighbour_index(team, -distance)));
    }
}

double alltoall_bruck_ns(const Link& link, Rank count, std::uint64_t block_bytes) {
    const auto ranks = static_cast<std::uint64_t>(count);
    double ns = static_cast<double>(ranks) * link.copy_ns(block_bytes);
    for (unsigned bit = 0; bit < ceil_log2(ranks); ++bit) {
        const std::uint64_t blocks = count_with_bit(ranks, bit);
        const std::uint64_t bytes = blocks * block_bytes;
        const Link round = link.rotated(std::uint64_t{1} << bit, std::uint64_t{4} << bit);
        // Several blocks are packed, in runs.
        const std::uint64_t run = std::min(std::uint64_t{1} << bit, blocks);
        ns += blocks == 1 ? round.message_ns(bytes)
                          : round.message_ns(bytes, Source::fresh) +
                                static_cast<double>(blocks) / static_cast<double>(run) *
                                    link.copy_ns(run * block_bytes);
    }
    return ns;
}

const Algorithm kAlltoallBruck = {
    .name = "bruck",
    .collective = graph::Collective::alltoall,
    .summary =
        "blocks hop along the bits of their distance, ceil(log2 P) rounds (Bruck et al. 1997)",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
