#include "ucg_coll/graph/schedule.hpp"

#include <utility>

#include "ucg_coll/graph/lowering.hpp"

namespace ucg::graph {

namespace {

/// Writes out the repeats of a schedule. Each op of the original has `count` copies in the result,
/// from index `first` on, `pitch` apart; an op outside repeats has one copy.
class Unroller {
  public:
    explicit Unroller(const Schedule& original) : original_(original) {}

    Schedule run();

  private:
    static constexpr std::uint32_t kNoRepeat = 0xffffffffU;

    struct Copies {
        std::uint64_t first = 0;
        std::uint64_t count = 1;
        std::uint64_t pitch = 0;
        std::uint32_t repeat = kNoRepeat;
    };

    void lay_out();
    void emit(std::uint32_t index, std::uint64_t iteration);
    void emit_dependencies(std::uint32_t index, std::uint64_t iteration);
    void emit_dependency(std::uint64_t on);

    const Schedule& original_;
    Schedule result_;
    std::vector<Copies> copies_;
};

void Unroller::lay_out() {
    copies_.resize(original_.ops.size());
    std::uint64_t next = 0;
    std::uint32_t repeat_index = 0;
    for (std::uint32_t i = 0; i < copies_.size();) {
        const bool starts_repeat = repeat_index < original_.repeats.size() &&
                                   original_.repeats[repeat_index].first_op == i;
        if (!starts_repeat) {
            copies_[i++].first = next++;
            continue;
        }
        const Repeat& repeat = original_.repeats[repeat_index];
        for (std::uint32_t j = 0; j < repeat.op_count; ++j) {
            copies_[i + j] = {next + j, repeat.iterations, repeat.op_count, repeat_index};
        }
        next += checked_multiply(repeat.op_count, repeat.iterations);
        i += repeat.op_count;
        ++repeat_index;
    }
    UCG_ASSERT(next < kOpsMax);
    result_.ops.reserve(next);
}

void Unroller::emit_dependencies(std::uint32_t index, std::uint64_t iteration) {
    const IndexRange range = dependency_range(original_, index);
    for (std::uint32_t d = range.first; d < range.last; ++d) {
        const Dependency dependency = original_.dependencies[d];
        const Copies& on = copies_[dependency.op];
        std::uint64_t first = 0;
        std::uint64_t last = on.count;
        if (on.repeat != kNoRepeat && on.repeat == copies_[index].repeat) {
            if (iteration < dependency.distance) {
                continue;
            }
            first = iteration - dependency.distance;
            last = first + 1;
        }
        for (std::uint64_t k = first; k < last; ++k) {
            emit_dependency(on.first + k * on.pitch);
        }
    }
    const Copies& own = copies_[index];
    if (own.repeat != kNoRepeat && has_peer(original_.ops[index].kind)) {
        const std::uint64_t in_flight = iterations_in_flight(original_.repeats[own.repeat]);
        if (iteration >= in_flight) {
            emit_dependency(own.first + (iteration - in_flight) * own.pitch);
        }
    }
}

void Unroller::emit_dependency(std::uint64_t on) {
    Dependency dependency;
    dependency.op = on & (kOpsMax - 1);
    result_.dependencies.push_back(dependency);
}

void Unroller::emit(std::uint32_t index, std::uint64_t iteration) {
    Op op = original_.ops[index];
    op.first_dependency = static_cast<std::uint32_t>(result_.dependencies.size());
    emit_dependencies(index, iteration);
    const std::uint32_t repeat = copies_[index].repeat;
    const auto moved = [&](const Slice& slice) {
        return repeat == kNoRepeat ? slice
                                   : at_iteration(slice, original_.repeats[repeat], iteration);
    };
    op.source = has_source(op.kind) ? moved(op.source) : op.source;
    op.target = has_target(op.kind) ? moved(op.target) : op.target;
    if (has_operands(op.kind)) {
        const std::uint32_t first = op.first_operand;
        op.first_operand = static_cast<std::uint32_t>(result_.operands.size());
        for (std::uint32_t i = 0; i < op.operand_count; ++i) {
            result_.operands.push_back(moved(original_.operands[first + i]));
        }
    }
    result_.ops.push_back(op);
}

Schedule Unroller::run() {
    result_.collective = original_.collective;
    result_.algorithm = original_.algorithm;
    result_.rank = original_.rank;
    result_.rank_count = original_.rank_count;
    result_.in_place = original_.in_place;
    result_.exposed = original_.exposed;
    result_.helped = original_.helped;
    result_.flag_slots = original_.flag_slots;
    result_.input_bytes = original_.input_bytes;
    result_.output_bytes = original_.output_bytes;
    result_.scratch_bytes = original_.scratch_bytes;
    result_.own_scratch_bytes = original_.own_scratch_bytes;
    result_.flag_slot_bytes = original_.flag_slot_bytes;
    result_.element_bytes = original_.element_bytes;
    result_.staging_buffer_bytes = original_.staging_buffer_bytes;
    lay_out();
    for (std::uint32_t i = 0; i < copies_.size();) {
        const std::uint32_t body =
            copies_[i].repeat == kNoRepeat ? 1 : original_.repeats[copies_[i].repeat].op_count;
        for (std::uint64_t k = 0; k < copies_[i].count; ++k) {
            for (std::uint32_t j = 0; j < body; ++j) {
                emit(i + j, k);
            }
        }
        i += body;
    }
    return std::move(result_);
}

} // namespace

Slice part(Slice slice, std::uint64_t from, std::uint64_t length) {
    UCG_ASSERT(from <= slice.length && length <= slice.length - from);
    slice.offset += from;
    slice.length = length;
    return slice;
}

IndexRange dependency_range(const Schedule& schedule, std::uint32_t index) {
    const std::size_t next = std::size_t{index} + 1;
    const std::uint32_t last = next < schedule.ops.size()
                                   ? schedule.ops[next].first_dependency
                                   : static_cast<std::uint32_t>(schedule.dependencies.size());
    return {schedule.ops[index].first_dependency, last};
}

Slice at_iteration(const Slice& slice, const Repeat& repeat, std::uint64_t k) {
    Slice moved = slice;
    moved.offset = repeat.offset_at(slice.offset, slice.stride, k);
    moved.length = repeat.length_at(slice.length, k);
    moved.stride = Stride::fixed;
    return moved;
}

Schedule unroll(const Schedule& schedule) {
    return schedule.repeats.empty() ? schedule : Unroller(schedule).run();
}

std::string_view name(OpKind kind) {
    switch (kind) {
    case OpKind::send: return "send";
    case OpKind::recv: return "recv";
    case OpKind::copy: return "copy";
    case OpKind::reduce: return "reduce";
    case OpKind::signal: return "signal";
    case OpKind::await: return "await";
    case OpKind::publish: return "publish";
    case OpKind::share: return "share";
    }
    return "?";
}

std::string_view name(BufferKind buffer) {
    switch (buffer) {
    case BufferKind::input: return "input";
    case BufferKind::output: return "output";
    case BufferKind::scratch: return "scratch";
    case BufferKind::flag_slot: return "flag_slot";
    }
    return "?";
}

} // namespace ucg::graph
