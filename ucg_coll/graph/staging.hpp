// Where published bytes are found when peers do not reach the buffer itself: in staging buffers
// behind the scratch memory of the rank that publishes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// The memory of an exposed rank that its peers reach: scratch but its own part, then a staging
/// buffer for the input and one for the output, each only if something of the buffer is published.
/// Offsets and lengths in bytes; staging buffers begin at cache lines.
struct StagingLayout {
    std::uint64_t input_staging_buffer = 0;
    std::uint64_t input_staging_buffer_bytes = 0;
    std::uint64_t output_staging_buffer = 0;
    std::uint64_t output_staging_buffer_bytes = 0;
    std::uint64_t total_bytes = 0;
};
StagingLayout staging_layout(const Schedule& schedule);

/// The same programs with everything that staging buffers do written as copies to scratch and
/// slices of scratch, as they run where no peer reaches any input or output in place. Repeats are
/// written out. `schedules`: of all ranks, in rank order. Some ranks' buffers being reached and
/// others' not is proved by proving both: what is done with one rank's bytes does not depend on
/// where another's are.
std::vector<Schedule> with_staging_buffers(std::span<const Schedule> schedules);

} // namespace ucg::graph
