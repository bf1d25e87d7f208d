#include "ucg_coll/graph/builder.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace ucg::graph {
namespace {

bool intersect(const Slice& a, const Slice& b) {
    return a.offset < b.end() && b.offset < a.end();
}

} // namespace

Builder::Builder(const Request& request, Rank rank, std::string_view algorithm) {
    const BufferSizes sizes = buffer_sizes(request, rank);
    schedule_.collective = request.collective;
    schedule_.algorithm = algorithm;
    schedule_.rank = rank;
    schedule_.rank_count = request.rank_count;
    schedule_.in_place = request.in_place;
    schedule_.input_bytes = sizes.input;
    schedule_.output_bytes = sizes.output;
    schedule_.element_bytes = request.element_bytes;
}

Slice Builder::input(std::uint64_t offset, std::uint64_t length) const {
    return {offset, length, rank(), BufferKind::input, Stride::fixed};
}

Slice Builder::output(std::uint64_t offset, std::uint64_t length) const {
    return {offset, length, rank(), BufferKind::output, Stride::fixed};
}

Slice Builder::scratch(std::uint64_t length) {
    const Slice slice{schedule_.scratch_bytes, length, rank(), BufferKind::scratch, Stride::fixed};
    const std::uint64_t end = checked_add(slice.offset, length);
    schedule_.scratch_bytes = checked_add(end, round_up(end, kCacheLine) - end);
    return slice;
}

Slice Builder::shared_scratch(std::uint64_t length) {
    const Slice slice = scratch(length);
    shared_scratch_end_ = schedule_.scratch_bytes;
    return slice;
}

Slice Builder::rotating_scratch(std::uint64_t segment_bytes, std::uint32_t rotation) {
    Slice slice = scratch(checked_multiply(segment_bytes, rotation));
    slice.length = segment_bytes;
    return rotate(slice);
}

OpId Builder::send(Rank peer, Slice source, After after) {
    if (source.length == 0) {
        return kNoOp;
    }
    Op op;
    op.kind = OpKind::send;
    op.peer = peer;
    op.source = checked(source);
    return add(op, {&op.source, 1}, nullptr, after);
}

OpId Builder::recv(Rank peer, Slice target, After after) {
    if (target.length == 0) {
        return kNoOp;
    }
    Op op;
    op.kind = OpKind::recv;
    op.peer = peer;
    op.target = checked(target);
    return add(op, {}, &op.target, after);
}

OpId Builder::copy(Slice source, Slice target, After after) {
    UCG_ASSERT(source.length == target.length);
    if (source.length == 0 || source == target) {
        return kNoOp;
    }
    Op op;
    op.kind = OpKind::copy;
    op.source = checked(source);
    op.target = checked(target);
    return add(op, {&op.source, 1}, &op.target, after);
}

OpId Builder::reduce(std::span<const Slice> operands, Slice target, After after) {
    UCG_ASSERT(!operands.empty() && operands.size() <= 0xffff);
    if (operands.size() == 1) {
        return copy(operands[0], target, after);
    }
    if (target.length == 0) {
        return kNoOp;
    }
    Op op;
    op.kind = OpKind::reduce;
    op.target = checked(target);
    op.first_operand = static_cast<std::uint32_t>(schedule_.operands.size());
    op.operand_count = static_cast<std::uint16_t>(operands.size());
    for (const Slice& operand : operands) {
        UCG_ASSERT(operand.length == target.length);
        schedule_.operands.push_back(checked(operand));
    }
    return add(op, operands, &op.target, after);
}

OpId Builder::signal(Rank peer, After after) {
    Op op;
    op.kind = OpKind::signal;
    op.peer = peer;
    return add(op, {}, nullptr, after);
}

OpId Builder::await(Rank peer, After after) {
    Op op;
    op.kind = OpKind::await;
    op.peer = peer;
    return add(op, {}, nullptr, after);
}

