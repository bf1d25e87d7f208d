// A ring of messages from one process to another: the unit of which all shared-memory messages are
// made. It lies in memory leased by the receiver.
//
// Threads: exactly one sender and one receiver, in two processes or two threads.
// Layout (RingShape): the lines are the receiver's credit, the sender's FIN for messages of the
// other direction with the words for copying those cooperatively, and `depth` slots of one cache
// line each. Elsewhere lie `depth` short payload buffers and at least as many long ones, to which
// the sender gives pages when it first needs them. Invariants, argued in PROTOCOL.md: a cache line
// has one writer, but for the words of cooperative copies; a slot and its buffers belong to the
// sender from the receiver's release of fragment n - depth to the sender's publication of fragment
// n, and to the receiver otherwise; memory of zeros is an empty ring.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "shm/backed_buffers.hpp"
#include "shm/cooperative_copy.hpp"
#include "shm/copy.hpp"
#include "shm/copy_pace.hpp"
#include "shm/core_distance.hpp"
#include "shm/marks.hpp"
#include "shm/peer_copy.hpp"
#include "shm/ring_layout.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/copy.hpp"

namespace ucg::shm {

/// The sender's end of a ring.
class RingSender {
  public:
    RingSender() = default;
    /// `ring` and `buffers` are where the receiver's lines and buffers are mapped here, cache-line
    /// aligned. `reverse` are the own lines, for messages from that receiver.
    RingSender(std::byte* ring, std::byte* buffers, std::byte* reverse, const RingShape& shape)
        : credit_(reinterpret_cast<RingCredit*>(ring)),
          fin_(reinterpret_cast<const RingFin*>(reverse + sizeof(RingCredit))),
          cooperative_(
              reinterpret_cast<CooperativeCopy*>(reverse + sizeof(RingCredit) + sizeof(RingFin))),
          slots_(reinterpret_cast<RingSlot*>(ring + RingShape::head_bytes())), buffers_(buffers),
          shape_(shape), backed_(shape) {}

    /// Returns whether fewer than `slots` slots are free. Reads the receiver's credit only when the
    /// last value read says so.
    bool full(std::uint64_t slots = 1) {
        if (sent_ + slots - released_ <= shape_.depth) {
            return false;
        }
        released_ = credit_->released.load(std::memory_order_acquire);
        return sent_ + slots - released_ > shape_.depth;
    }
    /// Returns whether fewer slots are free than the fragment needs that begins at byte `moved` of
    /// the begun message.
    bool full_for(std::uint64_t message_bytes, std::uint64_t moved) {
        return full(slots_of(shape_, fragment_bytes(shape_, sent_, message_bytes, moved, cut_)));
    }

    /// Sends a message that fits into a line. REQUIRES: !full(), bytes <= kInlineBytes.
    void send_line(std::uint64_t tag, const std::byte* data, std::uint64_t bytes) {
        RingSlot& slot = slots_[sent_ & (shape_.depth - 1)];
        if (sent_ < shape_.depth) {
            map_around(&slot);
        }
        copy_short(slot.payload.data(), data, bytes);
        publish(slot, tag, bytes);
    }

    /// From now on the round of buffers begins anew whenever the receiver has read all: the first
    /// buffers have pages and are in caches, into which all buffers of the ranks of a processor do
    /// not fit.
    void reuse_buffers() { reuses_ = true; }

    /// Must be called before the first fragment of a message is sent. `back(data, bytes)` gives
    /// pages to a part of the buffers and returns whether it could; if not, the message goes in
    /// shorter fragments.
    template <typename Back>
    void begin(std::uint64_t message_bytes, Back back) {
        cut_ = message_bytes > kWholeBytes && distance_.far() ? kCutLong : 0;
        if (reuses_ && sent_ % kRunSlots == 0 && message_bytes > kInlineBytes && emptied()) {
            first_ = sent_;
        }
        if (backed_.suffice(message_bytes)) [[likely]] {
            return;
        }
        cut_ = backed_.prepare(place(), message_bytes, cut_,
                               [&](std::uint64_t offset, std::uint64_t bytes) {
                                   return back(buffers_ + offset, bytes);
                               });
    }

