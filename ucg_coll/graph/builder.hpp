// Writes a Schedule op by op. Data dependencies are derived: an op depends on the earlier ops of
// this rank that wrote what it reads, or that read or wrote what it writes. Only an order that no
// slice shows (around signal and await) is given by hand.
//
// Building takes time O(n log n) and memory O(n) in the ops with their operands and dependencies.
// A builder writes one schedule and is not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ucg_coll/graph/access_index.hpp"
#include "ucg_coll/graph/schedule.hpp"

namespace ucg::graph {

/// An op's index in the schedule, or kNoOp for an op that was not needed (zero bytes).
using OpId = std::uint32_t;
inline constexpr OpId kNoOp = 0xffffffffU;

class Builder {
  public:
    /// Starts the schedule of `rank` for `request`. REQUIRES: validate(request, rank).ok().
    Builder(const Request& request, Rank rank, std::string_view algorithm);

    Rank rank() const { return schedule_.rank; }
    Rank rank_count() const { return schedule_.rank_count; }

    /// Slices of the own buffers.
    Slice input(std::uint64_t offset, std::uint64_t length) const;
    Slice output(std::uint64_t offset, std::uint64_t length) const;
    /// A new piece of scratch, aligned to a cache line.
    Slice scratch(std::uint64_t length);
    /// A new piece of scratch that peers name. These pieces should be taken first: any other piece
    /// that is taken before the last of them also lies in the memory that peers reach.
    Slice shared_scratch(std::uint64_t length);
    /// `rotation` pieces of scratch, one after the other, to be used with Stride::rotate in a
    /// repeat of segments of `segment_bytes`.
    Slice rotating_scratch(std::uint64_t segment_bytes, std::uint32_t rotation);

    /// Says that peers' schedules name slices of this rank's buffers.
    void expose() { schedule_.exposed = true; }

    /// Says that ranks help one another with this schedule, and reach one another's buffers by the
    /// kernel. REQUIRES: called on all ranks, or on none.
    void help() { schedule_.exposed = schedule_.helped = true; }

    /// Each of these adds one op; `after` names further ops that must complete first (kNoOp is
    /// skipped). With slices of zero length they add nothing and return kNoOp: both ends of a
    /// message know its length, so both skip it.
    using After = std::span<const OpId>;
    OpId send(Rank peer, Slice source, After after = {});
    OpId recv(Rank peer, Slice target, After after = {});
    /// Copies unless source and target are the same bytes.
    OpId copy(Slice source, Slice target, After after = {});
    /// The operands are in the order in which the operator combines them.
    OpId reduce(std::span<const Slice> operands, Slice target, After after = {});
    OpId signal(Rank peer, After after = {});
    OpId await(Rank peer, After after = {});
    /// As await(), for a signal that says that peers have read `published`, own input or output: a
    /// later op that writes it comes after this.
    OpId await_read(Rank peer, Slice published, After after = {});
    /// Lets peers read `source`, own input or output, once they know of it by a signal after this.
    /// REQUIRES: staging_buffer() was called.
    OpId publish(Slice source, After after = {});
    /// Says that the collective takes a turn of the flag slots. REQUIRES: called on all ranks, or
    /// on none.
    void flag_slots() { schedule_.flag_slots = true; }
    /// Shares `source`, an own slice that may be empty, with all peers. REQUIRES: flag_slots() was
    /// called; this is the only share, and outside repeats.
    OpId share(Slice source, After after = {});
    /// A part of what a peer shares, for copy and reduce, which wait until it is there. REQUIRES:
    /// flag_slots() was called; used outside repeats.
    static Slice flag_slot(Rank owner, std::uint64_t offset, std::uint64_t length) {
        return {offset, length, owner, BufferKind::flag_slot, Stride::fixed};
    }
    /// Waits until a peer has shared. REQUIRES: as flag_slots().
    OpId await_share(Rank peer, After after = {});
    /// Sets the length of the staging buffers that stand in for buffers which peers do not reach in
    /// place: no published slice may cross a multiple of it. Exposes this rank. REQUIRES: bytes >
    /// 0.
    void staging_buffer(std::uint64_t bytes);

