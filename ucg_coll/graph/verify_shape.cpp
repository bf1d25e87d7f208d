// The step of verify that proves shape: it checks each rank's schedule by itself.
#include <algorithm>
#include <limits>
#include <utility>

#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/graph/print.hpp"
#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {
namespace {

constexpr std::uint32_t kNoRepeat = 0xffffffffU;

template <typename... Args>
Status reject_op(const Schedule& schedule, std::size_t index, fmt::format_string<Args...> format,
                 Args&&... args) {
    return failure(Code::invalid_argument, "rank {}, op {} ({}): {}", schedule.rank, index,
                   name(schedule.ops[index].kind),
                   fmt::format(format, std::forward<Args>(args)...));
}

Status check_header(const Schedule& schedule, const Request& request, Rank rank) {
    const auto differs = [&](std::string_view field, auto is, auto must) {
        return failure(Code::invalid_argument, "rank {}: {} is {}, must be {}", rank, field, is,
                       must);
    };
    if (schedule.rank != rank) {
        return differs("rank", schedule.rank, rank);
    }
    if (schedule.rank_count != request.rank_count) {
        return differs("rank_count", schedule.rank_count, request.rank_count);
    }
    if (schedule.collective != request.collective) {
        return differs("collective", name(schedule.collective), name(request.collective));
    }
    const bool in_place_counts = !rooted(request.collective) || rank == request.root;
    if (in_place_counts && schedule.in_place != request.in_place) {
        return differs("in_place", schedule.in_place, request.in_place);
    }
    if (reduces(request.collective) && schedule.element_bytes != request.element_bytes) {
        return differs("element_bytes", schedule.element_bytes, request.element_bytes);
    }
    const BufferSizes sizes = buffer_sizes(request, rank);
    if (schedule.input_bytes != sizes.input) {
        return differs("input_bytes", schedule.input_bytes, sizes.input);
    }
    if (schedule.output_bytes != sizes.output) {
        return differs("output_bytes", schedule.output_bytes, sizes.output);
    }
    if (schedule.scratch_bytes > std::numeric_limits<std::uint64_t>::max() / 2) {
        return failure(Code::invalid_argument, "rank {}: {} bytes of scratch are more than exist",
                       rank, schedule.scratch_bytes);
    }
    if (schedule.own_scratch_bytes > schedule.scratch_bytes ||
        (schedule.own_scratch_bytes > 0 && !schedule.exposed)) {
        return failure(Code::invalid_argument,
                       "rank {}: own_scratch_bytes is {}, must be a part of the {} bytes of "
                       "scratch, and 0 where peers name nothing",
                       rank, schedule.own_scratch_bytes, schedule.scratch_bytes);
    }
    return Status();
}

/// Checks that repeats are in order, disjoint, and small enough to write out. Sets repeat_of, by
/// op, to the index of its repeat.
Status check_repeats(const Schedule& schedule, std::vector<std::uint32_t>& repeat_of) {
    std::uint64_t free_from = 0;
    std::uint64_t total = schedule.ops.size();
    for (std::uint32_t i = 0; i < schedule.repeats.size(); ++i) {
        const Repeat& repeat = schedule.repeats[i];
        const auto bad = [&](std::string_view reason) {
            return failure(Code::invalid_argument, "rank {}, repeat {}: {}", schedule.rank, i,
                           reason);
        };
        const std::uint64_t end = std::uint64_t{repeat.first_op} + repeat.op_count;
        if (repeat.first_op < free_from || repeat.op_count == 0 || end > schedule.ops.size()) {
            return bad("its ops are not a range of their own, in order");
        }
        if (repeat.iterations < 2 || repeat.iterations >= kOpsMax) {
            return bad("iterations must be at least 2 and few enough to write out");
        }
        if (repeat.last_bytes == 0 || repeat.last_bytes > repeat.segment_bytes) {
            return bad("last_bytes must be 1 .. segment_bytes");
        }
        if (repeat.rotation < 1 || repeat.rotation > kRotationMax) {
            return bad(fmt::format("rotation must be 1 .. {}", kRotationMax));
        }
        if (repeat.segment_bytes > std::numeric_limits<std::uint64_t>::max() / kOpsMax / 2) {
            return bad("segment_bytes is beyond all buffers");
        }
        total += repeat.op_count * (repeat.iterations - 1);
        if (total >= kOpsMax) {
            return bad("too many ops when written out");
        }
        std::fill(repeat_of.begin() + repeat.first_op,
                  repeat_of.begin() + static_cast<std::ptrdiff_t>(end), i);
        free_from = end;
    }
    return Status();
}

Status check_dependencies(const Schedule& schedule, std::uint32_t index,
                          const std::vector<std::uint32_t>& repeat_of) {
    const IndexRange range = dependency_range(schedule, index);
    if (range.first > range.last || range.last > schedule.dependencies.size() ||
        (index == 0 && range.first != 0)) {
        return reject_op(schedule, index, "its dependencies are not a range of the array");
    }
    for (std::uint32_t d = range.first; d < range.last; ++d) {
        const std::uint32_t on = schedule.dependencies[d].op;
        const std::uint32_t distance = schedule.dependencies[d].distance;
        if (on >= schedule.ops.size()) {
            return reject_op(schedule, index, "depends on op {}, there are {}", on,
                             schedule.ops.size());
        }
        if (distance == 0 && on >= index) {
            return reject_op(schedule, index, "depends on op {}, which does not come before it",
                             on);
        }
        if (distance > 0 && (repeat_of[index] == kNoRepeat || repeat_of[on] != repeat_of[index])) {
            return reject_op(schedule, index,
                             "depends on op {} of an earlier iteration, which is not in its repeat",
                             on);
        }
    }
    return Status();
}

/// Checks that, in all iterations, a slice of own scratch lies either in the part that peers may
/// name or in the part that they may not.
Status check_part_of_scratch(const Schedule& schedule, std::uint32_t index, const Slice& slice,
                             std::uint32_t repeat) {
    if (slice.owner != schedule.rank || slice.buffer != BufferKind::scratch ||
        slice.offset >= schedule.own_scratch()) {
        return Status();
    }
    std::uint64_t end = slice.end();
    if (repeat != kNoRepeat) {
        const Repeat& around = schedule.repeats[repeat];
        const std::uint64_t last = around.iterations - 1;
        const std::uint64_t farthest = slice.stride == Stride::rotate
                                           ? std::min<std::uint64_t>(last, around.rotation - 1)
                                           : last;
        end = around.offset_at(slice.offset, slice.stride, farthest) + slice.length;
    }
    return schedule.own_scratch_bytes == 0 || end <= schedule.own_scratch()
               ? Status()
               : reject_op(schedule, index, "{} goes on from what peers may name to own scratch",
                           slice_text(slice, schedule.rank));
}

/// Checks that slices of a repeat's body are a segment long, or shorter if all segments are equally
/// long; that slices outside of repeats have no stride; and that offsets stay within 64 bits.
Status check_slice_form(const Schedule& schedule, std::uint32_t index, const Slice& slice,
                        std::uint32_t repeat) {
    std::uint64_t end = 0;
    if (__builtin_add_overflow(slice.offset, slice.length, &end) ||
        end > std::numeric_limits<std::uint64_t>::max() / 2) {
        return reject_op(schedule, index, "a slice ends beyond all buffers");
    }
    if (Status status = check_part_of_scratch(schedule, index, slice, repeat); !status.ok()) {
        return status;
    }
    if (repeat == kNoRepeat) {
        return slice.stride == Stride::fixed
                   ? Status()
                   : reject_op(schedule, index, "a slice moves outside a repeat");
    }
    const Repeat& around = schedule.repeats[repeat];
    const bool part =
        slice.length < around.segment_bytes && around.last_bytes == around.segment_bytes;
    return part || slice.length == around.segment_bytes
               ? Status()
               : reject_op(schedule, index, "{} is not a segment, {} bytes, long",
                           slice_text(slice, schedule.rank), around.segment_bytes);
}

Status check_op_form(const Schedule& schedule, std::uint32_t index, std::uint32_t repeat) {
    const Op& op = schedule.ops[index];
    Status status;
    if (has_source(op.kind)) {
        status = check_slice_form(schedule, index, op.source, repeat);
    }
    if (status.ok() && has_target(op.kind)) {
        status = check_slice_form(schedule, index, op.target, repeat);
    }
    if (!has_operands(op.kind) || !status.ok()) {
        return status;
    }
    if (std::uint64_t{op.first_operand} + op.operand_count > schedule.operands.size()) {
        return reject_op(schedule, index, "its operands are not a range of the array");
    }
    for (const Slice& operand : operands_of(schedule, op)) {
        status = status.ok() ? check_slice_form(schedule, index, operand, repeat) : status;
    }
    return status;
}

bool overlap(const Slice& a, const Slice& b) {
    return World::place(a) == World::place(b) && a.offset < b.end() && b.offset < a.end();
}

/// Checks that the slice lies in a buffer that the op's rank may touch.
Status check_reach(const World& world, OpRef ref, const Slice& slice) {
    const Rank self = world.rank_of[ref];
    if (slice.owner < 0 || slice.owner >= world.rank_count()) {
        return reject(world, ref, fmt::format("there is no rank {}", slice.owner));
    }
    if (slice.owner != self && (world.shares_memory == nullptr ||
                                !world.shares_memory(self, slice.owner, world.context))) {
        return reject(world, ref,
                      fmt::format("{} is out of reach: ranks {} and {} share no memory",
                                  slice_text(slice, self), self, slice.owner));
    }
    if (slice.owner != self && !world.program(slice.owner).exposed) {
        return reject(world, ref,
                      fmt::format("{} is out of reach: rank {} does not expose its buffers",
                                  slice_text(slice, self), slice.owner));
    }
    if (slice.owner != self && !world.program(self).exposed) {
        return reject(world, ref,
                      fmt::format("{} is out of reach: rank {} does not expose its own buffers",
                                  slice_text(slice, self), self));
    }
    const bool users = slice.buffer == BufferKind::input || slice.buffer == BufferKind::output;
    const bool by_kernel = world.program(slice.owner).helped;
    if (slice.owner != self && users && !by_kernel &&
        world.program(slice.owner).staging_buffer_bytes == 0) {
        return reject(
            world, ref,
            fmt::format("{} is out of reach: rank {} has no staging buffer, and publishes nothing",
                        slice_text(slice, self), slice.owner));
    }
    if (slice.owner != self && slice.buffer == BufferKind::scratch &&
        slice.end() > world.program(slice.owner).own_scratch()) {
        return reject(world, ref,
                      fmt::format("{} is out of reach: from byte {} on rank {} keeps its scratch "
                                  "to itself",
                                  slice_text(slice, self), world.program(slice.owner).own_scratch(),
                                  slice.owner));
    }
    const std::uint64_t bytes = buffer_bytes(world.program(slice.owner), slice.buffer);
    if (slice.end() > bytes) {
        return reject(world, ref,
                      fmt::format("{} reaches beyond the buffer, which has {} bytes",
                                  slice_text(slice, self), bytes));
    }
    const std::uint64_t staging_buffer_bytes = world.program(slice.owner).staging_buffer_bytes;
    const bool by_staging_buffer =
        slice.owner != self && slice.buffer != BufferKind::scratch && staging_buffer_bytes > 0;
    if (by_staging_buffer &&
        slice.length > staging_buffer_bytes - slice.offset % staging_buffer_bytes) {
        return reject(world, ref,
                      fmt::format("{} goes across a multiple of the staging buffer's {} bytes",
                                  slice_text(slice, self), staging_buffer_bytes));
    }
    return Status();
}

Status check_reduce(const World& world, OpRef ref) {
    const Op& op = world.op(ref);
    const Schedule& schedule = world.program_of(ref);
    if (!reduces(schedule.collective)) {
        return reject(world, ref, fmt::format("{} has no operator", name(schedule.collective)));
    }
    if (op.operand_count < 2) {
        return reject(world, ref, "a reduction has at least two operands");
    }
    if (op.target.length % schedule.element_bytes != 0) {
        return reject(world, ref,
                      fmt::format("cuts inside an element: {} bytes, elements of {}",
                                  op.target.length, schedule.element_bytes));
    }
    const std::span<const Slice> operands = world.operands(ref);
    for (std::size_t i = 0; i < operands.size(); ++i) {
        Status status = check_reach(world, ref, operands[i]);
        if (!status.ok()) {
            return status;
        }
        if (operands[i].length != op.target.length) {
            return reject(world, ref, "operands and target differ in length");
        }
        const bool is_target = i == 0 && operands[i].offset == op.target.offset;
        if (!is_target && overlap(operands[i], op.target)) {
            return reject(world, ref,
                          fmt::format("operand {} overlaps the target; only the first may be it",
                                      slice_text(operands[i], schedule.rank)));
        }
    }
    return Status();
}

/// Checks that what is published is the rank's own input or output, and would lie in one piece in a
/// staging buffer.
Status check_publish(const World& world, OpRef ref) {
    const Slice& source = world.op(ref).source;
    const Schedule& schedule = world.program_of(ref);
    if (source.owner != schedule.rank || source.buffer == BufferKind::scratch) {
        return reject(world, ref, "only own input and output are published");
    }
    if (!schedule.exposed || schedule.staging_buffer_bytes == 0) {
        return reject(world, ref, "the rank does not expose its buffers, or has no staging buffer");
    }
    const std::uint64_t in_staging_buffer = source.offset % schedule.staging_buffer_bytes;
    if (source.length > schedule.staging_buffer_bytes - in_staging_buffer) {
        return reject(world, ref,
                      fmt::format("goes across a multiple of the staging buffer's {} bytes",
                                  schedule.staging_buffer_bytes));
    }
    return Status();
}

Status check_copy(const World& world, OpRef ref) {
    const Op& op = world.op(ref);
    if (op.source.length != op.target.length) {
        return reject(world, ref, "source and target differ in length");
    }
    if (overlap(op.source, op.target)) {
        return reject(world, ref, "source and target overlap");
    }
    return Status();
}

Status check_target(const World& world, OpRef ref) {
    const Slice& target = world.op(ref).target;
    Status status = check_reach(world, ref, target);
    return status.ok() && target.buffer == BufferKind::input
               ? reject(world, ref, "writes to the input")
               : status;
}

Status check_op(const World& world, OpRef ref) {
    const Op& op = world.op(ref);
    if (is_message(op.kind) || is_event(op.kind)) {
        if (op.peer < 0 || op.peer >= world.rank_count()) {
            return reject(world, ref, fmt::format("there is no rank {}", op.peer));
        }
        if (op.peer == world.rank_of[ref]) {
            return reject(world, ref, "its peer is the rank itself");
        }
    }
    if (has_source(op.kind)) {
        Status status = check_reach(world, ref, op.source);
        if (!status.ok()) {
            return status;
        }
    }
    if (has_target(op.kind)) {
        Status status = check_target(world, ref);
        if (!status.ok()) {
            return status;
        }
    }
    switch (op.kind) {
    case OpKind::copy: return check_copy(world, ref);
    case OpKind::reduce: return check_reduce(world, ref);
    case OpKind::publish: return check_publish(world, ref);
    case OpKind::send:
    case OpKind::recv:
    case OpKind::signal:
    case OpKind::await:
    case OpKind::share: break; // check_flag_slots() checks what is shared.
    }
    return Status();
}

} // namespace

Status check_structure(const Schedule& schedule, const Request& request, Rank rank) {
    Status status = check_header(schedule, request, rank);
    if (!status.ok()) {
        return status;
    }
    if (schedule.ops.size() >= kOpsMax) {
        return failure(Code::invalid_argument, "rank {}: too many ops", rank);
    }
    std::vector<std::uint32_t> repeat_of(schedule.ops.size(), kNoRepeat);
    status = check_repeats(schedule, repeat_of);
    for (std::uint32_t i = 0; status.ok() && i < schedule.ops.size(); ++i) {
        status = check_dependencies(schedule, i, repeat_of);
        if (status.ok()) {
            status = check_op_form(schedule, i, repeat_of[i]);
        }
    }
    return status.ok() ? check_limits(schedule) : status;
}

Status check_ops(World& world) {
    Status status;
    for (OpRef ref = 0; status.ok() && ref < world.op_count(); ++ref) {
        status = check_op(world, ref);
    }
    return status;
}

} // namespace ucg::graph::proof
