#include "ucg_coll/engine/helped.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "ucg_coll/base/copy.hpp"

namespace ucg::engine {

using graph::Op;
using graph::OpKind;
using graph::Repeat;
using graph::Schedule;
using graph::Slice;
using transport::Help;

namespace {

void add_parts(const Schedule& schedule, HelpedProgram& program) {
    for (std::uint32_t i = 0; i < schedule.repeats.size(); ++i) {
        const Repeat& repeat = schedule.repeats[i];
        std::vector<Rank> named = graph::ranks_named(schedule, repeat);
        if (!std::binary_search(named.begin(), named.end(), program.rank)) {
            continue;
        }
        program.parts.push_back({schedule.rank, i, repeat.iterations, std::move(named)});
        program.whose.push_back(&schedule);
        program.repeats.push_back(&repeat);
        program.scratch_bytes = std::max(program.scratch_bytes, schedule.scratch_bytes);
        program.unit_bytes = std::max(program.unit_bytes, repeat.segment_bytes);
        for (const Op& op : std::span(schedule.ops).subspan(repeat.first_op, repeat.op_count)) {
            program.operands_max = std::max<std::uint32_t>(program.operands_max, op.operand_count);
        }
    }
}

} // namespace

HelpedProgram helped_program(std::span<const Schedule> schedules, Rank rank, Help& help) {
    const Schedule& own = schedules[static_cast<std::size_t>(rank)];
    HelpedProgram program;
    program.help = &help;
    program.rank = rank;
    program.contributes_output = own.in_place && own.input_bytes == 0;
    program.schedules.assign(schedules.begin(), schedules.end());
    add_parts(program.schedules[static_cast<std::size_t>(rank)], program);
    for (const Schedule& schedule : program.schedules) {
        if (schedule.rank != rank) {
            add_parts(schedule, program);
        }
    }
    return program;
}

HelpedRun::HelpedRun(const HelpedProgram& program)
    : program_(program), over_(program.parts.size()), pointers_(program.operands_max) {
    std::size_t bytes = program.run_bytes();
    std::size_t room = bytes + kCacheLine - 1;
    room_.reset(new std::byte[room]);
    void* start = room_.get();
    scratch_ = static_cast<std::byte*>(std::align(kCacheLine, bytes, start, room));
    operands_ = scratch_ + round_up(program.scratch_bytes, kCacheLine);
}

void HelpedRun::begin(const Call& call) {
    call_ = call;
    if (program_.contributes_output) {
        call_.input = call.output;
        call_.input_bytes = call.output_bytes;
    }
    move_within_reach();
    std::fill(over_.begin(), over_.end(), false);
    left_ = over_.size();
    unit_.reset();
    program_.help->begin({call_.sequence, call_.plan, call_.input, call_.input_bytes, call_.output,
                          call_.output_bytes, program_.parts});
}

void HelpedRun::move_within_reach() {
    if (program_.contributes_output) {
        if (stand_in(output_, call_.output, call_.output_bytes)) {
            call_.input = call_.output;
        }
        return;
    }
    stand_in(input_, call_.input, call_.input_bytes);
    stand_in(output_, call_.output, call_.output_bytes);
}

/// If peers do not reach `buffer`, replaces it by newly allocated memory with the same bytes, and
/// returns true. If there is no memory, the buffer stays, and a peer that cannot reach it reports
/// the error.
bool HelpedRun::stand_in(StandIn& place, std::byte*& buffer, std::uint64_t bytes) const {
    if (bytes == 0 || program_.help->reached(buffer, bytes)) [[likely]] {
        return false;
    }
    place.bytes.reset(new (std::nothrow) std::byte[bytes]);
    if (place.bytes == nullptr) {
        return false;
    }
    place.buffer = buffer;
    copy_bytes(place.bytes.get(), buffer, bytes); // An output may be written only in part.
    buffer = place.bytes.get();
    return true;
}

HelpedRun::Outcome HelpedRun::advance() {
    Help& help = *program_.help;
    if (unit_) [[unlikely]] {
        if (help.look(program_.parts[unit_->part], call_.sequence) != Help::State::broken) {
            return go_on();
        }
        help.unit_done(program_.parts[unit_->part], call_.sequence);
        unit_.reset();
        return Outcome::failed;
    }
    for (std::size_t i = 0; i < over_.size(); ++i) {
        if (over_[i]) {
            continue;
        }
        const transport::HelpedPart& part = program_.parts[i];
        switch (help.look(part, call_.sequence)) {
        case Help::State::waits:
        case Help::State::taken: break;
        case Help::State::broken: return Outcome::failed;
        case Help::State::over:
            over_[i] = true;
            --left_;
            ++events_;
            break;
        case Help::State::ready:
            if (const auto unit = help.take(part, call_.sequence)) {
                unit_ = Unit{i, *unit};
                return go_on();
            }
        }
    }
    return left_ == 0 ? end() : Outcome::waits;
}

HelpedRun::Outcome HelpedRun::end() {
    program_.help->end(call_.sequence);
    if (output_.bytes != nullptr) [[unlikely]] {
        copy_bytes(output_.buffer, output_.bytes.get(), call_.output_bytes);
    }
    input_.bytes.reset();
    output_.bytes.reset();
    return Outcome::over;
}

/// Goes on with the unit that this rank has taken. If a copy fails, the rest of the unit is left
/// undone: Help::look() then returns State::broken.
HelpedRun::Outcome HelpedRun::go_on() {
    if (do_unit() == Help::Copied::later) [[unlikely]] {
        return Outcome::waits;
    }
    ++events_;
    program_.help->unit_done(program_.parts[unit_->part], call_.sequence);
    unit_.reset();
    return Outcome::did_unit;
}

Help::Copied HelpedRun::do_unit() {
    const Schedule& schedule = *program_.whose[unit_->part];
    const Repeat& repeat = *program_.repeats[unit_->part];
    for (; unit_->op < repeat.op_count; ++unit_->op, unit_->fetched = 0) {
        const Op& op = schedule.ops[repeat.first_op + unit_->op];
        const Help::Copied copied =
            op.kind == OpKind::reduce ? reduce(schedule, repeat, op)
                                      : copy(graph::at_iteration(op.source, repeat, unit_->number),
                                             graph::at_iteration(op.target, repeat, unit_->number));
        if (copied != Help::Copied::yes) {
            return copied;
        }
    }
    return Help::Copied::yes;
}

std::byte* HelpedRun::own(const Slice& slice) const {
    return (slice.buffer == graph::BufferKind::input ? call_.input : call_.output) + slice.offset;
}

/// Returns where the slice is; null if it is a peer's and not mapped here.
std::byte* HelpedRun::find(const Slice& slice) const {
    if (slice.buffer == graph::BufferKind::scratch) {
        return scratch_ + slice.offset;
    }
    if (slice.owner == program_.rank) {
        return own(slice);
    }
    std::byte* const there = program_.help->mapped(slice.owner, slice.buffer, call_.sequence);
    return there == nullptr ? nullptr : there + slice.offset;
}

/// Sets the pointer of the op's next operand: to the slice itself, or to `room`, to which it is
/// copied, if the slice is not mapped here.
Help::Copied HelpedRun::fetch(const Slice& slice, std::byte* room) {
    const std::byte*& pointer = pointers_[unit_->fetched];
    pointer = find(slice);
    if (pointer == nullptr) {
        const Help::Copied copied = program_.help->read(slice.owner, slice.buffer, call_.sequence,
                                                        slice.offset, {room, slice.length});
        if (copied != Help::Copied::yes) {
            return copied;
        }
        pointer = room;
    }
    ++unit_->fetched;
    return Help::Copied::yes;
}

Help::Copied HelpedRun::copy(const Slice& source, const Slice& target) {
    std::byte* const to = find(target);
    if (unit_->fetched == 0) {
        const Help::Copied copied = fetch(source, to != nullptr ? to : operand_room(0));
        if (copied != Help::Copied::yes) {
            return copied;
        }
    }
    const std::byte* const from = pointers_[0];
    if (to == nullptr) {
        return program_.help->write(target.owner, target.buffer, call_.sequence, target.offset,
                                    {from, target.length});
    }
    if (from != to) {
        copy_bytes(to, from, target.length);
    }
    return Help::Copied::yes;
}

Help::Copied HelpedRun::reduce(const Schedule& schedule, const Repeat& repeat, const Op& op) {
    const std::span<const Slice> operands = graph::operands_of(schedule, op);
    const Slice target = graph::at_iteration(op.target, repeat, unit_->number);
    while (unit_->fetched < operands.size()) {
        const Help::Copied copied =
            fetch(graph::at_iteration(operands[unit_->fetched], repeat, unit_->number),
                  operand_room(unit_->fetched));
        if (copied != Help::Copied::yes) {
            return copied;
        }
    }
    call_.reduction.combine(call_.reduction.context, pointers_.data(), operands.size(),
                            find(target), target.length);
    return Help::Copied::yes;
}

} // namespace ucg::engine