OpId Builder::await_read(Rank peer, Slice published, After after) {
    Op op;
    op.kind = OpKind::await;
    op.peer = peer;
    return add(op, {&published, 1}, nullptr, after);
}

OpId Builder::publish(Slice source, After after) {
    UCG_ASSERT(schedule_.staging_buffer_bytes > 0 && source.owner == rank());
    if (source.length == 0) {
        return kNoOp;
    }
    Op op;
    op.kind = OpKind::publish;
    op.source = checked(source);
    return add(op, {&op.source, 1}, nullptr, after);
}

OpId Builder::share(Slice source, After after) {
    UCG_ASSERT(schedule_.flag_slots && !in_repeat_ && source.owner == rank());
    Op op;
    op.kind = OpKind::share;
    op.source = checked(source);
    op.target = flag_slot(rank(), 0, source.length);
    schedule_.flag_slot_bytes = source.length;
    return add(op, {&op.source, 1}, &op.target, after);
}

OpId Builder::await_share(Rank peer, After after) {
    UCG_ASSERT(schedule_.flag_slots && !in_repeat_ && peer != rank());
    Op op;
    op.kind = OpKind::copy;
    op.source = flag_slot(peer, 0, 0);
    op.target = output(0, 0);
    return add(op, {}, nullptr, after);
}

void Builder::staging_buffer(std::uint64_t bytes) {
    UCG_ASSERT(bytes > 0);
    schedule_.exposed = true;
    schedule_.staging_buffer_bytes = bytes;
}

Builder::Segments Builder::begin_repeat(std::uint64_t total_bytes, std::uint64_t segment_bytes,
                                        std::uint32_t rotation) {
    UCG_ASSERT(!in_repeat_ && total_bytes > 0 && segment_bytes > 0);
    UCG_ASSERT(rotation >= 1 && rotation <= kRotationMax);
    const std::uint64_t count = divide_up(total_bytes, segment_bytes);
    if (count > 1) {
        in_repeat_ = true;
        repeat_total_ = total_bytes;
        repeat_ = {static_cast<std::uint32_t>(schedule_.ops.size()), 0,       count, segment_bytes,
                   total_bytes - (count - 1) * segment_bytes,        rotation};
    }
    return {count, std::min(total_bytes, segment_bytes)};
}

void Builder::after_earlier(OpId op, OpId earlier, std::uint32_t distance) {
    UCG_ASSERT(distance >= 1 && distance <= 15);
    if (in_repeat_ && op != kNoOp && earlier != kNoOp) {
        UCG_ASSERT(op >= repeat_.first_op && earlier >= repeat_.first_op);
        depend_on_earlier(op, earlier, distance);
    }
}

void Builder::end_repeat() {
    if (!in_repeat_) {
        return; // A single segment: its ops stand as they are.
    }
    repeat_.op_count = static_cast<std::uint32_t>(schedule_.ops.size()) - repeat_.first_op;
    depend_on_earlier_iterations();
    for (std::uint32_t i = 0; i < repeat_.op_count; ++i) {
        store(repeat_.first_op + i, body_dependencies_[i]);
    }
    record_repeat();
    if (repeat_.op_count > 0) {
        schedule_.repeats.push_back(repeat_);
    }
    in_repeat_ = false;
    body_.clear();
    body_index_.clear();
    earlier_noted_.clear();
    body_dependencies_.clear();
}

Schedule Builder::finish() {
    UCG_ASSERT(!in_repeat_);
    histories_.clear();
    noted_.clear();
    behind_.clear();
    past_repeats_.clear();
    if (schedule_.exposed) {
        schedule_.own_scratch_bytes = schedule_.scratch_bytes - shared_scratch_end_;
    }
    shared_scratch_end_ = 0;
    return std::exchange(schedule_, Schedule{});
}

/// Returns a slice of the caller as it is stored, without a stride outside a repeat. Asserts that
/// its length suits the open repeat.
Slice Builder::checked(Slice slice) const {
    if (!in_repeat_) {
        slice.stride = Stride::fixed;
    } else {
        UCG_ASSERT(
            slice.length == repeat_.segment_bytes ||
            (slice.length < repeat_.segment_bytes && repeat_.last_bytes == repeat_.segment_bytes));
    }
    return slice;
}

