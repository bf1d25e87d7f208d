// K-nomial tree broadcast: the root sends to the largest subtrees first. Radix 2 is the binomial
// tree.
#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/knomial.hpp"
#include "ucg_coll/plan/parts/knomial_prices.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

double cost_ns(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse);
    const unsigned radix = bcast_knomial_radix(link, request.rank_count, request.bytes);
    const double span_ns = bcast_knomial_ns(link, request.rank_count, request.bytes, radix);
    return oversubscribed_ns(facts, link, 2 * request.bytes, span_ns, [&](const Work& work) {
        return all_but_one(request.rank_count) * work.link().message_ns(request.bytes);
    });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastKnomial.name);
    const Link link = flat_link(facts, Traffic::sparse);
    bcast_knomial(builder, Team::whole(request.rank_count, rank), request.root,
                  bcast_data(builder, request),
                  bcast_knomial_radix(link, request.rank_count, request.bytes));
    return builder.finish();
}

/// What a message to a child costs at one level of the machine. The sender helps all of its
/// children to copy, one after the other.
struct ToChild {
    ToOneOf of_root;   ///< Sent by the root.
    ToOneOf of_others; ///< Sent by another member, which has only just received it.
    double apart_ns;   ///< By how much later the next message leaves.
};

class Prices {
  public:
    /// `source` is for how long the root has had the data. `link` must outlive this.
    Prices(const Link& link, Rank count, std::uint64_t bytes, Source source)
        : link_(link), count_(count), to_child_(link, [&](const Link& way) {
              return ToChild{way.to_one_of(bytes, source), way.to_one_of(bytes, Source::fresh),
                             way.gap_of_sender_ns(bytes)};
          }) {}

    double once_ns(unsigned radix) const {
        return count_ == 1 ? 0
                           : KnomialPrice(radix, Steps{link_, to_child_, radix}).down_ns(count_);
    }

  private:
    struct Steps {
        const Link& link;
        const LevelPrices<ToChild>& to_child;
        unsigned radix;

        TreeMessage message(const TreeChild& child) const {
            const ToChild& way =
                to_child.in_tree(static_cast<std::uint64_t>(child.span) * radix, radix);
            return {(child.of_root ? way.of_root : way.of_others).ns(child.before), way.apart_ns};
        }
        std::size_t level(std::int64_t span) const {
            return link.levels().between(0, static_cast<Rank>(span * (radix - 1)));
        }
        static double at_node(Rank /*members*/) { return 0; }
    };

    const Link& link_;
    Rank count_;
    LevelPrices<ToChild> to_child_;
};

double sends_before_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix) {
    return link.sends_before_ns(link.far_children(count, radix), bytes);
}

} // namespace

void bcast_knomial(Builder& builder, const Team& team, Rank root, Slice data, unsigned radix) {
    const KnomialNode node(team.size(), root, team.index(), radix);
    if (node.parent() != kNoRank) {
        builder.recv(team.rank(node.parent()), data);
    }
    for (unsigned level = node.levels(); level-- > 0;) {
        for (const Rank child : node.children(level)) {
            builder.send(team.rank(child), data);
        }
    }
}

double bcast_knomial_once_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix,
                             Source source) {
    return Prices(link, count, bytes, source).once_ns(radix);
}

double bcast_knomial_ns(const Link& link, Rank count, std::uint64_t bytes, unsigned radix) {
    return bcast_knomial_once_ns(link, count, bytes, radix, Source::settled) +
           sends_before_ns(link, count, bytes, radix);
}

unsigned bcast_knomial_radix(const Link& link, Rank count, std::uint64_t bytes) {
    const Prices prices(link, count, bytes, Source::settled);
    return cheapest_radix(
        count,
        [&](unsigned radix) {
            return prices.once_ns(radix) + sends_before_ns(link, count, bytes, radix);
        },
        link.radix_max());
}

const Algorithm kBcastKnomial = {
    .name = "knomial",
    .collective = graph::Collective::bcast,
    .summary = "down a k-nomial tree, largest subtrees first",
    .cost_ns = cost_ns,
    .build = build,
};

} // namespace ucg::plan
