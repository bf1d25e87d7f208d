// Tiled allreduce: each rank combines one tile of all vectors, then reads the others' tiles. Li,
// Hoefler and Snir (HPDC 2013), section 2.4, have two orders: the naive one, in which all start
// with the same vector, and the cyclic one of Mamidala et al., in which each starts with its own.
// In a third variant ranks send one another their tiles, in messages that the sender copies out of
// its own cache.
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/stages.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::OpId;
using graph::Slice;

// One place in each staging buffer is enough, since all ranks meet twice for each segment, or have
// one another's tiles at its end.
constexpr std::uint32_t kRotation = 1;
/// How ranks read the vectors that they combine, and how they pass on their tiles.
struct Variant {
    const char* name;
    bool cyclic;
    bool sends;
    /// Places in staging memory: for two staging buffers, or, in place, for one and the tile in
    /// scratch. Ranks that send tiles publish none.
    std::uint32_t places;
};
constexpr Variant kNaive = {"tiled_naive", false, false, 2};
constexpr Variant kCyclic = {"tiled_cyclic", true, false, 2};
constexpr Variant kExchange = {"tiled_exchange", false, true, 1};

template <const Variant& variant>
Segments segments_of(const Facts& facts, const graph::Request& request) {
    return segments_for(facts.shared, request.bytes, request.element_bytes, kRotation,
                        variant.places);
}

template <const Variant& variant>
double segment_ns(const Facts& facts, const graph::Request& request, std::uint64_t bytes) {
    const Rank count = request.rank_count;
    const Tiles tiles = tiles_of(bytes, count, request.element_bytes);
    const double combine_ns =
        combine_tile_ns(facts, tiles, static_cast<unsigned>(count), 2 * request.bytes);
    if (!variant.sends) {
        return 2 * barrier_ns(facts) + combine_ns +
               read_and_copy_ns(facts,
                                read_others_ns(facts, Readers::in_turn, tiles.bytes) * tiles.count /
                                    count,
                                bytes - tiles.bytes, request.bytes);
    }
    // Where ranks take turns, a rank that waits for the next tile waits for one more turn.
    const double turns_ns =
        std::max(tiles.count - 2, 0) * turn_ns(facts.profile, facts.ranks_per_cpu);
    const Link link = host_link(facts);
    const auto phase_ns = [&](const Link& way, Rank sends, Rank takes) {
        return way.phase_ns(tiles.bytes, Source::fresh,
                            {.sends = sends, .takes = takes, .last_sent = sends});
    };
    // The last message goes one of the longest ways.
    return barrier_ns(facts) + combine_ns + turns_ns + phase_ns(link, 1, 1) +
           link.to_all_ns(1, count, [&](const Link& way) {
               return phase_ns(way, count - 1, tiles.count - 1) - phase_ns(way, 1, 1);
           });
}

template <const Variant& variant>
double cost_ns(const Facts& facts, const graph::Request& request) {
    const auto count = static_cast<std::uint64_t>(request.rank_count);
    const Segments segments = segments_of<variant>(facts, request);
    const double passed_on_ns =
        variant.sends
            ? publish_ns(facts, request.bytes)
            : publish_ns(facts, request.bytes + request.bytes / count) + barrier_ns(facts);
    const double span_ns = passed_on_ns + for_segments_ns(segments, [&](std::uint64_t bytes) {
                               return segment_ns<variant>(facts, request, bytes);
                           });
    return oversubscribed_ns(
        facts, host_link(facts), 2 * request.bytes, span_ns, [&](const Work& work) {
            // Sender and receiver do not share copies: receivers copy, as from staging buffers.
            const double messages =
                variant.sends ? static_cast<double>((count - 1) * segments.count()) : 0;
            return tiled_work_ns(work, request.rank_count, request.bytes) +
                   messages * work.link().message_ns(0) + barriers_work_ns(facts, segments.count());
        });
}

/// One rank's view of one segment.
class TiledSegment {
  public:
    TiledSegment(Builder& builder, const Facts& facts, const graph::Request& request,
                 const Team& team, const Segment& segment, Slice tile_scratch)
        : builder_(builder), facts_(facts), request_(request), team_(team), segment_(segment),
          tile_scratch_(tile_scratch) {}

    SegmentOps run(const Variant& variant) {
        const Slice source = segment_.of(contribution(builder_, request_));
        const OpId published = builder_.publish(source, segment_.after);
        OpIds last = {published};
        barrier(builder_, facts_, team_, last);
        combine(source, variant, last);
        variant.sends ? exchange(last) : read(last);
        return {published, std::move(last)};
    }

