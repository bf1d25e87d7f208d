// The schedule graph: the ops of one rank for one collective, a plain value. An algorithm returns
// it; verify proves it, sim prices it, text/json/dot show it, the engine executes it.
//
// A schedule has no pointers and no handles. It can be copied, compared, printed and parsed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/collective.hpp"

namespace ucg::graph {

enum class BufferKind : std::uint8_t {
    input,
    output,
    scratch,
    flag_slot, ///< Lines on which its rank shares bytes with all others of its host:
               ///< OpKind::share.
};
inline constexpr std::array kBufferKinds = {BufferKind::input, BufferKind::output,
                                            BufferKind::scratch, BufferKind::flag_slot};

/// How a slice moves from one iteration of a Repeat to the next.
enum class Stride : std::uint8_t {
    fixed,   ///< It does not move: every iteration has the same bytes.
    advance, ///< It moves by the segment's length: offset + k * segment_bytes in iteration k.
    rotate,  ///< It moves round robin: offset + (k mod rotation) * segment_bytes in iteration k.
};
inline constexpr std::array kStrides = {Stride::fixed, Stride::advance, Stride::rotate};

/// Bytes [offset, offset + length) of a buffer. `owner` is the rank whose buffer it is. It may be
/// another rank than the schedule's own only where the two share memory, and for input and output
/// only after the owner has published the bytes. Only peers of the owner read a flag slot.
struct Slice {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    Rank owner = kNoRank;
    BufferKind buffer = BufferKind::input;
    Stride stride = Stride::fixed; ///< Other than `fixed` only inside a Repeat.

    std::uint64_t end() const { return offset + length; }
    bool operator==(const Slice&) const = default;
};

/// Returns bytes [from, from + length) of `slice`. REQUIRES: they lie within it.
Slice part(Slice slice, std::uint64_t from, std::uint64_t length);

enum class OpKind : std::uint8_t {
    send,    ///< Sends `source` to `peer`.
    recv,    ///< Receives a message from `peer` into `target`.
    copy,    ///< Copies `source` to `target`; either may be a peer's slice.
    reduce,  ///< Combines the operands, in the order written and from the left, into `target`. The
             ///< first operand may be `target` itself; no other may overlap it.
    signal,  ///< Carries no bytes: ops that it depends on happen before those that depend on its
             ///< await at `peer`.
    await,   ///< Waits for a signal from `peer`.
    publish, ///< Lets peers read `source`, own input or output, after a signal that depends on
             ///< this. If they do not reach the buffer in place, its bytes are copied to a staging
             ///< buffer that they do reach: see Schedule::staging_buffer_bytes.
    share,   ///< Copies `source`, own input, output or scratch, to `target`, the start of the own
             ///< flag slot. An op that names a peer's flag slot starts after that peer's share has
             ///< completed, without a signal; a copy of no bytes from a flag slot only waits for
             ///< that. A rank shares at most once, outside repeats, and may leave while peers read.
};

/// Returns whether ops of this kind use Op::source. The functions below answer the same for other
/// fields and properties. No switch over kinds has a default, so that code with a new kind does not
/// compile until every reader of ops says what the kind means.
constexpr bool has_source(OpKind kind) {
    switch (kind) {
    case OpKind::send:
    case OpKind::copy:
    case OpKind::publish:
    case OpKind::share: return true;
    case OpKind::recv:
    case OpKind::reduce:
    case OpKind::signal:
    case OpKind::await: return false;
    }
    return false;
}
constexpr bool has_target(OpKind kind) {
    switch (kind) {
    case OpKind::recv:
    case OpKind::copy:
    case OpKind::reduce:
    case OpKind::share: return true;
    case OpKind::send:
    case OpKind::signal:
    case OpKind::await:
    case OpKind::publish: return false;
    }
    return false;
}
constexpr bool has_peer(OpKind kind) {
    switch (kind) {
    case OpKind::send:
    case OpKind::recv:
    case OpKind::signal:
    case OpKind::await: return true;
    case OpKind::copy:
    case OpKind::reduce:
    case OpKind::publish:
    case OpKind::share: return false;
    }
    return false;
}
/// Returns whether the op is the sending end of a message or signal.
constexpr bool is_outgoing(OpKind kind) {
    switch (kind) {
    case OpKind::send:
    case OpKind::signal: return true;
    case OpKind::recv:
    case OpKind::await:
    case OpKind::copy:
    case OpKind::reduce:
    case OpKind::publish:
    case OpKind::share: return false;
    }
    return false;
}
constexpr bool has_operands(OpKind kind) {
    switch (kind) {
    case OpKind::reduce: return true;
    case OpKind::send:
    case OpKind::recv:
    case OpKind::copy:
    case OpKind::signal:
    case OpKind::await:
    case OpKind::publish:
    case OpKind::share: return false;
    }
    return false;
}
/// Returns whether the op is a signal or its await, which carry no bytes.
constexpr bool is_order_only(OpKind kind) {
    switch (kind) {
    case OpKind::signal:
    case OpKind::await: return true;
    case OpKind::send:
    case OpKind::recv:
    case OpKind::copy:
    case OpKind::reduce:
    case OpKind::publish:
    case OpKind::share: return false;
    }
    return false;
}

/// One operation of a schedule. Messages and signals are matched by order: the k-th send from a to
/// b meets the k-th recv at b from a; the k-th signal from a to b meets the k-th await at b of a.
/// Signals and messages are counted apart.
struct Op {
    Slice source; ///< send, copy, publish, share
    Slice target; ///< recv, copy, reduce, share
    OpKind kind = OpKind::copy;
    std::uint16_t operand_count = 0;    ///< reduce
    Rank peer = kNoRank;                ///< send, recv, signal, await
    std::uint32_t first_operand = 0;    ///< reduce: index into Schedule::operands
    std::uint32_t first_dependency = 0; ///< Index into Schedule::dependencies. Those of this op
                                        ///< end where the next op's begin.

