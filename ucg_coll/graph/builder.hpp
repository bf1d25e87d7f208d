// Writes a Schedule op by op. The builder derives data dependencies: an op depends on the earlier
// ops of this rank that wrote what it reads, or that read or wrote what it writes. Only an order
// that slices do not show (around signal and await) is given by hand.
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

/// An op's index in the schedule, or kNoOp for an op that was left out since it has no bytes.
using OpId = std::uint32_t;
inline constexpr OpId kNoOp = 0xffffffffU;

class Builder {
  public:
    /// Starts the schedule of `rank` for `request`. REQUIRES: validate(request, rank).ok().
    Builder(const Request& request, Rank rank, std::string_view algorithm);

    Rank rank() const { return schedule_.rank; }
    Rank rank_count() const { return schedule_.rank_count; }

    /// Return slices of this rank's own input and output.
    Slice input(std::uint64_t offset, std::uint64_t length) const;
    Slice output(std::uint64_t offset, std::uint64_t length) const;
    /// Allocates a piece of scratch, aligned to a cache line.
    Slice scratch(std::uint64_t length);
    /// Allocates a piece of scratch that peers name. These pieces should be allocated first: any
    /// other piece that is allocated before the last of them also lies in the memory that peers
    /// reach.
    Slice shared_scratch(std::uint64_t length);
    /// Allocates `rotation` pieces of scratch of `segment_bytes` each, one after the other, and
    /// returns the first with Stride::rotate, for a repeat of segments of that length.
    Slice rotating_scratch(std::uint64_t segment_bytes, std::uint32_t rotation);

    /// Says that peers' schedules name slices of this rank's buffers.
    void expose() { schedule_.exposed = true; }

    /// Says that ranks help one another with this schedule (helped.hpp), and reach one another's
    /// buffers by the kernel. REQUIRES: called on all ranks, or on none.
    void help() { schedule_.exposed = schedule_.helped = true; }

    /// Further ops that must complete before an op starts. kNoOp is skipped.
    using After = std::span<const OpId>;

    /// Each function from here to share() adds one op and returns its index. If send(), recv(),
    /// copy(), reduce() or publish() is given slices of no bytes, it adds nothing and returns
    /// kNoOp: both ends of a message know its length, so both leave it out.
    OpId send(Rank peer, Slice source, After after = {});
    OpId recv(Rank peer, Slice target, After after = {});
    /// Adds nothing, and returns kNoOp, if source and target are the same slice.
    OpId copy(Slice source, Slice target, After after = {});
    /// Combines the operands in the order given. A single operand is copied.
    OpId reduce(std::span<const Slice> operands, Slice target, After after = {});
    OpId signal(Rank peer, After after = {});
    OpId await(Rank peer, After after = {});
    /// Like await(), for a signal by which `peer` says that it has read `published`, a slice of
    /// this rank's input or output: later ops that write `published` depend on this one.
    OpId await_read(Rank peer, Slice published, After after = {});
    /// Lets peers read `source`, a slice of this rank's input or output, after a signal that
    /// depends on this op. REQUIRES: staging_buffer() was called.
    OpId publish(Slice source, After after = {});
    /// Says that the collective uses the flag slots. REQUIRES: called on all ranks, or on none.
    void flag_slots() { schedule_.flag_slots = true; }
    /// Shares `source`, one of this rank's own slices, which may be empty, with all ranks of its
    /// host. REQUIRES: flag_slots() was called; this is the only share, and outside repeats.
    OpId share(Slice source, After after = {});
    /// Returns a part of what `owner` shares, as an operand of copy() and reduce(), which wait
    /// until the bytes have been shared. REQUIRES: flag_slots() was called; used outside repeats.
    static Slice flag_slot(Rank owner, std::uint64_t offset, std::uint64_t length) {
        return {offset, length, owner, BufferKind::flag_slot, Stride::fixed};
    }
    /// Adds an op that waits until `peer` has shared. REQUIRES: flag_slots() was called; outside
    /// repeats.
    OpId await_share(Rank peer, After after = {});
    /// Sets the length of the staging buffers that peers read instead of a buffer which they do not
    /// reach in place: no published slice may cross a multiple of it. Exposes this rank. REQUIRES:
    /// bytes > 0.
    void staging_buffer(std::uint64_t bytes);

