// Prices where ranks outnumber processors, so that ranks do their work one after the other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// Returns how many ranks do their share of the work on one processor, one after the other. A scan
/// whose ranks all move and combine vectors at the same time takes that many times as long; one in
/// which one rank works while the others wait does not.
inline double sharers(const Facts& facts) {
    return std::max(1.0, facts.ranks_per_cpu);
}

/// How long parts of a collective keep a processor busy, in nanoseconds, whichever rank runs on it.
class Work {
  public:
    /// Each rank goes through `touched_bytes` of buffers and scratch, its own and peers'.
    Work(const Facts& facts, const Link& link, std::uint64_t touched_bytes);

    /// Returns the prices of messages, copies and reductions: Link::at_work().
    const Link& link() const { return link_; }

    // Work segment by segment: staging buffers are in the caches, callers' buffers may not be.

    /// Copying to a staging buffer, of which one peer has read each part last. What a peer of the
    /// same processor has read is still in that processor's cache.
    double copy_to_staging_ns(std::uint64_t bytes) const {
        return static_cast<double>(bytes) * staging_copy_per_byte_ns_;
    }
    /// Publishing `bytes`, of which one peer reads each part: 0 where peers reach them in place.
    double publish_ns(std::uint64_t bytes) const {
        return buffers_mapped_ ? 0 : copy_to_staging_ns(bytes);
    }
    /// Publishing `bytes` that all peers read.
    double publish_to_all_ns(std::uint64_t bytes) const {
        return buffers_mapped_ ? 0 : static_cast<double>(bytes) * overwrite_per_byte_ns_;
    }
    /// Reading what peers have published, to copy it or to combine it, where each rank reads other
    /// bytes. The peers of its own processor have left theirs in that processor's cache.
    double read_ns(std::uint64_t bytes) const {
        return static_cast<double>(bytes) * read_per_byte_ns_;
    }
    /// Like read_ns(), but where all ranks read the same bytes: the first of a processor brings
    /// them into its cache for the others.
    double read_same_ns(std::uint64_t bytes) const {
        return static_cast<double>(bytes) * read_same_per_byte_ns_;
    }
    /// Combining the rank's own vector with what was read, to a staging buffer.
    double combine_ns(std::uint64_t bytes) const;

  private:
    Link link_;
    double read_per_byte_ns_;
    double read_same_per_byte_ns_;
    double staging_copy_per_byte_ns_;
    double overwrite_per_byte_ns_;
    bool buffers_mapped_;
    double combine_per_byte_ns_;
};

/// Returns the time of a collective that takes `span_ns` where each rank has a processor, and in
/// which a rank has work for work_ns(const Work&) on average. By the work law all work takes its
/// time, in whichever order; by the span law the time is at least `span_ns`.
template <typename WorkNs>
double oversubscribed_ns(const Facts& facts, const Link& link, std::uint64_t touched_bytes,
                         double span_ns, WorkNs&& work_ns) {
    if (facts.ranks_per_cpu <= 1) {
        return span_ns;
    }
    const double average_ns = work_ns(Work(facts, link, touched_bytes));
    return std::max(span_ns,
                    turn_ns(facts.profile, facts.ranks_per_cpu) + facts.ranks_per_cpu * average_ns);
}

/// Like oversubscribed_ns(), but for trees up which segments pass one after the other. While the
/// first segment is on its way, for `fill_ns`, ever fewer ranks have work and processors idle; that
/// time is added as in Graham's bound (1966). Later, ranks have the segments behind the first. As
/// many processors as ranks take `span_ns`.
template <typename WorkNs>
double oversubscribed_tree_ns(const Facts& facts, const Link& link, std::uint64_t touched_bytes,
                              double span_ns, double fill_ns, WorkNs&& work_ns) {
    if (facts.ranks_per_cpu <= 1) {
        return span_ns;
    }
    const double average_ns = work_ns(Work(facts, link, touched_bytes));
    const double idle_part = std::max(0.0, 1 - facts.ranks_per_cpu / facts.placement.rank_count());
    return std::max(span_ns, facts.ranks_per_cpu * average_ns + idle_part * fill_ns);
}

/// Like oversubscribed_ns(), but for ranks that all exchange messages alike, one after the other,
/// so that price_ns(const Link&) is both the path and the work of one rank. While a rank waits for
/// a partner, the others of its processor work, so their work adds to the path (Graham's bound,
/// 1966).
template <typename PriceNs>
double oversubscribed_exchange_ns(const Facts& facts, const Link& link, std::uint64_t touched_bytes,
                                  PriceNs&& price_ns) {
    const double span_ns = price_ns(link.in_exchanges()) + link.queue_ns();
    if (facts.ranks_per_cpu <= 1) {
        return span_ns;
    }
    return span_ns + (facts.ranks_per_cpu - 1) * price_ns(link.at_work(facts, touched_bytes));
}

/// Returns the average share of work if all but one of `count` ranks have something to do.
inline double all_but_one(Rank count) {
    return static_cast<double>(count - 1) / count;
}

/// Returns oversubscribed_ns() for a vector that passes through all ranks in `pieces`. All ranks
/// but one work for piece_ns(const Work&) on each piece, and ranks take turns at each.
template <typename PieceNs>
double oversubscribed_pieces_ns(const Facts& facts, const Link& link, const graph::Request& request,
                                double span_ns, std::uint64_t pieces, PieceNs&& piece_ns) {
    return oversubscribed_ns(facts, link, 2 * request.bytes, span_ns, [&](const Work& work) {
        return all_but_one(request.rank_count) * static_cast<double>(pieces) *
               (piece_ns(work) + facts.profile.memory.wake.yield_switch_ns);
    });
}

} // namespace ucg::plan
