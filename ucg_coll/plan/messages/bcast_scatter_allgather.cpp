// Scatter-allgather broadcast: van de Geijn et al., "Interprocessor collective communication
// library (InterCom)", 1994. The scatter leaves inner members of its tree with more than their own
// block; the ring does not send them again.
#include <algorithm>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/crowding.hpp"
#include "ucg_coll/plan/parts/knomial.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    return crowded_exchange_ns(
        facts, flat_link(facts, Traffic::sparse), request.bytes, [&](const Link& link) {
            return bcast_scatter_allgather_ns(link, request.rank_count, request.bytes);
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    static_cast<void>(facts);
    Builder builder(request, rank, kBcastScatterAllgather.name);
    bcast_scatter_allgather(builder, Team::whole(request.rank_count, rank), request.root,
                            bcast_data(builder, request));
    return builder.finish();
}

std::uint64_t block_bytes(std::uint64_t bytes, Rank count) {
    return round_up(divide_up(bytes, static_cast<std::uint64_t>(count)), kCacheLine);
}

/// Members numbered from the root; number n's block is the n-th. Blocks at the end may be short or
/// empty.
class Blocks {
  public:
    Blocks(const Team& team, Rank root, Slice data)
        : data_(data), block_bytes_(block_bytes(data.length, team.size())), count_(team.size()),
          root_(root) {}

    std::int64_t number(Rank index) const {
        return (std::int64_t{index} - root_ + count_) % count_;
    }

    /// Blocks [first, last).
    Slice range(std::int64_t first, std::int64_t last) const {
        const std::uint64_t begin = offset(first);
        return part(data_, begin, offset(std::min<std::int64_t>(last, count_)) - begin);
    }

    /// How many blocks, from its own on, the scatter gives to a member.
    std::int64_t held(std::int64_t number) const { return number == 0 ? count_ : number & -number; }

    /// Does the ring bring `block` to the member of that number?
    bool arrives(std::int64_t block, std::int64_t number) const {
        return block < number || block >= number + held(number);
    }

  private:
    std::uint64_t offset(std::int64_t block) const {
        return std::min(static_cast<std::uint64_t>(block) * block_bytes_, data_.length);
    }

    Slice data_;
    std::uint64_t block_bytes_;
    std::int64_t count_;
    Rank root_;
};

void scatter(Builder& builder, const Team& team, Rank root, const Blocks& blocks) {
    const KnomialNode node(team.size(), root, team.index(), 2);
    const auto subtree = [&](Rank index) {
        const std::int64_t number = blocks.number(index);
        return blocks.range(number, number + blocks.held(number));
    };
    if (node.parent() != kNoRank) {
        builder.recv(team.rank(node.parent()), subtree(team.index()));
    }
    for (unsigned level = node.levels(); level-- > 0;) {
        for (const Rank child : node.children(level)) {
            builder.send(team.rank(child), subtree(child));
        }
    }
}

void allgather(Builder& builder, const Team& team, const Blocks& blocks) {
    const Rank count = team.size();
    const Rank next = (team.index() + 1) % count;
    const Rank previous = (team.index() + count - 1) % count;
    const std::int64_t number = blocks.number(team.index());
    for (std::int64_t step = 0; step + 1 < count; ++step) {
        const std::int64_t out = (number - step + count) % count;
        const std::int64_t in = (number - step - 1 + count) % count;
        // Received first, since the send waits for the receive of the step before.
        if (blocks.arrives(in, number)) {
            builder.recv(team.rank(previous), blocks.range(in, in + 1));
        }
        if (blocks.arrives(out, blocks.number(next))) {
            builder.send(team.rank(next), blocks.range(out, out + 1));
        }
    }
}

} // namespace

void bcast_scatter_allgather(Builder& builder, const Team& team, Rank root, Slice data) {
    const Blocks blocks(team, root, data);
    scatter(builder, team, root, blocks);
    allgather(builder, team, blocks);
}

double bcast_scatter_allgather_ns(const Link& link, Rank count, std::uint64_t bytes) {
    // The scatter halves the length at each level, so that the lengths add up to the whole.
    const double scatter_ns =
        tree_depth(count, 2) * link.message_ns(0) + static_cast<double>(bytes) * link.byte_ns();
    const double before_ns = link.sends_before_ns(tree_depth(count, 2), 0) +
                             static_cast<double>(bytes) * link.byte_ns() +
                             link.sends_before_ns(count - 1, block_bytes(bytes, count));
    return scatter_ns + (count - 1) * link.message_ns(block_bytes(bytes, count)) + before_ns;
}

const Algorithm kBcastScatterAllgather = {
    .name = "scatter_allgather",
    .collective = graph::Collective::bcast,
    .summary = "a binomial scatter, then a ring allgather (van de Geijn 1994)",
    .eligible = serves_all,
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
