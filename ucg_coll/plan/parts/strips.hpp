// Strip mining: a vector is published, read and combined in strips that windows and caches hold.
// Li, Hoefler and Snir, "NUMA-Aware Shared-Memory Collective Communication for MPI" (HPDC 2013),
// section 2.5.
#pragma once

#include <cstdint>

#include "ucg_coll/plan/algorithm.hpp"
#include "ucg_coll/plan/parts/steps.hpp"

namespace ucg::plan {

/// How a vector is cut. All strips but a shorter last one have the same length, a multiple of whole
/// elements and cache lines.
struct Strips {
    std::uint64_t total_bytes = 0;
    std::uint64_t strip_bytes = 0;
    std::uint32_t rotation = 1; ///< Places that strips take in turn in windows and scratch.

    std::uint64_t count() const { return divide_up(total_bytes, strip_bytes); }
    std::uint64_t window_bytes() const { return strip_bytes * rotation; }
};

/// At most a cache's worth, so that a strip is read while it is there: of 2 MiB of second-level
/// cache, what two windows of two places take at this length is a quarter.
inline constexpr std::uint64_t kStripBytesMax = 128 << 10;

/// Strips of which `places` fit the staging memory of each rank: windows' places and pieces of
/// scratch together. `strip_bytes` is 0 if not even one element of a cache line does.
Strips strips_for(const SharedMemory& shared, std::uint64_t total_bytes,
                  std::uint64_t element_bytes, std::uint32_t rotation, std::uint32_t places);

/// Prices per strip, for all strips: `strip_ns(bytes)` is that of one.
template <typename StripNs>
double for_strips_ns(const Strips& strips, StripNs&& strip_ns) {
    const std::uint64_t whole = strips.total_bytes / strips.strip_bytes;
    const std::uint64_t rest = strips.total_bytes % strips.strip_bytes;
    const double ns = static_cast<double>(whole) * (whole > 0 ? strip_ns(strips.strip_bytes) : 0);
    return ns + (rest > 0 ? strip_ns(rest) : 0);
}

/// One strip of a schedule: slices of vectors and scratch, as the builder wants them.
class Strip {
  public:
    Strip(std::uint64_t offset, std::uint64_t length, std::uint64_t turn, bool repeated,
          OpIds before)
        : after(std::move(before)), offset_(offset), length_(length), turn_(turn),
          repeated_(repeated) {}

    std::uint64_t length() const { return length_; }
    /// The strip's bytes of a vector; it moves on from strip to strip.
    graph::Slice of(graph::Slice vector) const {
        const graph::Slice slice = part(vector, offset_, length_);
        return repeated_ ? advance(slice) : slice;
    }
    /// The strip's place in scratch of rotation times the strip's length.
    graph::Slice scratch(graph::Slice places, const Strips& strips) const;

    OpIds after; ///< What the strip's first op comes after: the strips before a shorter last one.

  private:
    std::uint64_t offset_;
    std::uint64_t length_;
    std::uint64_t turn_;
    bool repeated_;
};

/// What a strip leaves behind: its `first` op of the next strip but `distance` - 1 comes after
/// `last`.
struct StripOps {
    graph::OpId first = graph::kNoOp;
    OpIds last;
};

/// Calls body(strip) for the strips of a repeat, and once more for a shorter last strip. The first
/// op of each strip comes after the last ones of the strip `distance` before. Returns the last ops
/// of all. REQUIRES: strips.total_bytes > 0.
template <typename Body>
OpIds for_each_strip(graph::Builder& builder, const Strips& strips, std::uint32_t distance,
                     Body&& body) {
    const std::uint64_t whole = strips.total_bytes / strips.strip_bytes;
    const std::uint64_t rest = strips.total_bytes % strips.strip_bytes;
    OpIds last;
    if (whole > 0) {
        builder.begin_repeat(whole * strips.strip_bytes, strips.strip_bytes, strips.rotation);
        StripOps ops = body(Strip(0, strips.strip_bytes, 0, whole > 1, {}));
        for (const graph::OpId op : ops.last) {
            builder.after_earlier(ops.first, op, distance);
        }
        builder.end_repeat();
        last = std::move(ops.last);
    }
    if (rest > 0) {
        last = body(Strip(whole * strips.strip_bytes, rest, whole, false, last)).last;
    }
    return last;
}

/// `slice` of another rank's buffer.
inline graph::Slice at_rank(Rank owner, graph::Slice slice) {
    slice.owner = owner;
    return slice;
}

} // namespace ucg::plan
