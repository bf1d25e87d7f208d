// Internal to ucg_coll/graph: finds the accesses of a repeat's body that may touch given bytes,
// without a look at all of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// Slices by the buffer they are of, the way they move, and where they begin. Adding takes time
/// O(log slices); finding that, and as much again for each slice that is found, as long as slices
/// of one buffer are of about one length.
class AccessIndex {
  public:
    /// Whose slice it is: the caller's number.
    using Id = std::uint32_t;

    void add(const Slice& slice, Id id) {
        Starts& starts = buffers_[{slice.owner, slice.buffer}][index_of(slice.stride)];
        starts.by_offset.emplace(slice.offset, Entry{slice.length, id});
        starts.longest = std::max(starts.longest, slice.length);
    }

    /// Bytes [begin, end) of the first iteration; negative ones have no slices.
    struct Range {
        std::int64_t begin = 0;
        std::int64_t end = 0;
    };

    /// Appends to `found` those that intersect `range` in the buffer of `slice`, of that stride.
    void find(const Slice& slice, Stride stride, Range range, std::vector<Id>& found) const {
        const auto buffer = buffers_.find({slice.owner, slice.buffer});
        if (buffer == buffers_.end()) {
            return;
        }
        const Starts& starts = buffer->second[index_of(stride)];
        const std::int64_t from = range.begin - static_cast<std::int64_t>(starts.longest);
        auto at = starts.by_offset.lower_bound(
            static_cast<std::uint64_t>(std::max<std::int64_t>(from, 0)));
        for (; at != starts.by_offset.end() && static_cast<std::int64_t>(at->first) < range.end;
             ++at) {
            if (static_cast<std::int64_t>(at->first + at->second.length) > range.begin) {
                found.push_back(at->second.id);
            }
        }
    }

    void clear() { buffers_.clear(); }

  private:
    struct Entry {
        std::uint64_t length = 0;
        Id id = 0;
    };
    struct Starts {
        std::multimap<std::uint64_t, Entry> by_offset;
        std::uint64_t longest = 0;
    };
    static std::size_t index_of(Stride stride) { return static_cast<std::size_t>(stride); }

    std::map<std::pair<Rank, BufferKind>, std::array<Starts, kStrides.size()>> buffers_;
};

} // namespace ucg::graph