    struct Segments {
        std::uint64_t count = 0;
        std::uint64_t first_segment = 0; ///< In bytes: min(segment_bytes, total_bytes).
    };
    /// Opens a repeat that covers `total_bytes` in segments of `segment_bytes`. Until end_repeat(),
    /// slices of ops must be `first_segment` long, or parts of that if segment_bytes divides
    /// total_bytes; advance() or rotate() says how they move. If there is only one segment, no
    /// Repeat is written, and the ops are written as they are.
    /// REQUIRES: no repeat is open, total_bytes > 0, segment_bytes > 0.
    Segments begin_repeat(std::uint64_t total_bytes, std::uint64_t segment_bytes,
                          std::uint32_t rotation = 1);
    /// Says that `op` of the open repeat depends on `earlier`, an op of the same repeat, as it runs
    /// `distance` iterations before; either op may come first in the body. Does nothing if no
    /// repeat is written, or for kNoOp. REQUIRES: 1 <= distance <= 15.
    void after_earlier(OpId op, OpId earlier, std::uint32_t distance);
    void end_repeat();

    /// Returns the finished schedule; the builder is empty afterwards.
    Schedule finish();

    /// Returns how many earlier accesses and dependencies the builder has looked at so far in order
    /// to derive dependencies, by which tests measure the cost of building.
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
        std::vector<OpId> readers; ///< Since that write.
        /// Repeats, as indexes into past_repeats_, of which all accesses must be looked at, too: in
        /// different iterations several ops of a body may touch the same bytes without waiting for
        /// one another.
        std::vector<std::uint32_t> repeats;
    };
    /// A repeat that has ended, with what its body's ops touch over all iterations.
    struct PastRepeat {
        std::uint32_t first_op = 0;
        std::vector<Access> accesses;
        AccessIndex index;                                 ///< Of `accesses`.
        std::vector<std::vector<Dependency>> dependencies; ///< By op of the body.
    };
    static constexpr std::uint32_t kNoRepeat = 0xffffffffU;
    using History = std::map<std::uint64_t, Stretch>; // By start offset; stretches are disjoint.

    OpId add(Op op, std::span<const Slice> reads, const Slice* write, After after);
    void depend(std::vector<Dependency>& list, OpId on);
    void depend_on_earlier(OpId op, OpId earlier, std::uint32_t distance);
    void depend_on_history(std::vector<Dependency>& list, const Access& access);
    void depend_on_body(std::vector<Dependency>& list, const Access& access);
    void depend_on_earlier_iterations();
    /// Sets `found_` to the accesses of the body, in order, that conflict with `later` when `later`
    /// runs `distance` iterations after them.
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
    std::vector<OpId> noted_;  // By op: the last op that depends on it.
    std::vector<OpId> behind_; // By op: the last op that waits for it through a dependency.
    std::vector<PastRepeat> past_repeats_;
    std::uint64_t look_count_ = 0;
    // The open repeat: the accesses of its body, and the dependencies of its ops until all are
    // known.
    std::vector<Access> body_;
    AccessIndex body_index_;
    std::vector<AccessIndex::Id> found_;              // Indexes into body_.
    std::unordered_set<std::uint64_t> earlier_noted_; // Dependencies on earlier iterations.
    std::vector<std::vector<Dependency>> body_dependencies_;
    Repeat repeat_;
    std::uint64_t repeat_total_ = 0;
    bool in_repeat_ = false;
};

/// Return `slice` with Stride::advance or Stride::rotate.
inline Slice advance(Slice slice) {
    slice.stride = Stride::advance;
    return slice;
}
inline Slice rotate(Slice slice) {
    slice.stride = Stride::rotate;
    return slice;
}

} // namespace ucg::graph