  private:
    void read(OpIds& last) {
        barrier(builder_, facts_, team_, last);
        const OpIds met = last; // Of a segment with fewer tiles than ranks there may be no copy.
        for (Rank step = 1; step < team_.size(); ++step) {
            const Rank index = (team_.index() + step) % team_.size();
            const Slice target = tile(segment_.of(output()), index);
            add(last, builder_.copy(at_rank(team_.rank(index), result(index)), target, met));
        }
    }

    /// Sends this rank's tile to all others and receives theirs. A rank whose tile has arrived has
    /// read this rank's vector; a rank without a tile reads nothing.
    void exchange(OpIds& last) {
        const OpIds combined = last;
        for (Rank step = 1; step < team_.size(); ++step) {
            const Rank index = (team_.index() + step) % team_.size();
            builder_.send(team_.rank(index), result(team_.index()), combined);
        }
        for (Rank step = 1; step < team_.size(); ++step) {
            const Rank index = (team_.index() + team_.size() - step) % team_.size();
            add(last, builder_.recv(team_.rank(index), tile(segment_.of(output()), index)));
        }
    }

    static void add(OpIds& ops, OpId op) {
        if (op != graph::kNoOp) {
            ops.push_back(op);
        }
    }

    Slice output() const { return builder_.output(0, request_.bytes); }
    Slice tile(Slice segment, Rank index) const {
        return tile_of(segment, index, team_.size(), request_.element_bytes);
    }
    /// Returns where the result of tile `index` is read. In place it cannot be published, since it
    /// lies where the contribution was.
    Slice result(Rank index) const {
        const Slice published = tile(segment_.of(output()), index);
        return request_.in_place ? part(tile_scratch_, 0, published.length) : published;
    }

    void combine(Slice source, const Variant& variant, OpIds& last) {
        const Slice own = result(team_.index());
        std::vector<Slice> operands;
        for (const Rank peer : reading_order(team_, variant.cyclic)) {
            operands.push_back(at_rank(peer, tile(source, team_.index())));
        }
        const OpId combined = builder_.reduce(operands, own, last);
        if (combined == graph::kNoOp) {
            return; // An empty tile.
        }
        last = {combined};
        if (request_.in_place) {
            builder_.copy(own, tile(segment_.of(output()), team_.index()));
        } else if (!variant.sends) {
            last = {builder_.publish(own)};
        }
    }

    Builder& builder_;
    const Facts& facts_;
    const graph::Request& request_;
    const Team& team_;
    const Segment& segment_;
    Slice tile_scratch_;
};

template <const Variant& variant>
graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, variant.name);
    const Team team = Team::whole(request.rank_count, rank);
    const Segments segments = segments_of<variant>(facts, request);
    builder.staging_buffer(segments.staging_buffer_bytes());
    const Slice tile_scratch =
        request.in_place ? builder.shared_scratch(segments.segment_bytes) : builder.scratch(0);
    OpIds last = for_each_segment(builder, segments, 1, [&](const Segment& segment) {
        return TiledSegment(builder, facts, request, team, segment, tile_scratch).run(variant);
    });
    if (!variant.sends) {
        barrier(builder, facts, team, last);
    }
    return builder.finish();
}

template <const Variant& variant>
constexpr Algorithm row(const char* summary, std::span<const Need> needs) {
    return {
        .name = variant.name,
        .collective = graph::Collective::allreduce,
        .summary = summary,
        .cost_ns = cost_ns<variant>,
        .build = build<variant>,
        .needs = needs,
    };
}

constexpr auto kNaiveNeeds = peer_needs(kSegmentsFit<kNaive.places>);
constexpr auto kCyclicNeeds = peer_needs(kSegmentsFit<kCyclic.places>, kCommutative);
/// In place, the tiles that a rank receives would lie where others still read its vector.
constexpr auto kExchangeNeeds = peer_needs(kSegmentsFit<kExchange.places>, kNotInPlace);

} // namespace

const Algorithm kAllreduceTiledNaive =
    row<kNaive>("each rank combines a tile of all vectors (Li, Hoefler, Snir 2013)", kNaiveNeeds);
const Algorithm kAllreduceTiledCyclic = row<kCyclic>(
    "each rank combines a tile, starting with its own vector (Mamidala 2006)", kCyclicNeeds);
const Algorithm kAllreduceTiledExchange = row<kExchange>(
    "each rank combines a tile of all vectors, and sends it to all others", kExchangeNeeds);

} // namespace ucg::plan
