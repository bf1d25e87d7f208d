#include "ucg_coll/plan/parts/segments.hpp"

#include <algorithm>
#include <numeric>

namespace ucg::plan {

Segments segments_for(const SharedMemory& shared, std::uint64_t total_bytes,
                      std::uint64_t element_bytes, std::uint32_t rotation, std::uint32_t places) {
    const std::uint64_t unit = std::lcm(element_bytes, std::uint64_t{kCacheLine});
    // Staging buffers and pieces of scratch begin at cache lines.
    const std::uint64_t room = shared.staging_bytes / places;
    const std::uint64_t most = std::min(room, std::max(kSegmentBytesMax, unit)) / unit * unit;
    return {total_bytes, std::min(most, round_up(total_bytes, unit)), rotation};
}

graph::Slice Segment::scratch(graph::Slice places, const Segments& segments) const {
    if (repeated_) {
        return rotate(part(places, 0, length_));
    }
    return part(places, turn_ % segments.rotation * segments.segment_bytes, length_);
}

} // namespace ucg::plan