OpId Builder::add(Op op, std::span<const Slice> reads, const Slice* write, After after) {
    UCG_ASSERT(op.peer != rank());
    const auto id = static_cast<OpId>(schedule_.ops.size());
    UCG_ASSERT(id < kOpsMax);
    schedule_.ops.push_back(op);

    std::vector<Access> accesses;
    accesses.reserve(reads.size() + 1);
    for (const Slice& slice : reads) {
        accesses.push_back({id, checked(slice), false});
    }
    if (write != nullptr) {
        accesses.push_back({id, checked(*write), true});
    }

    std::vector<Dependency> list;
    for (const OpId on : after) {
        depend(list, on);
    }
    for (const Access& access : accesses) {
        depend_on_history(list, access);
        if (in_repeat_) {
            depend_on_body(list, access);
        }
    }
    if (in_repeat_) {
        for (const Access& access : accesses) {
            body_index_.add(access.slice, static_cast<AccessIndex::Id>(body_.size()));
            body_.push_back(access);
        }
        body_dependencies_.push_back(std::move(list));
        return id;
    }
    store(id, list);
    for (const Access& access : accesses) {
        record(access);
    }
    return id;
}

void Builder::store(std::uint32_t op, std::span<const Dependency> list) {
    schedule_.ops[op].first_dependency = static_cast<std::uint32_t>(schedule_.dependencies.size());
    schedule_.dependencies.insert(schedule_.dependencies.end(), list.begin(), list.end());
}

/// Adds to the list of the op that is being added a dependency on `on`, unless the list has it:
/// noted_ tells without a search of the list.
void Builder::depend(std::vector<Dependency>& list, OpId on) {
    ++look_count_;
    const auto self = static_cast<OpId>(schedule_.ops.size() - 1);
    if (on == kNoOp || on == self) {
        return; // The op itself may read what it writes.
    }
    noted_.resize(schedule_.ops.size(), kNoOp);
    if (noted_[on] != self) {
        noted_[on] = self;
        list.push_back({on & (kOpsMax - 1), 0});
    }
}

/// Adds to the list of `op`, which is in the open repeat, a dependency on `earlier` as it runs
/// `distance` iterations before, unless the list has it.
void Builder::depend_on_earlier(OpId op, OpId earlier, std::uint32_t distance) {
    ++look_count_;
    const std::uint64_t key = std::uint64_t{op} << 32 | std::uint64_t{earlier} << 4 | distance;
    if (earlier_noted_.insert(key).second) {
        body_dependencies_[op - repeat_.first_op].push_back(
            {earlier & (kOpsMax - 1), distance & 0xfU});
    }
}

void Builder::depend_on_history(std::vector<Dependency>& list, const Access& access) {
    const Slice slice = covered(access.slice);
    std::vector<std::uint32_t> repeats;
    History& past = history(slice);
    auto stretch = past.upper_bound(slice.offset);
    if (stretch != past.begin()) {
        --stretch;
    }
    for (; stretch != past.end() && stretch->first < slice.end(); ++stretch) {
        ++look_count_;
        if (stretch->second.end <= slice.offset) {
            continue;
        }
        // Readers come after the writer, so depending on them is enough.
        if (!access.writes || stretch->second.readers.empty()) {
            depend(list, stretch->second.writer);
        }
        if (access.writes) {
            for (const OpId reader : stretch->second.readers) {
                depend(list, reader);
            }
        }
        for (const std::uint32_t repeat : stretch->second.repeats) {
            if (std::find(repeats.begin(), repeats.end(), repeat) == repeats.end()) {
                repeats.push_back(repeat);
            }
        }
    }
    for (const std::uint32_t repeat : repeats) {
        depend_on_repeat(list, access, past_repeats_[repeat]);
    }
}

