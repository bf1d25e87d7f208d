// Recursive-halving reduce-scatter: partners half the team apart exchange halves of the vector,
// combine, and go on with the half they keep. Partners are far apart when the vector is long so
// that the blocks kept lie together; that mixes ranks, hence for commutative operators. Other sizes
// than powers of two are folded. Long vectors are exchanged in segments. Thakur, Rabenseifner,
// Gropp, "Optimization of collective communication operations in MPICH", 2005, section 3.4.
#include <algorithm>
#include <array>
#include <numeric>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/messages/fold.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/parts/segments.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Returns the length of the segments in which blocks are exchanged that do not fit this rank's
/// cache together with what comes and with the result. Without segments it is the length of the
/// whole vector: for shorter blocks, and where ranks take turns on processors, since between two
/// turns of a rank the others use that cache.
std::uint64_t segment_bytes(const Facts& facts, const graph::Request& request) {
    const std::uint64_t cache = facts.profile.memory.cache(cost::Cache::l2).capacity_bytes;
    const bool segments = 3 * longest_block(request) > cache && facts.ranks_per_cpu <= 1;
    return !segments ? all_blocks(request)
                     : round_up(kSegmentBytesMax,
                                std::lcm(request.element_bytes, std::uint64_t{kCacheLine}));
}

/// Returns the price of exchanging and combining `bytes` of vectors of `total`, in segments or in
/// one.
double exchange_ns(const Link& link, std::uint64_t bytes, std::uint64_t total, Source source,
                   std::uint64_t segment_bytes) {
    const std::uint64_t segment = std::min(bytes, segment_bytes);
    const double further = bytes > 0 ? static_cast<double>(divide_up(bytes, segment) - 1) : 0;
    const double first_ns = source == Source::settled ? link.message_ns(segment)
                                                      : link.message_ns(segment, Source::fresh);
    return first_ns + further * link.relay_gap_ns(segment, source) +
           (further + 1) * (further > 0 ? link.in_segments() : link).combining_ns(segment, total);
}

double price_ns(const Link& link, Rank count, std::uint64_t total, std::uint64_t longest,
                std::uint64_t segment_bytes) {
    if (count == 1) {
        return link.copy_ns(total);
    }
    double ns = 0;
    if (folds(count)) {
        const Link pair = link.of_pairs();
        ns += pair.message_ns(total) + pair.combining_ns(total, total) + pair.message_ns(longest);
    }
    std::uint64_t bytes = total;
    const auto acting = static_cast<Rank>(floor_power_of_two(static_cast<std::uint32_t>(count)));
    for (Rank distance = acting / 2; distance > 0; distance /= 2) {
        bytes = std::max(divide_up(bytes, 2), longest); // A long block stays whole.
        const bool settled = 2 * distance == acting && !folds(count);
        ns += exchange_ns(link.exchanged(static_cast<std::uint64_t>(distance)), bytes, total,
                          settled ? Source::settled : Source::fresh,
                          distance == 1 ? segment_bytes : bytes);
    }
    return ns;
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    const std::uint64_t segment = segment_bytes(facts, request);
    return oversubscribed_exchange_ns(
        facts, flat_link(facts, Traffic::dense).with_working_set(2 * all_blocks(request)),
        3 * all_blocks(request), [&](const Link& link) {
            // What comes in a segment stays in the cache, which the price of a segment does not
            // show: measured, segments take less than the whole, though each has a message.
            const auto with_segments_of = [&](std::uint64_t bytes) {
                return price_ns(link, request.rank_count, all_blocks(request),
                                longest_block(request), bytes);
            };
            return std::min(with_segments_of(segment), with_segments_of(all_blocks(request)));
        });
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceScatterRecursiveHalving.name);
    reduce_scatter_recursive_halving(
        builder, Team::whole(request.rank_count, rank), reduce_scatter_source(builder, request),
        reduce_scatter_target(builder, request), segment_bytes(facts, request));
    return builder.finish();
}

/// Where the blocks of acting members begin in the vector.
class Vector {
  public:
    Vector(const Team& team, const Fold& fold, const BlockMap& source)
        : fold_(fold), pairs_(team.size() - fold.size()), source_(source) {}

    /// Returns the blocks of positions first .. last - 1 as a part of `vector`, which begins with
    /// the blocks of position `begin`.
    Slice at(Slice vector, Rank begin, Rank first, Rank last) const {
        return part(vector, offset(first) - offset(begin), offset(last) - offset(first));
    }
    Slice whole() const {
        Slice slice = source_.block(0);
        slice.length = offset(fold_.size());
        return slice;
    }

    /// Does the member at `position` act for two, so that it has two blocks?
    bool acts_for_two(Rank position) const { return position < pairs_; }

