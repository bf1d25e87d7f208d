// Internal to ucg_coll/graph: the state that the steps of verify share.
//
// An OpRef is an op's number among the ops of all ranks, with repeats written out. Each op is two
// events, its start and its completion; the steps after `order_events` go through the events in one
// topological order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ucg_coll/graph/interval_map.hpp"
#include "ucg_coll/graph/verify.hpp"

namespace ucg::graph::proof {

using OpRef = std::uint32_t;
inline constexpr OpRef kNone = 0xffffffffU;

/// The start or the completion of an op.
struct Event {
    OpRef op = kNone;
    bool completes = false;
};

/// What is known of the accesses to one stretch of a buffer: the last write, and the reads since,
/// as a list in World::readers. Lists share their tails, so stretches can be cut without copying.
struct Accesses {
    OpRef writer = kNone;
    std::uint32_t readers = kNone; ///< Index into World::readers of the latest read.

    Accesses skip(std::uint64_t) const { return *this; }
    bool continued_by(const Accesses& next, std::uint64_t) const {
        return writer == next.writer && readers == next.readers;
    }
};
struct Reader {
    OpRef op = kNone;
    std::uint32_t next = kNone;
};

/// For each op of a rewritten schedule, the op of the original schedule that it stands for. Both
/// have their repeats written out.
using Origins = std::vector<std::uint32_t>;

/// Like with_messages() of flag_slots.hpp, but also appends to `origins` those of each rank's ops.
std::vector<Schedule> with_messages(std::span<const Schedule> schedules,
                                    std::vector<Origins>& origins);

/// What is proved, and what the steps have found out so far.
struct World {
    std::span<const Schedule> subject;   ///< The schedules that verify() was given, for messages.
    std::vector<Origins> origins;        ///< By rank; empty: `originals` has the ops of `subject`.
    std::span<const Schedule> originals; ///< The form of `subject` that is being proved.
    std::span<const Request> requests;
    SharesMemory shares_memory = nullptr;
    const void* context = nullptr;
    const SwitchTree* network = nullptr;

    std::vector<Schedule> unrolled;              ///< `originals` that have repeats, written out.
    std::vector<const Schedule*> programs;       ///< By rank: its schedule without repeats.
    std::vector<OpRef> base;                     ///< By rank: its first op; one more at the end.
    std::vector<Rank> rank_of;                   ///< By op: its rank.
    std::vector<OpRef> match;                    ///< By op: the other end of a message or signal.
    std::vector<Event> events;                   ///< A topological order of all events.
    std::vector<std::uint32_t> completed;        ///< By op: where in `events` it completes.
    std::vector<IntervalMap<Accesses>> accesses; ///< By place().
    std::vector<Reader> readers;                 ///< Items of the lists of Accesses::readers.

    Rank rank_count() const { return static_cast<Rank>(originals.size()); }
    std::uint32_t op_count() const { return base.back(); }
    const Request& request(Rank rank) const {
        return requests.size() == 1 ? requests[0] : requests[static_cast<std::size_t>(rank)];
    }
    const Schedule& program(Rank rank) const { return *programs[static_cast<std::size_t>(rank)]; }
    const Schedule& program_of(OpRef op) const { return program(rank_of[op]); }
    std::uint32_t index(OpRef op) const { return op - base[static_cast<std::size_t>(rank_of[op])]; }
    const Op& op(OpRef ref) const { return program_of(ref).ops[index(ref)]; }
    std::span<const Dependency> dependencies(OpRef ref) const;
    std::span<const Slice> operands(OpRef ref) const;
    /// Returns the op of the same rank that a dependency of `ref` names.
    OpRef depended(OpRef ref, Dependency dependency) const {
        return ref - index(ref) + dependency.op;
    }

    /// Returns the index of a buffer among all ranks' buffers.
    static std::size_t place(Rank rank, BufferKind buffer) {
        return static_cast<std::size_t>(rank) * kBufferKinds.size() +
               static_cast<std::size_t>(buffer);
    }
    static std::size_t place(const Slice& slice) { return place(slice.owner, slice.buffer); }

    /// An op of `subject`, and, if it lies in a repeat, an iteration.
    struct Origin {
        std::uint64_t op = 0;
        std::optional<std::uint64_t> iteration;
    };
    /// Returns the op of `subject`, and its iteration, that `ref` stands for.
    Origin origin(OpRef ref) const;
    /// Returns "op 4 iteration 2 (recv from 1 scratch[0:8])".
    std::string describe_op(OpRef ref) const;
    /// Returns "rank 3, " and then the text of describe_op().
    std::string describe(OpRef ref) const;
};

inline bool is_message(OpKind kind) {
    return has_peer(kind) && !is_order_only(kind);
}
inline bool is_event(OpKind kind) {
    return is_order_only(kind);
}
inline bool receives(OpKind kind) {
    return has_peer(kind) && !is_outgoing(kind);
}

std::uint64_t buffer_bytes(const Schedule& schedule, BufferKind buffer);

/// Returns invalid_argument with the message "rank 3, op 4 (...): reason".
Status reject(const World& world, OpRef op, std::string_view reason);

/// The steps of verify, in this order but for the notes; each relies on those before.
Status check_flag_slots(const World& world); ///< Before any other but check_staging_buffers.
Status check_helped(const World& world); ///< After check_structure; before repeats are written out.
Status check_structure(const Schedule& schedule, const Request& request, Rank rank);
Status check_ops(World& world);
Status match_messages(World& world);
Status order_events(World& world);
Status check_order(World& world);
Status check_lifetime(World& world);
Status check_contention(World& world); ///< Does nothing without a network.
Status check_meaning(World& world);
Status check_barrier(const World& world); ///< Part of check_meaning.

/// Bytes [begin, end) of a rank's output that the collective defines: the contributions of ranks
/// [first, last), each from byte `position` on, combined in this order. A single rank's
/// contribution is copied.
struct Expected {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Rank first = 0;
    Rank last = 0;
    std::uint64_t position = 0;
};

/// Bytes [begin, end) of a buffer that hold a rank's contribution, from byte `position` on, when
/// the collective begins.
struct Given {
    BufferKind buffer = BufferKind::input;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t position = 0;
};

/// Returns ok if the ranks' requests fit together, else invalid_argument. REQUIRES: the requests
/// are valid; nothing else of `world` is used.
Status check_agreement(const World& world);

/// The specification of each collective: what `rank` contributes, and what its output must be.
std::vector<Given> given(const World& world, Rank rank);
std::vector<Expected> expected(const World& world, Rank rank);

} // namespace ucg::graph::proof