/// Adds dependencies on all ops of a past repeat whose accesses conflict with `access`, but for ops
/// that another dependency waits for in each iteration.
void Builder::depend_on_repeat(std::vector<Dependency>& list, const Access& access,
                               const PastRepeat& repeat) {
    const auto self = static_cast<OpId>(schedule_.ops.size() - 1);
    noted_.resize(schedule_.ops.size(), kNoOp);
    behind_.resize(schedule_.ops.size(), kNoOp);
    const auto note_behind = [&](OpId op) {
        if (op < repeat.first_op || op - repeat.first_op >= repeat.dependencies.size()) {
            return;
        }
        for (const Dependency on : repeat.dependencies[op - repeat.first_op]) {
            ++look_count_;
            if (on.distance == 0) {
                behind_[on.op] = self;
            }
        }
    };
    for (const Dependency on : list) {
        note_behind(on.op);
    }
    const Slice slice = covered(access.slice);
    std::vector<AccessIndex::Id> found;
    repeat.index.find(
        slice, Stride::fixed,
        {static_cast<std::int64_t>(slice.offset), static_cast<std::int64_t>(slice.end())}, found);
    std::sort(found.begin(), found.end(), std::greater<>()); // The latest ops first.
    for (const AccessIndex::Id id : found) {
        ++look_count_;
        const Access& earlier = repeat.accesses[id];
        if ((access.writes || earlier.writes) && noted_[earlier.op] != self &&
            behind_[earlier.op] != self) {
            depend(list, earlier.op);
            note_behind(earlier.op);
        }
    }
}

void Builder::depend_on_body(std::vector<Dependency>& list, const Access& access) {
    find_conflicts(access, 0);
    for (const AccessIndex::Id earlier : found_) {
        depend(list, body_[earlier].op);
    }
}

void Builder::depend_on_earlier_iterations() {
    for (std::uint32_t distance = 1; distance <= repeat_.rotation; ++distance) {
        for (const Access& later : body_) {
            find_conflicts(later, distance);
            for (const AccessIndex::Id earlier : found_) {
                depend_on_earlier(later.op, body_[earlier].op, distance);
            }
        }
    }
}

void Builder::find_conflicts(const Access& later, std::uint32_t distance) {
    found_.clear();
    for (const Stride stride : kStrides) {
        find_overlaps(later.slice, stride, distance);
    }
    look_count_ += found_.size();
    std::erase_if(found_, [&](AccessIndex::Id earlier) {
        return !conflict(later, body_[earlier], distance);
    });
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
}

/// Adds to `found_` all accesses of the body with that stride for which overlap() may return true,
/// and possibly others.
void Builder::find_overlaps(const Slice& later, Stride stride, std::uint32_t distance) {
    const auto find = [&](std::int64_t begin, std::uint64_t length) {
        body_index_.find(later, stride, {begin, begin + static_cast<std::int64_t>(length)}, found_);
    };
    const auto offset = static_cast<std::int64_t>(later.offset);
    const auto segment = static_cast<std::int64_t>(repeat_.segment_bytes);
    if (later.stride != stride) {
        const std::uint64_t earlier_moves = moves_by(stride);
        find(offset - static_cast<std::int64_t>(earlier_moves),
             earlier_moves + covered(later).length);
        return;
    }
    switch (stride) {
    case Stride::fixed: find(offset, later.length); break;
    case Stride::advance: find(offset + distance * segment, later.length); break;
    case Stride::rotate: {
        const std::int64_t places = distance % repeat_.rotation;
        find(offset + places * segment, later.length);
        find(offset + (places - repeat_.rotation) * segment, later.length); // It has wrapped.
        break;
    }
    }
}

