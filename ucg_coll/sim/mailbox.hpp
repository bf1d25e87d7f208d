// Internal to ucg_coll/sim: pairs sends with receives. The k-th send from a to b meets the k-th
// recv at b from a, whichever is issued first; signals and messages are counted apart. Only the
// first of two is kept until the second comes, so memory is in what is outstanding.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/sim/time.hpp"

namespace ucg::sim {

using MessageId = std::uint32_t;
inline constexpr MessageId kNoMessage = 0xffffffffU;

/// What a message that is copied once takes, beyond its announcement and its receipt; nothing, if
/// `alone` is 0.
struct Copying {
    Picoseconds alone = 0;     ///< By one of its ends, or
    Picoseconds half = 0;      ///< by both, each a half.
    Picoseconds contended = 0; ///< For so long the way to the memory is taken, if others want it.
    Picoseconds issue = 0;     ///< Of the receipt,
    Picoseconds flight = 0;    ///< until it is there.
    Rank sender = kNoRank;
    MessageId receipt = kNoMessage;
    bool by_both = false;
};

/// A message, from the first of its two ops to the moment it is taken in.
struct Message {
    static constexpr Picoseconds kUnknown = -1;

    Picoseconds arrival = kUnknown;
    Picoseconds take = 0;
    bool through_ring = false;
    Picoseconds gap = 0;   ///< If so: after the message before,
    Picoseconds pass = 0;  ///< for so long it keeps the way into its receiver,
    Picoseconds drain = 0; ///< whose processor copies it out for so long, as it comes.
    Copying copying;
    std::uint64_t bytes = 0;
    Rank waiter = kNoRank;       ///< Who can do nothing before it arrives.
    MessageId next = kNoMessage; ///< In its lane, or in the list of free ones.
    static constexpr std::uint32_t kNoTransfer = 0xffffffffU;
    std::uint32_t transfer = kNoTransfer; ///< Into Trace::transfers; a receipt is none.
};

enum class End : std::uint8_t { send, recv };

class Mailbox {
  public:
    struct Lane {
        Rank from = 0;
        Rank to = 0;
        bool is_signal = false;
    };

    /// The message that the next op of this end belongs to. Has the other end been here before?
    struct Match {
        MessageId id = kNoMessage;
        bool completes = false;
    };
    Match match(const Lane& lane, End end, std::uint64_t bytes);

    /// A message of no lane: a receipt.
    MessageId receipt() { return add(0); }

    Message& operator[](MessageId id) { return messages_[id]; }
    const Message& operator[](MessageId id) const { return messages_[id]; }
    void release(MessageId id);

    /// A lane of which one end has not been matched; the first by rank.
    std::optional<Lane> unmatched() const;

  private:
    struct Pending {
        MessageId first = kNoMessage;
        MessageId last = kNoMessage;
        End end = End::send;
    };
    /// Ranks have 31 bits.
    static std::uint64_t key(const Lane& lane) {
        return static_cast<std::uint64_t>(lane.from) << 32 |
               static_cast<std::uint64_t>(lane.to) << 1 | (lane.is_signal ? 1U : 0U);
    }
    MessageId add(std::uint64_t bytes);

    std::vector<Message> messages_;
    std::unordered_map<std::uint64_t, Pending> pending_;
    MessageId free_ = kNoMessage;
};

} // namespace ucg::sim