    /// Opens a repeat that covers `total_bytes` in segments of `segment_bytes`. Until end_repeat(),
    /// slices handed in must be `first_segment` long, or parts of that if segment_bytes divides
    /// total_bytes; advance() or rotate() marks how they move. If there is only one segment, no
    /// Repeat is written and the ops stand as they are.
    /// REQUIRES: no repeat is open, total_bytes > 0, segment_bytes > 0.
    struct Segments {
        std::uint64_t count = 0;
        std::uint64_t first_segment = 0; ///< min(segment_bytes, total_bytes)
    };
    Segments begin_repeat(std::uint64_t total_bytes, std::uint64_t segment_bytes,
                          std::uint32_t rotation = 1);
    /// Within the open repeat, `op` comes after `earlier` of `distance` iterations before; either
    /// may stand first in the body. Does nothing if no repeat is written, or for kNoOp.
    /// REQUIRES: 1 <= distance <= 15.
    void after_earlier(OpId op, OpId earlier, std::uint32_t distance);
    void end_repeat();

    /// The finished schedule; the builder is empty afterwards.
    Schedule finish();

    /// How many earlier accesses and dependencies the builder has looked at so far in order to
    /// derive dependencies. Tests measure by it what building costs.
    std::uint64_t look_count() const { return look_count_; }

  private:
    struct Access {
        OpId op = kNoOp;
        Slice slice;
        bool writes = false;
    };
    struct Stretch { // The last accesses to one stretch of a buffer.
        std::uint64_t end = 0;
        OpId writer = kNoOp;
        std::vector<OpId> readers;
        /// Whose bodies' accesses are to be looked at, too: over all iterations several ops of one
        /// touch the same bytes, in no single one, and do not wait for one another.
        std::vector<std::uint32_t> repeats; ///< Into past_repeats_.
    };
    /// A repeat that has ended: what its body's ops touch over all iterations.
    struct PastRepeat {
        std::uint32_t first_op = 0;
        std::vector<Access> accesses;
        AccessIndex index; ///< Of these.
        std::vector<std::vector<Dependency>> dependencies;
    };
    static constexpr std::uint32_t kNoRepeat = 0xffffffffU;
    using History = std::map<std::uint64_t, Stretch>; // By start offset; stretches are disjoint.

    OpId add(Op op, std::span<const Slice> reads, const Slice* write, After after);
    void depend(std::vector<Dependency>& list, OpId on);
    void depend_on_earlier(OpId op, OpId earlier, std::uint32_t distance);
    void depend_on_history(std::vector<Dependency>& list, const Access& access);
    void depend_on_body(std::vector<Dependency>& list, const Access& access);
    void depend_on_earlier_iterations();
    /// Puts into `found_`, in order, the body's accesses that conflict with `later` when it runs
    /// `distance` iterations on.
    void find_conflicts(const Access& later, std::uint32_t distance);
    void find_overlaps(const Slice& later, Stride stride, std::uint32_t distance);
    void store(std::uint32_t op, std::span<const Dependency> list);
    void depend_on_repeat(std::vector<Dependency>& list, const Access& access,
                          const PastRepeat& repeat);
    void record(const Access& access, std::uint32_t repeat = kNoRepeat);
    void record_repeat();
    static void split(History& history, std::uint64_t offset);
    History& history(const Slice& slice) { return histories_[{slice.owner, slice.buffer}]; }
    Slice covered(Slice slice) const;
    std::uint64_t moves_by(Stride stride) const;
    bool overlap(const Slice& later, const Slice& earlier, std::uint32_t distance) const;
    bool overlap_rotating(const Slice& later, const Slice& earlier, std::uint32_t distance) const;
    bool conflict(const Access& later, const Access& earlier, std::uint32_t distance) const;
    Slice checked(Slice slice) const;

    Schedule schedule_;
    std::uint64_t shared_scratch_end_ = 0;
    std::map<std::pair<Rank, BufferKind>, History> histories_;
    std::vector<OpId> noted_;  // By op: the last op whose dependencies include it.
    std::vector<OpId> behind_; // By op: the last op that waits for it by way of another.
    std::vector<PastRepeat> past_repeats_;
    std::uint64_t look_count_ = 0;
    // The open repeat: its accesses, and its ops' dependencies until they are complete.
    std::vector<Access> body_;
    AccessIndex body_index_;
    std::vector<AccessIndex::Id> found_; // Into body_.
    std::unordered_set<std::uint64_t> earlier_noted_;
    std::vector<std::vector<Dependency>> body_dependencies_;
    Repeat repeat_;
    std::uint64_t repeat_total_ = 0;
    bool in_repeat_ = false;
};

/// The same slice, which moves from iteration to iteration as Stride says.
inline Slice advance(Slice slice) {
    slice.stride = Stride::advance;
    return slice;
}
inline Slice rotate(Slice slice) {
    slice.stride = Stride::rotate;
    return slice;
}

} // namespace ucg::graph