void Builder::record(const Access& access, std::uint32_t repeat) {
    const Slice& slice = access.slice;
    const std::vector<std::uint32_t> repeats(repeat == kNoRepeat ? 0 : 1, repeat);
    History& past = history(slice);
    split(past, slice.offset);
    split(past, slice.end());
    if (access.writes) {
        past.erase(past.lower_bound(slice.offset), past.lower_bound(slice.end()));
        past[slice.offset] = {slice.end(), access.op, {}, repeats};
        return;
    }
    std::uint64_t offset = slice.offset;
    while (offset < slice.end()) { // All stretches within the slice; gaps become stretches.
        const auto next = past.lower_bound(offset);
        if (next == past.end() || next->first > offset) {
            const std::uint64_t end =
                next == past.end() ? slice.end() : std::min(next->first, slice.end());
            past[offset] = {end, kNoOp, {access.op}, repeats};
            offset = end;
        } else {
            Stretch& stretch = next->second;
            stretch.readers.push_back(access.op);
            if (repeat != kNoRepeat &&
                (stretch.repeats.empty() || stretch.repeats.back() != repeat)) {
                stretch.repeats.push_back(repeat);
            }
            offset = stretch.end;
        }
    }
}

/// Records what the accesses of the body touch over all iterations.
void Builder::record_repeat() {
    const auto number = static_cast<std::uint32_t>(past_repeats_.size());
    PastRepeat& past = past_repeats_.emplace_back();
    past.first_op = repeat_.first_op;
    past.accesses.reserve(body_.size());
    for (Access access : body_) {
        access.slice = covered(access.slice);
        record(access, number);
        past.index.add(access.slice, static_cast<AccessIndex::Id>(past.accesses.size()));
        past.accesses.push_back(access);
    }
    past.dependencies = std::move(body_dependencies_);
}

/// Splits the stretch that `offset` lies within, if any, into two at `offset`.
void Builder::split(History& history, std::uint64_t offset) {
    auto stretch = history.upper_bound(offset);
    if (stretch == history.begin()) {
        return;
    }
    --stretch;
    if (stretch->first < offset && offset < stretch->second.end) {
        Stretch upper = stretch->second;
        stretch->second.end = offset;
        history[offset] = std::move(upper);
    }
}

/// Returns the most bytes, over all iterations of the open repeat, by which a slice of the body is
/// moved.
std::uint64_t Builder::moves_by(Stride stride) const {
    switch (stride) {
    case Stride::fixed: return 0;
    case Stride::advance: return repeat_total_ - repeat_.segment_bytes;
    case Stride::rotate: return repeat_.segment_bytes * (repeat_.rotation - 1);
    }
    return 0;
}

/// Returns the range of bytes that a slice of the open repeat's body touches over all iterations.
Slice Builder::covered(Slice slice) const {
    slice.length += moves_by(slice.stride);
    slice.stride = Stride::fixed;
    return slice;
}

bool Builder::overlap(const Slice& later, const Slice& earlier, std::uint32_t distance) const {
    if (later.stride != earlier.stride) {
        return intersect(covered(later), covered(earlier));
    }
    switch (later.stride) {
    case Stride::fixed: return intersect(later, earlier);
    case Stride::advance: {
        Slice moved = later;
        moved.offset += distance * repeat_.segment_bytes;
        return intersect(moved, earlier);
    }
    case Stride::rotate: return overlap_rotating(later, earlier, distance);
    }
    return true;
}

/// Returns whether two rotating slices overlap at any position of the rotation.
bool Builder::overlap_rotating(const Slice& later, const Slice& earlier,
                               std::uint32_t distance) const {
    for (std::uint32_t turn = 0; turn < repeat_.rotation; ++turn) {
        Slice at = later;
        Slice before = earlier;
        at.offset += ((turn + distance) % repeat_.rotation) * repeat_.segment_bytes;
        before.offset += turn * repeat_.segment_bytes;
        if (intersect(at, before)) {
            return true;
        }
    }
    return false;
}

/// Returns whether two accesses conflict. REQUIRES: both are of the same buffer, as those are that
/// the index finds.
bool Builder::conflict(const Access& later, const Access& earlier, std::uint32_t distance) const {
    return (later.writes || earlier.writes) && overlap(later.slice, earlier.slice, distance);
}

} // namespace ucg::graph
