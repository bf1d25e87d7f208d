// Prefix reductions along the chain of ranks, in segments: each rank combines what comes from below
// with its own and passes it on. Every link carries the vector once and every rank combines it
// once, where recursive doubling (scan_recursive_doubling.cpp) has ceil(log2 P) times as much to
// move: for long vectors, and for ranks that share processors.
#include <algorithm>
#include <array>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/messages/rows.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// Places for sums: one is combined while another is on its way to the next rank. What comes in has
/// one place, since it is used before the next segment is received.
constexpr std::uint32_t kRotation = 2;

/// Does any rank combine what comes? In an exscan of two ranks the last one only receives it.
bool is_combined(const graph::Request& request) {
    return request.collective == graph::Collective::scan || request.rank_count > 2;
}

/// Returns the time of the messages that bring one segment along the chain, one after the other.
/// Where the ranks of each host follow one another, only those from host to host cross the network.
double first_segment_ns(const Facts& facts, const Link& link, std::uint64_t segment,
                        Sender sender) {
    const Rank count = facts.placement.rank_count();
    const auto first_ns = [&](const Link& hop) { return hop.message_ns(segment, sender); };
    const auto further_ns = [&](const Link& hop) { return hop.message_ns(segment, Source::fresh); };
    return link.along_ns(1, count, first_ns) + link.along_ns(count - 2, count, further_ns);
}

/// Returns the time from one segment to the next. Ranks that take turns on a processor do their
/// work one after the other once all have some, and yield after each segment, since there is seldom
/// a second one to go on with. Bytes between hosts are on their links meanwhile, which keeps no
/// processor busy.
double pace_ns(const Facts& facts, const Link& link, std::uint64_t segment, double reduce_ns) {
    const bool relays = facts.placement.rank_count() > 2;
    const auto alone_ns = [&](std::uint64_t bytes) {
        return relays ? link.chain_gap_ns(bytes, reduce_ns) : link.gap_ns(bytes) + reduce_ns;
    };
    const double turns_ns = turn_ns(facts.profile, facts.ranks_per_cpu);
    return link.is_across_hosts()
               ? std::max(alone_ns(segment), sharers(facts) * alone_ns(0) + turns_ns)
               : sharers(facts) * alone_ns(segment) + turns_ns;
}

/// Returns the price of the chain with segments of that length. A segment is received only when the
/// one before has been passed on, so that latency shows.
double chain_ns(const Facts& facts, const graph::Request& request, std::uint64_t segment) {
    const Link link = flat_link(facts, Traffic::sparse).with_working_set(2 * request.bytes);
    const bool combines = is_combined(request);
    const Link parts = link.in_segments();
    // In an exscan a rank also copies what comes, which then is not combined where it arrives.
    const bool once = request.collective == graph::Collective::scan;
    const double reduce_ns = !combines ? 0
                             : once    ? parts.combining_ns(segment, request.bytes)
                                       : parts.reduce_ns(2, segment, request.bytes);
    const auto further = static_cast<double>(divide_up(request.bytes, segment) - 1);
    // A rank that has nothing to combine, and to which no further segment comes, helps to copy what
    // it sends.
    const Sender sender = combines || further > 0 ? Sender::busy : Sender::waits;
    return first_segment_ns(facts, link, segment, sender) + (request.rank_count - 1) * reduce_ns +
           further * pace_ns(facts, link, segment, reduce_ns) +
           link.sends_before_ns(further + 1, segment);
}