    /// Sends the fragment of the begun message that begins at byte `moved`, and returns its length.
    /// `data` is the message's start. REQUIRES: !full_for(message_bytes, moved).
    std::uint64_t send(std::uint64_t tag, const std::byte* data, std::uint64_t message_bytes,
                       std::uint64_t moved) {
        RingSlot& slot = slots_[sent_ & (shape_.depth - 1)];
        if (sent_ < shape_.depth) {
            map_around(&slot);
        }
        const std::uint64_t length = fragment_bytes(shape_, sent_, message_bytes, moved, cut_);
        if (length <= kInlineBytes) {
            copy_short(slot.payload.data(), data + moved, length);
        } else {
            std::byte* const buffer = buffers_ + shape_.buffer_offset(place(), length);
            if (length < kPacedBytesMin) {
                copy_bytes(buffer, data + moved, length);
            } else {
                copy_at_pace(pace_, buffer, data + moved, length);
            }
            slot.set_place(place()); // Not before: the receiver polls the line meanwhile.
        }
        publish(slot, tag, message_bytes | cut_, slots_of(shape_, length));
        if (message_bytes <= kWholeBytes && length > kInlineBytes) {
            prefetch_for_write(buffers_ + shape_.buffer_offset(place(), length), length);
        }
        if (message_bytes >= timed_bytes_min_ && moved + length == message_bytes) {
            time_credit(message_bytes);
        }
        return length;
    }

    /// Returns whether this end has given pages to any of the receiver's buffers.
    bool has_backed() const { return backed_.any(); }

    /// Returns whether the receiver has said that it can read this process's memory.
    bool receiver_reads() {
        receiver_reads_ =
            receiver_reads_ || credit_->reads_sender.load(std::memory_order_acquire) != 0;
        return receiver_reads_;
    }

    /// From now on the sender measures, with messages of at least so many bytes, how far the
    /// receiver's core is: near if a read of its credit takes less than `near_ns`.
    void learn_distance(std::uint64_t bytes_min, std::uint32_t near_ns) {
        timed_bytes_min_ = bytes_min;
        distance_ = CoreDistance(near_ns);
    }
    /// Returns whether the receiver's core shares no cache with the own one, as far as was
    /// measured.
    bool receiver_far() const { return distance_.far(); }

    /// Returns whether so many messages await their FIN that no mark is left, by which the receiver
    /// could say that it reads one more later.
    bool all_marked() const { return marks_.all_taken(); }

    /// Sends the RTS of a message that stays at `data` until taken() of the mark that this returns.
    /// REQUIRES: !full(), !all_marked(), and `data` lies in a segment or receiver_reads().
    std::uint64_t send_rts(std::uint64_t tag, const RemoteBytes& data, std::uint64_t message_bytes,
                           const CopyOffer& help) {
        const Elsewhere elsewhere = {data, marks_.take(sent_ + 1)};
        RingSlot& slot = slots_[sent_ & (shape_.depth - 1)];
        std::memcpy(slot.payload.data(), &elsewhere, sizeof(elsewhere));
        slot.tag = tag;
        slot.bytes = message_bytes | kElsewhere | (help.mapped ? kSenderHelps : 0) |
                     (help.anywhere ? kSenderWrites : 0);
        ++sent_;
        slot.sequence.store(sent_, std::memory_order_release);
        if (message_bytes >= timed_bytes_min_) {
            time_credit(message_bytes);
        }
        return elsewhere.mark;
    }

    /// Returns the words for copying cooperatively the first message that awaits its FIN.
    CooperativeCopy& cooperative() { return *cooperative_; }

    /// Returns the fragment number of the RTS of the message with that mark.
    std::uint64_t sequence(std::uint64_t mark) const { return marks_.sequence(mark); }

    /// Returns whether the receiver has read the message with that mark, whose FIN has come then;
    /// if so, frees the mark.
    bool taken(std::uint64_t mark) {
        const bool read = passed(mark) && !remembered(mark);
        if (read) {
            marks_.free(mark);
        }
        return read;
    }

    /// Returns whether the receiver has said that it reads no private memory of this process any
    /// more. Afterwards the answer of taken() is final for private messages whose RTS was sent
    /// before. Those that the receiver has not read have to be sent by the ring; it says that it
    /// has taken them when they come.
    bool declined() const { return fin_->declined.load(std::memory_order_acquire) != 0; }

