// K-nomial tree reduction: a rank combines the partial results of its children level by level, the
// smallest subtrees first. Numbers counted from rank 0 keep rank order; so an operator that does
// not commute is reduced at rank 0, which passes the result to the root.
#include <algorithm>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/crowding.hpp"
#include "ucg_coll/plan/parts/knomial.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Up to this much is received from all children at once; beyond it, level by level, so that
/// scratch does not grow with the depth of the tree.
constexpr std::uint64_t kReceiveAheadBytes = 64 * 1024;

/// Where the contributions of a node's children arrive.
class Inbox {
  public:
    Inbox(Builder& builder, const Team& team, const KnomialNode& node, std::uint64_t bytes)
        : builder_(builder), team_(team), node_(node), bytes_(bytes),
          ahead_(bytes <= kReceiveAheadBytes / std::max<std::size_t>(node.children().size(), 1)) {
        for (unsigned level = 0; ahead_ && level < node.levels(); ++level) {
            post(level,
                 static_cast<std::size_t>(node.children(level).data() - node.children().data()));
        }
    }

    /// The slices that hold the contributions of one level, in order, appended to `operands`.
    /// Levels are asked for in order.
    void take(unsigned level, std::vector<Slice>& operands) {
        if (!ahead_) {
            taken_ = 0;
            post(level, 0);
        }
        const std::size_t count = node_.children(level).size();
        operands.insert(operands.end(), buffers_.begin() + static_cast<std::ptrdiff_t>(taken_),
                        buffers_.begin() + static_cast<std::ptrdiff_t>(taken_ + count));
        taken_ += count;
    }

  private:
    void post(unsigned level, std::size_t buffer) {
        for (const Rank child : node_.children(level)) {
            if (buffer == buffers_.size()) {
                buffers_.push_back(builder_.scratch(bytes_));
            }
            builder_.recv(team_.rank(child), buffers_[buffer++]);
        }
    }

    Builder& builder_;
    const Team& team_;
    const KnomialNode& node_;
    std::uint64_t bytes_;
    bool ahead_;
    std::size_t taken_ = 0;
    std::vector<Slice> buffers_;
};

/// Combines `source` with all that comes from the children; to `target`, unless it is null.
Slice collect(Builder& builder, const Team& team, const KnomialNode& node, Slice source,
              const Slice* target) {
    Inbox inbox(builder, team, node, source.length);
    Slice partial = source;
    for (unsigned level = 0; level < node.levels(); ++level) {
        std::vector<Slice> operands = {partial};
        inbox.take(level, operands);
        if (target != nullptr && level + 1 == node.levels()) {
            reduce_to(builder, operands, *target);
            return *target;
        }
        partial = operands.size() > 1 ? reduce_to_scratch(builder, operands) : partial;
    }
    return partial;
}

/// One message that a reduction waits for is combined where it arrives.
double reduce_level_ns(const Link& link, unsigned radix, std::uint64_t bytes) {
    return radix == 2 ? link.combining_ns(bytes, bytes) : link.reduce_ns(radix, bytes);
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse);
    const unsigned radix = reduce_knomial_radix(link, request.rank_count, request.bytes);
    const double span_ns = reduce_knomial_ns(link, request.rank_count, request.root, request.bytes,
                                             operator_of(request), radix);
    const std::uint64_t vectors = link.combines_in_place(request.bytes) ? 2 : 4; // Or to scratch.
    return crowded_ns(facts, link, vectors * request.bytes, span_ns, [&](const Work& work) {
        return all_but_one(request.rank_count) *
               (work.link().message_ns(request.bytes) + work.link().reduce_ns(2, request.bytes));
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceKnomial.name);
    const Link link = flat_link(facts, Traffic::sparse);
    reduce_knomial(builder, Team::whole(request.rank_count, rank), request.root,
                   contribution(builder, request), builder.output(0, request.bytes),
                   operator_of(request),
                   reduce_knomial_radix(link, request.rank_count, request.bytes));
    return builder.finish();
}

} // namespace

void reduce_knomial(Builder& builder, const Team& team, Rank root, Slice source, Slice target,
                    Operator op, unsigned radix) {
    if (team.size() == 1) {
        builder.copy(source, target);
        return;
    }
    const Rank top = op.commutative ? root : 0;
    const KnomialNode node(team.size(), top, team.index(), radix);
    const bool finishes = team.index() == top && top == root;
    const Slice partial = collect(builder, team, node, source, finishes ? &target : nullptr);
    if (node.parent() != kNoRank) {
        builder.send(team.rank(node.parent()), partial);
    }
    if (top != root && team.index() == top) {
        builder.send(team.rank(root), partial);
    }
    if (top != root && team.index() == root) {
        builder.recv(team.rank(top), target);
    }
}

double reduce_knomial_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes, Operator op,
                         unsigned radix) {
    const unsigned depth = tree_depth(count, radix);
    const bool passes_on = !op.commutative && root != 0;
    if (depth == 0) {
        return 0;
    }
    const auto further_ns = [&](const Link& level) { return level.passing_on_ns(bytes); };
    const auto siblings_ns = [&](const Link& level) {
        return (radix - 2) * level.busy_ns(bytes) + reduce_level_ns(level, radix, bytes);
    };
    return link.within(radix).message_ns(bytes) +
           link.rounds_ns(1, depth, radix, Link::Partners::aligned, further_ns) +
           link.rounds_ns(0, depth, radix, Link::Partners::aligned, siblings_ns) +
           (passes_on ? link.passing_on_ns(bytes, Sender::waits) : 0) +
           link.receives_before_ns(link.far_children(count, radix), bytes);
}

unsigned reduce_knomial_radix(const Link& link, Rank count, std::uint64_t bytes) {
    return cheapest_radix(
        [&](unsigned radix) { return reduce_knomial_ns(link, count, 0, bytes, Operator{}, radix); },
        link.radix_max());
}

const Algorithm kReduceKnomial = {
    .name = "knomial",
    .collective = graph::Collective::reduce,
    .summary = "up a k-nomial tree, smallest subtrees first",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
