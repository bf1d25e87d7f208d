// K-nomial tree reduction: a rank combines the partial results of its children level by level, the
// smallest subtrees first. Numbers counted from rank 0 keep rank order; so an operator that does
// not commute is reduced at rank 0, which passes the result to the root.
#include <algorithm>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/knomial.hpp"
#include "ucg_coll/plan/parts/knomial_prices.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Most bytes that are received from all children at once. More is received level by level, so that
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

    /// Appends the slices that hold the contributions of one level to `operands`, in order.
    /// REQUIRES: called for the levels in order.
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

/// Combines `source` with all that comes from the children, to `target` unless that is null.
/// Returns the result.
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

/// What a message from a child costs at one level of the machine.
struct FromChild {
    double settled_ns;   ///< By itself, from a leaf.
    double fresh_ns;     ///< By itself, from a child that has only just combined it.
    double next_ns;      ///< What it adds to the one before it.
    double taken_ns;     ///< For how long it keeps the receiver's processor busy.
    double combining_ns; ///< What combining adds to the only message of a level.
    bool overlaps;       ///< Do messages of several children come at the same time?
};

class Prices {
  public:
    Prices(const Link& link, Rank count, std::uint64_t bytes)
        : link_(link), count_(count), bytes_(bytes), from_child_(link, [&](const Link& way) {
              const double gap_ns = way.gap_ns(bytes);
              return FromChild{way.message_ns(bytes),
                               way.message_ns(bytes, Source::fresh),
                               gap_ns,
                               way.is_across_hosts() ? way.take_overhead_ns() : gap_ns,
                               way.combining_ns(bytes, bytes),
                               way.has_plain_messages(bytes)};
          }) {}

    double once_ns(unsigned radix) const {
        return count_ == 1 ? 0 : KnomialPrice(radix, Steps{*this, radix}).up_ns(count_);
    }
    double ns(unsigned radix) const {
        const double way_ns =
            link_.receives_before_ns(link_.far_children(count_, radix) * link_.at_a_time(), bytes_);
        return once_ns(radix) + (link_.is_across_hosts()
                                     ? std::max(way_ns, cost::kBeforeAtRoot * at_root_ns(radix))
                                     : 0);
    }

  private:
    struct Steps {
        const Prices& prices;
        unsigned radix;

        const FromChild& way(std::int64_t span) const {
            return prices.from_child_.in_tree(static_cast<std::uint64_t>(span) * radix, radix);
        }
        TreeMessage message(const TreeChild& child) const {
            const FromChild& from = way(child.span);
            return {child.is_leaf() ? from.settled_ns : from.fresh_ns, from.next_ns, from.overlaps};
        }
        double at_level(std::int64_t span, unsigned children) const {
            return children == 1 ? way(span).combining_ns
                                 : prices.link_.reduce_ns(children + 1, prices.bytes_);
        }
        static double at_node(Rank /*members*/) { return 0; }
    };

    /// Returns for how long the root takes in and combines what its children send.
    double at_root_ns(unsigned radix) const {
        const Steps steps{*this, radix};
        double ns = 0;
        for (std::int64_t span = 1; span < count_; span *= radix) {
            const auto children =
                static_cast<unsigned>(std::min<std::int64_t>(radix - 1, (count_ - 1) / span));
            ns += children * steps.way(span).taken_ns + steps.at_level(span, children);
        }
        return ns;
    }

    const Link& link_;
    Rank count_;
    std::uint64_t bytes_;
    LevelPrices<FromChild> from_child_;
};

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse);
    const unsigned radix = reduce_knomial_radix(link, request.rank_count, request.bytes);
    const double span_ns = reduce_knomial_ns(link, request.rank_count, request.root, request.bytes,
                                             operator_of(request), radix);
    // What is not combined on arrival goes to scratch.
    const std::uint64_t vectors = link.combines_on_arrival(request.bytes) ? 2 : 4;
    return oversubscribed_ns(facts, link, vectors * request.bytes, span_ns, [&](const Work& work) {
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

double reduce_knomial_once_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix) {
    return Prices(link, count, bytes).once_ns(radix);
}

double reduce_knomial_ns(const Link& link, Rank count, Rank root, std::uint64_t bytes, Operator op,
                         unsigned radix) {
    const bool passes_on = !op.commutative && root != 0 && count > 1;
    return Prices(link, count, bytes).ns(radix) +
           (passes_on ? link.message_ns(bytes, Source::fresh, Sender::waits) : 0);
}

unsigned reduce_knomial_radix(const Link& link, Rank count, std::uint64_t bytes) {
    const Prices prices(link, count, bytes);
    return cheapest_radix(
        count, [&](unsigned radix) { return prices.ns(radix); }, link.radix_max());
}

unsigned reduce_knomial_once_radix(const Link& link, Rank count, std::uint64_t bytes) {
    const Prices prices(link, count, bytes);
    return cheapest_radix(
        count, [&](unsigned radix) { return prices.once_ns(radix); }, link.radix_max());
}

const Algorithm kReduceKnomial = {
    .name = "knomial",
    .collective = graph::Collective::reduce,
    .summary = "up a k-nomial tree, smallest subtrees first",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