    /// Returns whether the receiver has read the message, or has remembered it to read later ones
    /// first.
    bool passed(std::uint64_t mark) const {
        const std::uint64_t taken = fin_->taken.load(std::memory_order_acquire);
        return (taken & ~RingFin::kTakenSlowly) >= marks_.sequence(mark);
    }

    /// Returns whether the receiver has said with its last FIN that the kernel's copies out of this
    /// process's memory are slow.
    bool taken_slowly() const {
        return (fin_->taken.load(std::memory_order_relaxed) & RingFin::kTakenSlowly) != 0;
    }

  private:
    static constexpr std::uint64_t kPrefetch = 1; ///< So many slots ahead of the next.
    /// Of so many short or long messages one is timed.
    static constexpr unsigned kTimedPeriod = 16;
    static constexpr unsigned kTimedPeriodLong = 4;
    static constexpr unsigned kTimedAgain = 3; ///< After a read that told nothing.
    static constexpr std::uint64_t kTimedLongBytes = 64 << 10;

    /// Returns the place in the round of buffers of the next fragment.
    std::uint64_t place() const { return sent_ - first_; }

    /// Returns whether the receiver has said that it has read all. It does so once for several
    /// slots.
    bool emptied() {
        released_ = credit_->released.load(std::memory_order_acquire);
        return released_ == sent_;
    }

    /// Times a read of the credit, now and then; it tells how far the receiver is if that has
    /// written the credit since the last read. Such a read may cost a long message some per cent,
    /// so there are few.
    void time_credit(std::uint64_t message_bytes) {
        const bool is_long = message_bytes >= kTimedLongBytes;
        if (++untimed_ < (is_long ? kTimedPeriodLong : kTimedPeriod)) {
            return;
        }
        std::uint64_t released = 0;
        const std::int64_t ns =
            time_of([&] { released = credit_->released.load(std::memory_order_acquire); });
        if (released != released_) { // Else the line came from the own cache.
            distance_.read_in(ns);
            released_ = released;
            untimed_ = 0;
        } else {
            untimed_ -= kTimedAgain; // Not with each message.
        }
    }

    /// Returns whether the receiver will read the message later. REQUIRES: passed(mark).
    bool remembered(std::uint64_t mark) const {
        const auto& word = fin_->remembered[mark / RingFin::kMarkBits];
        return (word.load(std::memory_order_acquire) & mark_bit(mark)) != 0;
    }

    /// Publishes the fragment in `slot` and goes on by so many slots. Of a run only the first slot
    /// is written and read.
    void publish(RingSlot& slot, std::uint64_t tag, std::uint64_t bytes, std::uint64_t slots = 1) {
        slot.tag = tag;
        slot.bytes = bytes;
        slot.sequence.store(sent_ + 1, std::memory_order_release);
        sent_ += slots;
        // Stores leave the store buffer in order, and it holds some hundred at most: without a
        // prefetch, a sender of one message after the other would wait for one line after the
        // other.
        if (sent_ + kPrefetch - released_ < shape_.depth) {
            prefetch_for_write(&slots_[(sent_ + kPrefetch) & (shape_.depth - 1)]);
        }
    }

