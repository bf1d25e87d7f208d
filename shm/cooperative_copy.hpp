// A long message that both of its ends copy: the receiver pulls pieces of it while the sender, who
// has nothing to do but wait for the FIN, pushes others. Two processors copy twice as fast as one;
// a sender that is busy elsewhere takes no piece, and the receiver copies them all.
//
// The words lie in the sender's memory (PROTOCOL.md, "Messages that both ends copy"). Memory of
// zeros is an agreement on nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "shm/peer_copy.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// A part of a message, in bytes.
struct Piece {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

/// Pieces are whole pages, which the kernel looks up one by one. An end takes half of what is left,
/// so that neither waits long for the other's last piece, but no less than what makes up for a
/// system call, and no more than what lets other peers wait.
inline constexpr std::uint64_t kPieceUnit = 4096;
inline constexpr std::uint64_t kPieceMin = 32 << 10;
inline constexpr std::uint64_t kPieceMax = 1 << 20;

/// How much of what is left an end takes: half, or all of it where the other end is known to copy
/// something else.
enum class Share : std::uint8_t { half, all };

/// Returns the length in units of the next piece of a message that has so many units left.
inline std::uint64_t piece_units(std::uint64_t units_left, Share share) {
    const std::uint64_t units = share == Share::all ? units_left : units_left - units_left / 2;
    return std::min(std::clamp(units, kPieceMin / kPieceUnit, kPieceMax / kPieceUnit), units_left);
}

/// Receivers take pieces from the message's start, senders from its end: where messages of one
/// length follow one another, each piece is mostly copied by the same processor, whose cache has
/// it.
enum class CopyEnd : std::uint8_t { receiver, sender };

/// By what a message is known at both of its ends.
struct MessageName {
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
};

/// The words by which two ranks agree on who copies which piece, for one message at a time of one
/// direction. `sequence` is the fragment number of the message's RTS in its ring.
class alignas(2 * kCacheLine) CooperativeCopy {
  public:
    /// Fragment numbers are told apart modulo this.
    static constexpr std::uint64_t kSequences = 1 << 15;

    // For the receiver.

    /// Returns whether a message of that length is worth two ends, and the counts can hold it.
    static bool serves(std::uint64_t message_bytes) {
        return message_bytes > kPieceMin && message_bytes / kPieceUnit < kCountMask;
    }

    /// Opens message `sequence`, if it is the one of that name, which goes to `target`: both ends
    /// may claim pieces of it. REQUIRES: the message opened before is over.
    void open(std::uint64_t sequence, const MessageName& name, const RemoteBytes& target) {
        tag_.store(name.tag, std::memory_order_release);
        bytes_.store(name.bytes, std::memory_order_release);
        target_ = target;
        pushed_.store(0, std::memory_order_relaxed);
        claims_.store(opened(sequence), std::memory_order_release);
    }

    /// Lets nobody claim pieces of message `sequence` any more. It must not be left open, or a
    /// later message with the same number modulo kSequences would be taken for it. Returns how many
    /// bytes the sender had claimed; 0 if the words are another message's by now.
    std::uint64_t close(std::uint64_t sequence, std::uint64_t message_bytes) {
        std::uint64_t claims = claims_.load(std::memory_order_acquire);
        do {
            if ((claims & ~kBothCounts) != opened(sequence)) {
                return 0;
            }
        } while (!claims_.compare_exchange_weak(claims, 0, std::memory_order_acq_rel,
                                                std::memory_order_acquire));
        const std::uint64_t units = claims >> kCountBits & kCountMask;
        const std::uint64_t past_end = round_up(message_bytes, kPieceUnit) - message_bytes;
        return units == 0 ? 0 : units * kPieceUnit - past_end;
    }

    /// What the sender has done with the pieces that it claimed.
    struct Pushed {
        std::uint64_t bytes = 0; ///< Of all pieces with which it is done.
        bool failed = false;     ///< It could not write some of these.
    };
    Pushed pushed() const {
        const std::uint64_t word = pushed_.load(std::memory_order_acquire);
        return {word & ~kFailed, (word & kFailed) != 0};
    }

    // For either end.

    /// Claims the next piece of message `sequence` for the caller to copy and returns it; none when
    /// the message is not open, another one is, or all is claimed.
    std::optional<Piece> claim(CopyEnd end, std::uint64_t sequence, const MessageName& name,
                               Share share = Share::half) {
        const std::uint64_t message_bytes = name.bytes;
        const std::uint64_t units = (message_bytes + kPieceUnit - 1) / kPieceUnit;
        std::uint64_t claims = claims_.load(std::memory_order_acquire);
        for (;;) {
            const std::uint64_t front = claims & kCountMask;
            const std::uint64_t back = claims >> kCountBits & kCountMask;
            if ((claims & ~kBothCounts) != opened(sequence) || front + back >= units ||
                !is_for(name)) {
                return std::nullopt;
            }
            const std::uint64_t more = piece_units(units - front - back, share);
            const std::uint64_t claim = end == CopyEnd::receiver ? more : more << kCountBits;
            if (claims_.compare_exchange_weak(claims, claims + claim, std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
                const std::uint64_t first = end == CopyEnd::receiver ? front : units - back - more;
                const std::uint64_t offset = first * kPieceUnit;
                return Piece{offset, std::min(more * kPieceUnit, message_bytes - offset)};
            }
        }
    }

    /// Returns whether the receiver has said where message `sequence` goes.
    bool is_open(std::uint64_t sequence, const MessageName& name) const {
        return (claims_.load(std::memory_order_acquire) & ~kBothCounts) == opened(sequence) &&
               is_for(name);
    }

    // For the sender, between a claim of its and the end of that piece.

    const RemoteBytes& target() const { return target_; }
    /// Says that a claimed piece of so many bytes is done; `ok`: all of them have been written.
    void piece_pushed(std::uint64_t bytes, bool ok) {
        const std::uint64_t sum = pushed_.load(std::memory_order_relaxed) + bytes;
        pushed_.store(ok ? sum : sum | kFailed, std::memory_order_release);
    }

  private:
    static constexpr unsigned kCountBits = 24;
    static constexpr std::uint64_t kCountMask = (1U << kCountBits) - 1;
    static constexpr std::uint64_t kBothCounts = (std::uint64_t{1} << 2 * kCountBits) - 1;
    static_assert(kSequences == std::uint64_t{1} << (63 - 2 * kCountBits));
    static constexpr std::uint64_t kFailed = std::uint64_t{1} << 63;

    /// Returns `claims_` of a message of which nothing is claimed: the fragment number modulo
    /// kSequences, and a bit that tells it from zeros. The remainder is enough, since the receiver
    /// closes each message that it opened before the sender learns that it is over, and a sender
    /// between its load and its swap has sent no more RTS than the ring has slots.
    static std::uint64_t opened(std::uint64_t sequence) {
        return (sequence << 1 | 1) << 2 * kCountBits;
    }

    bool is_for(const MessageName& name) const {
        return tag_.load(std::memory_order_acquire) == name.tag &&
               bytes_.load(std::memory_order_acquire) == name.bytes;
    }

    std::atomic<std::uint64_t> claims_; ///< opened(); units that the sender and receiver claimed.
    std::atomic<std::uint64_t> pushed_; ///< Bytes that the sender is done with; kFailed.
    std::atomic<std::uint64_t> tag_;
    std::atomic<std::uint64_t> bytes_;
    RemoteBytes target_;
};

} // namespace ucg::shm