    bool operator==(const Op&) const = default;
};
static_assert(sizeof(Op) <= 64);

/// The limits, given by the bits of a Dependency, on the ops of a schedule and on how many
/// iterations back a dependency goes.
inline constexpr std::uint32_t kOpsMax = 1U << 28;
inline constexpr std::uint32_t kRotationMax = 15;

/// A dependency of an op, which may not start before `op` has completed. `distance` is 0, or,
/// between two ops of one Repeat, how many iterations earlier `op` runs. If an op outside a Repeat
/// depends on an op inside, it waits for all iterations.
struct Dependency {
    std::uint32_t op : 28 = 0;
    std::uint32_t distance : 4 = 0;

    bool operator==(const Dependency&) const = default;
};
static_assert(sizeof(Dependency) == 4);

/// Ops [first_op, first_op + op_count) run `iterations` times (strip mining, pipelining). Slices of
/// the body are `segment_bytes` long, in the last iteration `last_bytes`. If these two are equal,
/// slices may be shorter: parts of a segment, such as its tiles. Repeats are disjoint, in order,
/// and never nested. iterations_in_flight() in lowering.hpp says how far iterations overlap.
struct Repeat {
    std::uint32_t first_op = 0;
    std::uint32_t op_count = 0;
    std::uint64_t iterations = 0; ///< At least 2.
    std::uint64_t segment_bytes = 0;
    std::uint64_t last_bytes = 0; ///< 1 .. segment_bytes
    std::uint32_t rotation = 1;   ///< How many buffers `Stride::rotate` goes round, from 1 to
                                  ///< kRotationMax.

    bool operator==(const Repeat&) const = default;

    /// Returns the offset in iteration `k` of a slice that has `offset` in the first.
    std::uint64_t offset_at(std::uint64_t offset, Stride stride, std::uint64_t k) const {
        switch (stride) {
        case Stride::fixed: break;
        case Stride::advance: return offset + k * segment_bytes;
        case Stride::rotate: return offset + k % rotation * segment_bytes;
        }
        return offset;
    }

    /// Returns the length in iteration `k` of a slice that is `length` long in the first. Only
    /// whole segments are shorter in the last iteration.
    std::uint64_t length_at(std::uint64_t length, std::uint64_t k) const {
        return k + 1 == iterations && length == segment_bytes ? last_bytes : length;
    }
};

/// The ops of one rank.
///
/// The order of ops is an issue order: an engine may issue them one by one in this order, waiting
/// before each until its dependencies have completed, while messages already issued complete in the
/// background. `verify` proves that no deadlock is possible that way; verify.hpp lists the rules
/// that it proves for all ranks together.
struct Schedule {
    Collective collective = Collective::barrier;
    std::string algorithm; ///< The name in the literature, as in the planner's table.
    Rank rank = 0;
    Rank rank_count = 1;
    bool in_place = false;
    /// Whether peers name slices of this rank, or it names theirs, so that its buffers are made
    /// known to them first.
    bool exposed = false;
    bool flag_slots = false; ///< Whether the collective uses flag slots. The same on all ranks.
    /// Whether ranks help one another: a rank that waits may run an iteration of another rank's
    /// repeat that names both ranks, see helped.hpp. Ranks reach one another's buffers by the
    /// kernel. The same on all ranks.
    bool helped = false;
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    /// How many of the last bytes of an exposed rank's scratch no peer names; only the bytes before
    /// them have to lie where peers reach. Each slice lies in one of the two parts, in all
    /// iterations.
    std::uint64_t own_scratch_bytes = 0;
    std::uint64_t flag_slot_bytes = 0; ///< How many bytes this rank shares.
    std::uint64_t element_bytes = 1;
    /// The length of a staging buffer. If peers do not reach a buffer in place, they find its
    /// published byte x at byte x mod staging_buffer_bytes of a staging buffer; no published slice
    /// crosses a multiple of that. 0: nothing is published. The same on all ranks.
    std::uint64_t staging_buffer_bytes = 0;
    std::vector<Op> ops;
    std::vector<Dependency> dependencies;
    std::vector<Slice> operands;
    std::vector<Repeat> repeats;

    bool operator==(const Schedule&) const = default;

    /// Returns the offset of the part of scratch that no peer names. REQUIRES: own_scratch_bytes <=
    /// scratch_bytes.
    std::uint64_t own_scratch() const { return scratch_bytes - own_scratch_bytes; }
};

/// A range [first, last) of indexes.
struct IndexRange {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
};
/// Returns the range of Schedule::dependencies that holds the dependencies of op `index`.
IndexRange dependency_range(const Schedule& schedule, std::uint32_t index);

/// Returns the slices that `op` combines; none if it is no reduction.
inline std::span<const Slice> operands_of(const Schedule& schedule, const Op& op) {
    return std::span(schedule.operands)
        .subspan(op.first_operand, has_operands(op.kind) ? op.operand_count : 0);
}

/// Returns the slice that `slice`, of an op in the body of `repeat`, names in iteration `k`.
Slice at_iteration(const Slice& slice, const Repeat& repeat, std::uint64_t k);

/// Returns the same program with every Repeat written out, for verification and for pictures of
/// small cases. Takes memory in proportion to the iterations.
Schedule unroll(const Schedule& schedule);

std::string_view name(OpKind kind);
std::string_view name(BufferKind buffer);

} // namespace ucg::graph
