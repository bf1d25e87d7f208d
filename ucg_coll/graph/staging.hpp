// Staging buffers, in which peers find published bytes when they do not reach the buffer itself.
// They lie behind the scratch memory of the rank that publishes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// The layout of the memory of an exposed rank that its peers reach: first its scratch without the
/// part that no peer names, then a staging buffer for the input and one for the output, each only
/// if something of the buffer is published. Offsets and lengths are in bytes; staging buffers begin
/// at cache lines.
struct StagingLayout {
    std::uint64_t input_staging_buffer = 0;
    std::uint64_t input_staging_buffer_bytes = 0;
    std::uint64_t output_staging_buffer = 0;
    std::uint64_t output_staging_buffer_bytes = 0;
    std::uint64_t total_bytes = 0;
};
StagingLayout staging_layout(const Schedule& schedule);

/// Returns the programs as they run where no peer reaches any input or output in place: each
/// publish becomes a copy to scratch, and peers' slices of inputs and outputs become slices of
/// scratch. Repeats are written out. `schedules` are those of all ranks, in rank order. A proof of
/// both forms also covers runs in which only some ranks' buffers are reached: what happens to one
/// rank's bytes does not depend on where another's are.
std::vector<Schedule> with_staging_buffers(std::span<const Schedule> schedules);

} // namespace ucg::graph