/// Returns the cheapest length of segments: of the length that would be best if each byte had the
/// same price, of longer ones up to the whole vector, and of the longest one that is copied in and
/// out, by both ends at the same time: from some length on messages are copied once, at another
/// price.
std::uint64_t cheapest_segment(const Facts& facts, const graph::Request& request) {
    const Link link = flat_link(facts, Traffic::sparse).with_working_set(2 * request.bytes);
    const double fixed_ns = sharers(facts) * (link.relay_gap_fixed_ns() + link.reduce_ns(2, 0)) +
                            turn_ns(facts.profile, facts.ranks_per_cpu);
    const double reduce_byte_ns = sharers(facts) * (link.reduce_ns(2, 1) - link.reduce_ns(2, 0));
    const double per_byte_ns = link.is_across_hosts()
                                   ? std::max(link.relay_gap_per_byte_ns(), reduce_byte_ns)
                                   : sharers(facts) * link.relay_gap_per_byte_ns() + reduce_byte_ns;
    // A segment that is combined at the end of the chain passes two ranks at least.
    const Rank hops = std::max(request.rank_count - 1, is_combined(request) ? 2 : 1);
    const std::uint64_t first =
        pipeline_segment(request.bytes, hops, fixed_ns, per_byte_ns, request.element_bytes);
    // A long message goes on its way in pieces by itself, so segments must save something for sure.
    constexpr double kMostOfWhole = 0.9;
    std::uint64_t best = request.bytes;
    double best_ns = kMostOfWhole * chain_ns(facts, request, best);
    const auto look_at = [&](std::uint64_t segment) {
        if (const double ns = chain_ns(facts, request, segment); ns < best_ns) {
            best = segment;
            best_ns = ns;
        }
    };
    for (std::uint64_t segment = first; segment < request.bytes; segment *= 2) {
        look_at(segment);
    }
    look_at(link.segment_copied_twice(request.bytes, request.element_bytes));
    return best;
}

double cost_ns(const Facts& facts, const graph::Request& request) {
    if (request.rank_count == 1 || request.bytes == 0) {
        return 0;
    }
    return chain_ns(facts, request, cheapest_segment(facts, request));
}

/// One rank of the chain; slices are of one segment.
struct Place {
    Builder& builder;
    Rank below;
    Rank above; ///< kNoRank at the end.
    Slice own;
    Slice target;
};

void scan_segment(const Place& place, Slice inbox) {
    place.builder.recv(place.below, inbox);
    reduce_to(place.builder, std::array{inbox, place.own}, place.target);
    if (place.above != kNoRank) {
        place.builder.send(place.above, place.target);
    }
}

/// What comes is the result. Where this rank's contribution lies in its place and is still needed,
/// it comes to `inbox`; else `inbox` is empty.
void exscan_segment(const Place& place, Slice inbox, Slice sum) {
    const Slice received = inbox.length > 0 ? inbox : place.target;
    place.builder.recv(place.below, received);
    if (place.above != kNoRank) {
        place.builder.reduce(std::array{received, place.own}, sum);
        place.builder.send(place.above, sum);
    }
    place.builder.copy(received, place.target);
}

template <graph::Collective collective>
graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    constexpr bool kInclusive = collective == graph::Collective::scan;
    Builder builder(request, rank, kInclusive ? kScanChain.name : kExscanChain.name);
    const Slice own = contribution(builder, request);
    const Slice target = builder.output(0, request.bytes);
    if (request.bytes == 0) {
        return builder.finish();
    }
    if (request.rank_count == 1) {
        builder.copy(own, kInclusive ? target : own);
        return builder.finish();
    }
    const bool last = rank + 1 == request.rank_count;
    const auto segments =
        builder.begin_repeat(request.bytes, cheapest_segment(facts, request), kRotation);
    const auto segment_of = [&](Slice whole) {
        return advance(part(whole, 0, segments.first_segment));
    };
    const Place place{builder, rank - 1, last ? kNoRank : rank + 1, segment_of(own),
                      segment_of(target)};
    if (rank == 0) {
        builder.send(place.above, place.own);
        builder.copy(place.own, kInclusive ? place.target : place.own);
    } else if (kInclusive) {
        scan_segment(place, builder.scratch(segments.first_segment));
    } else {
        const bool aside = request.in_place && !last;
        const std::uint32_t sums = last ? 0 : std::min<std::uint64_t>(segments.count, kRotation);
        exscan_segment(place, builder.scratch(aside ? segments.first_segment : 0),
                       builder.rotating_scratch(last ? 0 : segments.first_segment, sums));
    }
    builder.end_repeat();
    return builder.finish();
}

template <graph::Collective collective>
constexpr Algorithm row() {
    return {
        .name = "chain",
        .collective = collective,
        .summary = "in segments from each rank to the next, which combines them with its own",
        .cost_ns = cost_ns,
        .build = build<collective>,
    };
}

} // namespace

const Algorithm kScanChain = row<graph::Collective::scan>();
const Algorithm kExscanChain = row<graph::Collective::exscan>();

} // namespace ucg::plan
