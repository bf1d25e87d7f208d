// Internal to ucg_coll/graph: finds those accesses of a repeat's body that may touch given bytes,
// without looking at all accesses.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// An index of slices by buffer, stride and offset. Adding a slice takes time O(log slices).
/// Finding takes O((1 + slices found) log slices), provided that the slices of one buffer are about
/// equally long.
class AccessIndex {
  public:
    /// The caller's number for a slice.
    using Id = std::uint32_t;

    void add(const Slice& slice, Id id) {
        Starts& starts = buffers_[{slice.owner, slice.buffer}][index_of(slice.stride)];
        starts.by_offset.emplace(slice.offset, Entry{slice.length, id});
        starts.longest = std::max(starts.longest, slice.length);
    }

    /// Bytes [begin, end) of a buffer, as in the first iteration. No slice has negative offsets.
    struct Range {
        std::int64_t begin = 0;
        std::int64_t end = 0;
    };

    /// Appends to `found` the slices with stride `stride` that intersect `range` in the buffer of
    /// `slice`.
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