    RingCredit* credit_ = nullptr;
    const RingFin* fin_ = nullptr;
    CooperativeCopy* cooperative_ = nullptr;
    RingSlot* slots_ = nullptr;
    std::byte* buffers_ = nullptr;
    RingShape shape_;
    std::uint64_t sent_ = 0;     ///< Slots, in all.
    std::uint64_t released_ = 0; ///< The last credit that was read.
    std::uint64_t first_ = 0;    ///< The slot number at which the round of buffers began anew.
    bool reuses_ = false;
    std::uint64_t cut_ = 0; ///< kCut flags of the message that is being sent.
    BackedBuffers backed_;
    CopyPace pace_;
    bool receiver_reads_ = false;
    std::uint64_t timed_bytes_min_ = ~std::uint64_t{0};
    unsigned untimed_ = 0; ///< Messages since the last timed read.
    CoreDistance distance_;
    Marks marks_;
};

/// A message that the receiver remembers, to read it later.
struct ReadLater {
    std::uint64_t sequence = 0; ///< Of its RTS; 0: there is no message.
    std::uint64_t mark = 0;
};

/// The receiver's end of a ring.
class RingReceiver {
  public:
    RingReceiver() = default;
    /// `ring` and `buffers` are in the own memory, cache-line aligned. `reverse` is where the
    /// sender's lines, for messages of this receiver, are mapped here.
    RingReceiver(std::byte* ring, const std::byte* buffers, std::byte* reverse,
                 const RingShape& shape)
        : credit_(reinterpret_cast<RingCredit*>(ring)),
          fin_(reinterpret_cast<RingFin*>(reverse + sizeof(RingCredit))),
          cooperative_(
              reinterpret_cast<CooperativeCopy*>(reverse + sizeof(RingCredit) + sizeof(RingFin))),
          slots_(reinterpret_cast<RingSlot*>(ring + RingShape::head_bytes())), buffers_(buffers),
          shape_(shape) {}

    /// Returns whether the next fragment or RTS is there.
    bool ready() const { return head().sequence.load(std::memory_order_acquire) == received_ + 1; }

    /// Returns whether the next fragment is there and is the whole of a message of that name and
    /// length, in a line.
    bool holds(std::uint64_t name, std::uint64_t bytes) const {
        const RingSlot& slot = head();
        return slot.sequence.load(std::memory_order_acquire) == received_ + 1 && slot.tag == name &&
               slot.bytes == bytes && bytes <= kInlineBytes;
    }

    /// Return tag and length of the message whose fragment or RTS is next. REQUIRES: ready().
    std::uint64_t tag() const { return head().tag; }
    std::uint64_t message_bytes() const { return head().bytes & ~kMessageFlags; }
    /// Returns the fragment number of the next fragment or RTS, whether or not that is there.
    std::uint64_t sequence() const { return received_ + 1; }

    /// Returns where the message is, if an RTS is at the head; none if the message comes by the
    /// ring. REQUIRES: ready().
    std::optional<RemoteBytes> elsewhere() const {
        if ((head().bytes & kElsewhere) == 0) {
            return std::nullopt;
        }
        return rts().data;
    }

    /// Returns what the sender of the message at the head offers. REQUIRES: elsewhere() has a
    /// value.
    CopyOffer help() const {
        return {(head().bytes & kSenderHelps) != 0, (head().bytes & kSenderWrites) != 0};
    }

    /// Returns the words for copying cooperatively the message whose RTS is at the head, or comes
    /// next.
    CooperativeCopy& cooperative() { return *cooperative_; }

    /// Tells the sender that its memory can be read.
    void offer_reading() { credit_->reads_sender.store(1, std::memory_order_release); }

    /// Frees the slot of the RTS at the head and sends the FIN, which says that the message was
    /// read: from now on the sender may change it, and even free all memory that it shares with
    /// this rank. REQUIRES: ready(), elsewhere() has a value.
    void take() {
        release();
        taken_ = received_;
        fin_->taken.store(taken_ | slowly_, std::memory_order_release);
    }

    /// Frees the slot of the RTS at the head, whose message the caller will read later; it then
    /// calls take() with what this returns. REQUIRES: as take().
    ReadLater remember() {
        const ReadLater message = {received_ + 1, rts().mark};
        // This comes before any later message is said to be taken. Release: the store may be the
        // first that shows the sender another mark of the word clear, and a relaxed store would not
        // be in the release sequence of the store that cleared that one.
        std::atomic<std::uint64_t>& word = marks(message); // Written by this end alone.
        word.store(word.load(std::memory_order_relaxed) | mark_bit(message.mark),
                   std::memory_order_release);
        release();
        return message;
    }

    /// Sends the FIN of a remembered message, which was read: the sender may change it. REQUIRES:
    /// remember() returned `message`.
    void take(const ReadLater& message) {
        if (taken_ < message.sequence) { // Those before it were read, or are remembered.
            taken_ = message.sequence;
            fin_->taken.store(taken_ | slowly_, std::memory_order_release);
        }
        std::atomic<std::uint64_t>& word = marks(message);
        word.store(word.load(std::memory_order_relaxed) & ~mark_bit(message.mark),
                   std::memory_order_release);
    }

