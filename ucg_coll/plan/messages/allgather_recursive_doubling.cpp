// Recursive-doubling allgather: in round k members at distance 2^k exchange all they have, an
// aligned run of 2^k blocks. Powers of two only. Thakur, Rabenseifner, Gropp, "Optimization of
// collective communication operations in MPICH", 2005, section 3.1.
#include <algorithm>
#include <array>
#include <bit>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

constexpr std::array kNeeds = {Need{
    "a number of ranks that is a power of two", [](const Facts&, const graph::Request& request) {
        return std::has_single_bit(static_cast<std::uint32_t>(request.rank_count));
    }}};

double cost_ns(const Facts& facts, const graph::Request& request) {
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * all_blocks(request)),
        2 * all_blocks(request), [&](const Link& link) {
            return allgather_recursive_doubling_ns(link, request.rank_count, request.bytes);
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kAllgatherRecursiveDoubling.name);
    allgather_recursive_doubling(builder, Team::whole(request.rank_count, rank),
                                 own_contribution(builder, request),
                                 output_blocks(builder, request));
    return builder.finish();
}

} // namespace

void allgather_recursive_doubling(Builder& builder, const Team& team, Slice own,
                                  const BlockMap& target, BlocksHeld held) {
    const Rank count = team.size();
    UCG_ASSERT(std::has_single_bit(static_cast<std::uint32_t>(count)));
    if (count == 1) {
        builder.copy(own, target.block(0));
    }
    for (Rank distance = 1; distance < count; distance *= 2) {
        const Rank peer = team.index() ^ distance;
        // Returns what the partner at `to` lacks of the blocks that the other partner has.
        const auto lacking = [&](Rank to) {
            const Rank first = (to ^ distance) & ~(distance - 1);
            const Rank has = first < to ? 0 : std::clamp(to + held(to, count) - first, 0, distance);
            return has < distance ? target.runs(first + has, distance - has) : std::vector<Slice>();
        };
        const std::vector<Slice> theirs = lacking(team.index());
        const Slice landing = landing_place(builder, theirs);
        if (distance == 1) { // Before the receive, which may copy while the peer waits.
            builder.send(team.rank(peer), lacking(peer).empty() ? Slice() : own);
        }
        builder.recv(team.rank(peer), landing);
        if (distance == 1) {
            builder.copy(own, target.block(team.index()));
        } else {
            builder.send(team.rank(peer), packed(builder, lacking(peer)));
        }
        unpack(builder, landing, theirs);
    }
}

double allgather_recursive_doubling_ns(const Link& link, Rank count, std::uint64_t block_bytes) {
    double ns = count == 1 ? link.copy_ns(block_bytes)
                           : link.not_hidden_ns(link.copy_ns(block_bytes), block_bytes);
    for (std::uint64_t distance = 1; distance < static_cast<std::uint64_t>(count); distance *= 2) {
        const std::uint64_t bytes = distance * block_bytes;
        const Link round = link.exchanged(distance);
        ns += round.message_ns(bytes, distance == 1 ? Source::settled : Source::fresh);
    }
    return ns;
}

const Algorithm kAllgatherRecursiveDoubling = {
    .name = "recursive_doubling",
    .collective = graph::Collective::allgather,
    .summary = "exchanges at doubling distance (Thakur, Rabenseifner, Gropp 2005)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
