#include "ucg_coll/graph/staging.hpp"

#include <algorithm>

namespace ucg::graph {
namespace {

bool publishes(const Schedule& schedule, BufferKind buffer) {
    return std::any_of(schedule.ops.begin(), schedule.ops.end(), [&](const Op& op) {
        return op.kind == OpKind::publish && op.source.buffer == buffer;
    });
}

/// Returns the layout of staging buffers behind `scratch_bytes` of scratch.
StagingLayout layout_behind(const Schedule& schedule, std::uint64_t scratch_bytes) {
    StagingLayout layout;
    layout.total_bytes = scratch_bytes;
    const auto append = [&](BufferKind buffer, std::uint64_t buffer_bytes, std::uint64_t& offset,
                            std::uint64_t& bytes) {
        if (publishes(schedule, buffer)) {
            offset = round_up(layout.total_bytes, kCacheLine);
            bytes = std::min(buffer_bytes, schedule.staging_buffer_bytes);
            layout.total_bytes = offset + bytes;
        }
    };
    append(BufferKind::input, schedule.input_bytes, layout.input_staging_buffer,
           layout.input_staging_buffer_bytes);
    append(BufferKind::output, schedule.output_bytes, layout.output_staging_buffer,
           layout.output_staging_buffer_bytes);
    return layout;
}

class Rewriter {
  public:
    explicit Rewriter(std::span<const Schedule> originals) : originals_(originals) {
        for (const Schedule& schedule : originals) {
            layouts_.push_back(layout_behind(schedule, schedule.scratch_bytes));
        }
    }

    Schedule rewrite(const Schedule& original) const {
        Schedule schedule = unroll(original);
        schedule.scratch_bytes = layouts_[static_cast<std::size_t>(schedule.rank)].total_bytes;
        schedule.own_scratch_bytes = 0; // Peers name the staging buffers, which lie behind it.
        schedule.staging_buffer_bytes = 0;
        for (Op& op : schedule.ops) {
            if (op.kind == OpKind::publish) {
                op.kind = OpKind::copy;
                op.target = in_staging_buffer(op.source);
                continue;
            }
            if (has_source(op.kind)) {
                op.source = seen_from(op.source, schedule.rank);
            }
            if (has_target(op.kind)) {
                op.target = seen_from(op.target, schedule.rank);
            }
            for (std::uint32_t i = 0; has_operands(op.kind) && i < op.operand_count; ++i) {
                Slice& operand = schedule.operands[op.first_operand + i];
                operand = seen_from(operand, schedule.rank);
            }
        }
        return schedule;
    }

  private:
    Slice in_staging_buffer(Slice slice) const {
        const auto owner = static_cast<std::size_t>(slice.owner);
        const StagingLayout& layout = layouts_[owner];
        const bool input = slice.buffer == BufferKind::input;
        slice.offset %= originals_[owner].staging_buffer_bytes;
        slice.offset += input ? layout.input_staging_buffer : layout.output_staging_buffer;
        slice.buffer = BufferKind::scratch;
        return slice;
    }

    Slice seen_from(const Slice& slice, Rank rank) const {
        if (slice.owner == rank || slice.buffer == BufferKind::scratch ||
            originals_[static_cast<std::size_t>(slice.owner)].staging_buffer_bytes == 0) {
            return slice;
        }
        return in_staging_buffer(slice);
    }

    std::span<const Schedule> originals_;
    std::vector<StagingLayout> layouts_;
};

} // namespace

StagingLayout staging_layout(const Schedule& schedule) {
    return layout_behind(schedule, schedule.own_scratch());
}

std::vector<Schedule> with_staging_buffers(std::span<const Schedule> schedules) {
    const Rewriter rewriter(schedules);
    std::vector<Schedule> result;
    result.reserve(schedules.size());
    for (const Schedule& schedule : schedules) {
        result.push_back(rewriter.rewrite(schedule));
    }
    return result;
}

} // namespace ucg::graph