    /// From now on FINs say whether the kernel's copies out of the sender's memory are slow.
    void taking_slowly(bool slowly) { slowly_ = slowly ? RingFin::kTakenSlowly : 0; }

    /// Says that this end reads no private memory of the sender any more. Private messages whose
    /// RTS has come and that are not taken will come by the ring; they must be remembered until
    /// then, and taken when they come.
    void decline() { fin_->declined.store(1, std::memory_order_release); }

    /// Returns the next fragment, which begins at byte `moved` of its message, in its buffer, where
    /// it may be read until pass(). Empty if it travels in a line. REQUIRES: ready(), no
    /// elsewhere().
    std::span<const std::byte> fragment(std::uint64_t moved) const {
        const RingSlot& slot = head();
        const std::uint64_t length = next_bytes(slot, moved);
        if (length <= kInlineBytes) {
            return {};
        }
        return {buffer(slot, length), length};
    }

    /// Frees the slots of the next fragment, which has that length and has been read. REQUIRES:
    /// ready().
    void pass(std::uint64_t fragment_bytes) { release(slots_of(shape_, fragment_bytes)); }

    /// Copies the next fragment to byte `moved` of `data`, frees its slot and returns its length.
    /// REQUIRES: ready().
    std::uint64_t receive(std::byte* data, std::uint64_t moved) {
        const RingSlot& slot = head();
        const std::uint64_t length = next_bytes(slot, moved);
        if (length <= kInlineBytes) {
            copy_short(data + moved, slot.payload.data(), length);
        } else {
            copy_bytes(data + moved, buffer(slot, length), length);
        }
        release(slots_of(shape_, length));
        return length;
    }

  private:
    const RingSlot& head() const { return slots_[received_ & (shape_.depth - 1)]; }
    Elsewhere rts() const {
        Elsewhere elsewhere;
        std::memcpy(&elsewhere, head().payload.data(), sizeof(elsewhere));
        return elsewhere;
    }
    std::atomic<std::uint64_t>& marks(const ReadLater& message) {
        return fin_->remembered[message.mark / RingFin::kMarkBits];
    }
    const std::byte* buffer(const RingSlot& slot, std::uint64_t length) const {
        const std::byte* const buffer = buffers_ + shape_.buffer_offset(slot.place(), length);
        prefetch_short_read(buffer, length);
        return buffer;
    }
    std::uint64_t next_bytes(const RingSlot& slot, std::uint64_t moved) const {
        return fragment_bytes(shape_, received_, slot.bytes & ~kMessageFlags, moved,
                              slot.bytes & kCut);
    }

    /// Gives slots back. The credit is stored once for several slots, since each store takes its
    /// line from a sender that polls it. The sender is never stuck because the rest was not stored:
    /// when it waits, most of the ring is unread.
    void release(std::uint64_t slots = 1) {
        received_ += slots;
        if (received_ - credited_ >= shape_.depth / kCreditsPerRing) {
            credited_ = received_;
            credit_->released.store(received_, std::memory_order_release);
        }
        // If the sender is ahead, the transfer of the next lines overlaps with the work on this
        // message.
        __builtin_prefetch(&slots_[(received_ + kPrefetch) & (shape_.depth - 1)]);
    }

    static constexpr std::uint32_t kCreditsPerRing = 4;
    static constexpr std::uint64_t kPrefetch = 2; ///< So many slots ahead of the next.

    RingCredit* credit_ = nullptr;
    RingFin* fin_ = nullptr;
    CooperativeCopy* cooperative_ = nullptr;
    const RingSlot* slots_ = nullptr;
    const std::byte* buffers_ = nullptr;
    RingShape shape_;
    std::uint64_t received_ = 0; ///< Slots, in all.
    std::uint64_t credited_ = 0; ///< The last credit that was stored.
    std::uint64_t taken_ = 0;    ///< The last RingFin::taken that was stored,
    std::uint64_t slowly_ = 0;   ///< without this: RingFin::kTakenSlowly or 0.
};

} // namespace ucg::shm
