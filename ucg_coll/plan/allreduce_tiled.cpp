// Tiled allreduce: each rank combines one tile of all vectors, then reads the others' tiles. Li,
// Hoefler and Snir (HPDC 2013), section 2.4: the naive order, in which all start with the same
// vector, the cyclic one of Mamidala et al., in which each starts with its own.
#include "ucg_coll/plan/crowding.hpp"
#include "ucg_coll/plan/shared_stages.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::OpId;
using graph::Slice;

// All ranks meet twice for each strip, so that one place in each window is enough.
constexpr std::uint32_t kRotation = 1;
// Two windows, or, in place, one and the tile in scratch.
constexpr std::uint32_t kPlaces = 2;

Strips strips_of(const Facts& facts, const graph::Request& request) {
    return strips_for(facts.shared, request.bytes, request.element_bytes, kRotation, kPlaces);
}

template <bool cyclic>
bool eligible(const Facts& facts, const graph::Request& request) {
    return strips_fit(facts, request, kPlaces) && (request.commutative || !cyclic);
}

template <bool cyclic>
double cost_ns(const Facts& facts, const graph::Request& request) {
    const cost::NodeModel& node = facts.shared.node;
    const auto count = static_cast<std::uint64_t>(request.rank_count);
    const Strips strips = strips_of(facts, request);
    const std::uint64_t published = request.bytes + request.bytes / count;
    const double span_ns = publish_ns(facts, published) + meet_ns(facts) +
                           for_strips_ns(strips, [&](std::uint64_t bytes) {
                               return 2 * meet_ns(facts) + cost::broadcast_ns(node, bytes) +
                                      (cyclic ? cost::tiled_reduce_cyclic_ns(node, bytes)
                                              : cost::tiled_reduce_naive_ns(node, bytes));
                           });
    return crowded_ns(facts, host_link(facts), 2 * request.bytes, span_ns, [&](const Work& work) {
        return tiled_work_ns(work, request.rank_count, request.bytes);
    });
}

/// One rank's view of one strip.
class TiledStrip {
  public:
    TiledStrip(Builder& builder, const Facts& facts, const graph::Request& request,
               const Team& team, const Strip& strip, Slice tile_scratch)
        : builder_(builder), facts_(facts), request_(request), team_(team), strip_(strip),
          tile_scratch_(tile_scratch) {}

    StripOps run(bool cyclic) {
        const Slice source = strip_.of(contribution(builder_, request_));
        const OpId published = builder_.publish(source, strip_.after);
        OpIds last = {published};
        meet(builder_, facts_, team_, last);
        combine(source, cyclic, last);
        meet(builder_, facts_, team_, last);
        OpIds copies = last; // Of a strip with fewer tiles than ranks there may be none.
        for (Rank step = 1; step < team_.size(); ++step) {
            const Rank index = (team_.index() + step) % team_.size();
            const Slice target = tile(strip_.of(output()), index);
            const OpId copied =
                builder_.copy(at_rank(team_.rank(index), result(index)), target, last);
            if (copied != graph::kNoOp) {
                copies.push_back(copied);
            }
        }
        return {published, std::move(copies)};
    }

  private:
    Slice output() const { return builder_.output(0, request_.bytes); }
    Slice tile(Slice strip, Rank index) const {
        return tile_of(strip, index, team_.size(), request_.element_bytes);
    }
    /// Where the result of a tile is read: in place it cannot be published, since it stands where
    /// the contribution was.
    Slice result(Rank index) const {
        const Slice published = tile(strip_.of(output()), index);
        return request_.in_place ? part(tile_scratch_, 0, published.length) : published;
    }

    void combine(Slice source, bool cyclic, OpIds& last) {
        const Slice own = result(team_.index());
        std::vector<Slice> operands;
        for (const Rank peer : reading_order(team_, cyclic)) {
            operands.push_back(at_rank(peer, tile(source, team_.index())));
        }
        const OpId combined = builder_.reduce(operands, own, last);
        if (combined == graph::kNoOp) {
            return; // An empty tile.
        }
        last = {combined};
        if (request_.in_place) {
            builder_.copy(own, tile(strip_.of(output()), team_.index()));
        } else {
            last = {builder_.publish(own)};
        }
    }

    Builder& builder_;
    const Facts& facts_;
    const graph::Request& request_;
    const Team& team_;
    const Strip& strip_;
    Slice tile_scratch_;
};

template <bool cyclic>
graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, cyclic ? "tiled_cyclic" : "tiled_naive");
    const Team team = Team::whole(request.rank_count, rank);
    const Strips strips = strips_of(facts, request);
    builder.window(strips.window_bytes());
    const Slice tile_scratch =
        request.in_place ? builder.scratch(strips.strip_bytes) : builder.scratch(0);
    OpIds last = for_each_strip(builder, strips, 1, [&](const Strip& strip) {
        return TiledStrip(builder, facts, request, team, strip, tile_scratch).run(cyclic);
    });
    meet(builder, facts, team, last);
    return builder.finish();
}

template <bool cyclic>
constexpr Algorithm row() {
    return {
        .name = cyclic ? "tiled_cyclic" : "tiled_naive",
        .collective = graph::Collective::allreduce,
        .summary = cyclic
                       ? "each rank combines a tile, starting with its own vector (Mamidala 2006)"
                       : "each rank combines a tile of all vectors (Li, Hoefler, Snir 2013)",
        .eligible = eligible<cyclic>,
        .cost_ns = cost_ns<cyclic>,
        .build = build<cyclic>,
        .needs = cyclic ? "one host, several ranks, staging memory that they share, and a "
                          "commutative operator"
                        : kNeedsSharedMemory,
    };
}

} // namespace

const Algorithm kAllreduceTiledNaive = row<false>();
const Algorithm kAllreduceTiledCyclic = row<true>();

} // namespace ucg::plan