  private:
    /// Returns where the blocks of `position` begin. The first positions have two blocks each.
    std::uint64_t offset(Rank position) const {
        const Rank block = position + std::min(position, pairs_);
        if (block < source_.count()) {
            return source_.block(block).offset - source_.block(0).offset;
        }
        return source_.block(block - 1).end() - source_.block(0).offset;
    }

    const Fold& fold_;
    Rank pairs_;
    const BlockMap& source_;
};

/// Exchanges the last blocks with a peer: sends `sent`, and combines what comes with `kept` to
/// `target`. In place, which some ranks may be and others not, `target` may overlap either; then
/// the result goes by way of scratch.
void exchange_in_segments(Builder& builder, Rank peer, Slice sent, Slice kept, bool upper,
                          Slice target, std::uint64_t segment_bytes) {
    constexpr std::uint32_t kRotation = 2;
    const Segments segments = {kept.length, segment_bytes, kRotation};
    const Slice places = builder.scratch(segments.staging_buffer_bytes());
    const bool aside = overlap(kept, target) || overlap(sent, target);
    const Slice result = aside ? builder.scratch(kept.length) : target;
    for_each_segment(builder, segments, kRotation, [&](const Segment& segment) {
        const Slice received = segment.scratch(places, segments);
        builder.send(peer, segment.of(sent));
        const graph::OpId came = builder.recv(peer, received, segment.after);
        const Slice own = segment.of(kept);
        const std::array operands = upper ? std::array{received, own} : std::array{own, received};
        return SegmentOps{came, {builder.reduce(operands, segment.of(result), std::array{came})}};
    });
    if (aside) {
        builder.copy(result, target);
    }
}

/// Appends the halving among acting members. Returns the result for the blocks of this position.
Slice halve(Builder& builder, const Team& team, const Fold& fold, const Vector& vector,
            Slice partial, Slice target, std::uint64_t segment_bytes) {
    const Rank position = fold.position();
    Rank begin = 0; // The first position whose blocks this member still combines.
    for (Rank distance = fold.size() / 2; distance > 0; distance /= 2) {
        const Rank middle = begin + distance;
        const bool upper = position >= middle;
        const Rank peer = team.rank(fold.member(position ^ distance));
        const Slice low = vector.at(partial, begin, begin, middle);
        const Slice high = vector.at(partial, begin, middle, middle + distance);
        const Slice kept = upper ? high : low;
        const Slice sent = upper ? low : high;
        const bool last = distance == 1 && !vector.acts_for_two(position);
        if (last && !vector.acts_for_two(position ^ 1) && sent.length == kept.length &&
            kept.length > segment_bytes) {
            exchange_in_segments(builder, peer, sent, kept, upper, target, segment_bytes);
            return target;
        }
        const Slice received = builder.scratch(kept.length);
        // The send comes first, since a receive may copy while the peer waits for the send. The
        // receive can be posted no earlier.
        builder.send(peer, sent);
        builder.recv(peer, received);
        const std::array operands = upper ? std::array{received, kept} : std::array{kept, received};
        begin = upper ? middle : begin;
        if (last) {
            reduce_to_result(builder, operands, target);
            return target;
        }
        partial = reduce_to_scratch(builder, operands);
    }
    return partial;
}

} // namespace

void reduce_scatter_recursive_halving(Builder& builder, const Team& team, const BlockMap& source,
                                      Slice target, std::uint64_t segment_bytes) {
    if (team.size() == 1) {
        builder.copy(source.block(0), target);
        return;
    }
    const Fold fold(team);
    const Vector vector(team, fold, source);
    const Slice partial = fold_in(builder, team, fold, vector.whole());
    if (!fold.acts()) {
        builder.recv(team.rank(fold.partner()), target);
        return;
    }
    const Slice result = halve(builder, team, fold, vector, partial, target, segment_bytes);
    if (fold.partner() != kNoRank) {
        const std::uint64_t theirs = source.bytes(fold.partner());
        builder.send(team.rank(fold.partner()), part(result, 0, theirs));
        builder.copy(part(result, theirs, target.length), target);
    }
}

double reduce_scatter_recursive_halving_ns(const Link& link, Rank count, std::uint64_t total,
                                           std::uint64_t longest) {
    return price_ns(link, count, total, longest, total);
}

constexpr Algorithm kReduceScatterRecursiveHalving = {
    .name = "recursive_halving",
    .collective = graph::Collective::reduce_scatter,
    .summary = "exchanges of half the vector, a quarter, ... (Thakur, Rabenseifner, Gropp 2005)",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kReduceScatterAnyOrder,
};

constexpr Algorithm kReduceScatterBlockRecursiveHalving =
    for_collective(kReduceScatterRecursiveHalving, graph::Collective::reduce_scatter_block);

} // namespace ucg::plan
