// Strip mining: a vector is published, read and combined in segments that staging buffers and
// caches hold. Li, Hoefler and Snir, "NUMA-Aware Shared-Memory Collective Communication for MPI"
// (HPDC 2013), section 2.5.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ucg_coll/plan/algorithm.hpp"
#include "ucg_coll/plan/parts/steps.hpp"

namespace ucg::plan {

/// How a vector is cut, or the vectors of several ranks. All segments but a shorter last one have
/// the same length, a multiple of whole elements and of cache lines.
struct Segments {
    std::uint64_t total_bytes = 0; ///< Length of the longest vector.
    std::uint64_t segment_bytes = 0;
    std::uint32_t rotation =
        1; ///< Places in staging buffers and scratch that segments use one after the other.
    std::uint64_t unequal_bytes = 0; ///< By how much the shortest vector is shorter.

    std::uint64_t count() const { return divide_up(total_bytes, segment_bytes); }
    std::uint64_t staging_buffer_bytes() const { return segment_bytes * rotation; }
};

/// The longest segment, which a peer can read while it is still in the cache: at this length, two
/// staging buffers of two places each take a quarter of a second-level cache of 2 MiB.
inline constexpr std::uint64_t kSegmentBytesMax = 128 << 10;

/// Returns segments of which `places` fit the staging memory of each rank, places in staging
/// buffers and pieces of scratch together. `segment_bytes` is 0 if not even the shortest segment,
/// of whole elements and cache lines, fits.
Segments segments_for(const SharedMemory& shared, std::uint64_t total_bytes,
                      std::uint64_t element_bytes, std::uint32_t rotation, std::uint32_t places);

/// Returns the price of all segments; segment_ns(bytes) is the price of one.
template <typename SegmentNs>
double for_segments_ns(const Segments& segments, SegmentNs&& segment_ns) {
    const std::uint64_t whole = segments.total_bytes / segments.segment_bytes;
    const std::uint64_t rest = segments.total_bytes % segments.segment_bytes;
    const double ns =
        static_cast<double>(whole) * (whole > 0 ? segment_ns(segments.segment_bytes) : 0);
    return ns + (rest > 0 ? segment_ns(rest) : 0);
}

/// One segment of a schedule, with its slices of vectors and scratch as the builder wants them.
class Segment {
  public:
    Segment(std::uint64_t offset, std::uint64_t length, std::uint64_t turn, bool repeated,
            OpIds before)
        : after(std::move(before)), offset_(offset), length_(length), turn_(turn),
          repeated_(repeated) {}

    std::uint64_t length() const { return length_; }
    /// Returns the segment's bytes of a vector. In a repeat the slice moves on with each segment.
    graph::Slice of(graph::Slice vector) const {
        const graph::Slice slice = part(vector, offset_, length_);
        return repeated_ ? advance(slice) : slice;
    }
    /// Like of(), but the vector may be shorter than the longest, and end in the segment or before.
    graph::Slice of_shorter(graph::Slice vector) const {
        const std::uint64_t from = std::min(offset_, vector.length);
        return repeated_ ? of(vector) : part(vector, from, std::min(length_, vector.length - from));
    }
    /// Returns the segment's place in `places`, scratch of rotation times the segment's length.
    graph::Slice scratch(graph::Slice places, const Segments& segments) const;

    OpIds
        after; ///< What the segment's first op comes after: the segments before a shorter last one.

  private:
    std::uint64_t offset_;
    std::uint64_t length_;
    std::uint64_t turn_;
    bool repeated_;
};

/// The ops by which segments are ordered: the `first` op of a segment comes after the `last` ops of
/// the segment `distance` before it.
struct SegmentOps {
    graph::OpId first = graph::kNoOp;
    OpIds last;
};

/// Calls body(segment) once for a repeat of the segments that all vectors have as a whole, and then
/// for each further segment. In the repeat, the first op of each segment comes after the last ones
/// of the segment `distance` before. Returns the last ops of all. REQUIRES: segments.total_bytes >
/// 0.
template <typename Body>
OpIds for_each_segment(graph::Builder& builder, const Segments& segments, std::uint32_t distance,
                       Body&& body) {
    const std::uint64_t whole =
        (segments.total_bytes - segments.unequal_bytes) / segments.segment_bytes;
    OpIds last;
    if (whole > 0) {
        builder.begin_repeat(whole * segments.segment_bytes, segments.segment_bytes,
                             segments.rotation);
        SegmentOps ops = body(Segment(0, segments.segment_bytes, 0, whole > 1, {}));
        for (const graph::OpId op : ops.last) {
            builder.after_earlier(ops.first, op, distance);
        }
        builder.end_repeat();
        last = std::move(ops.last);
    }
    for (std::uint64_t turn = whole; turn < segments.count(); ++turn) {
        const std::uint64_t offset = turn * segments.segment_bytes;
        const std::uint64_t length =
            std::min(segments.segment_bytes, segments.total_bytes - offset);
        last = body(Segment(offset, length, turn, false, last)).last;
    }
    return last;
}

/// Returns `slice` in the buffer of rank `owner`.
inline graph::Slice at_rank(Rank owner, graph::Slice slice) {
    slice.owner = owner;
    return slice;
}

} // namespace ucg::plan
