// Internal to ucg_coll/sim: pairs sends with receives. The k-th send from a to b meets the k-th
// recv at b from a, whichever is issued first; signals and messages are counted apart. The first of
// the two is kept until the second comes, so memory is in proportion to what is outstanding.
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

/// The copy of a message that is copied once, and its FIN. If `alone` is 0, the message is copied
/// in and out.
struct Copying {
    Picoseconds alone = 0;     ///< The time of the copy if one end makes it.
    Picoseconds half = 0;      ///< The time of the copy if each end makes half of it.
    Picoseconds contended = 0; ///< How long it occupies the way to the memory that others may want.
    Picoseconds issue = 0;     ///< The processor time of sending the FIN.
    Picoseconds flight = 0;    ///< The time of the FIN on its way.
    Rank sender = kNoRank;
    MessageId fin = kNoMessage;
    bool by_both = false;
};

/// A message, from the first of its two ops to the moment it is taken in.
struct SimulatedMessage {
    static constexpr Picoseconds kUnknown = -1;

    Picoseconds arrival = kUnknown;
    Picoseconds take = 0;
    bool through_ring = false;
    // If it goes through a ring:
    Picoseconds gap = 0;   ///< The time between it and the next message on the way in.
    Picoseconds pass = 0;  ///< How long it occupies the way into its receiver.
    Picoseconds drain = 0; ///< How long the receiver's processor copies it out, as it comes.
    Copying copying;
    std::uint64_t bytes = 0;
    Rank waiter = kNoRank;       ///< The rank that can do nothing before the message arrives.
    MessageId next = kNoMessage; ///< The next message in its lane, or in the list of free ones.
    static constexpr std::uint32_t kNoTransfer = 0xffffffffU;
    std::uint32_t transfer = kNoTransfer; ///< Index into Trace::transfers; a FIN has none.
};

enum class MessageEnd : std::uint8_t { send, recv };

/// The messages whose send and receive have not both been issued, or that have not been taken in.
class Mailbox {
  public:
    /// What is paired in order: the messages, or the signals, from one rank to another.
    struct Lane {
        Rank from = 0;
        Rank to = 0;
        bool is_signal = false;
    };

    /// The message that an op belongs to.
    struct Match {
        MessageId id = kNoMessage;
        bool completes = false; ///< Whether the op of the other end has been issued before.
    };
    /// Returns the message that the next op of this end of the lane belongs to, which is made with
    /// `bytes` if this end comes first.
    Match match(const Lane& lane, MessageEnd end, std::uint64_t bytes);

    /// Returns a new message that is in no lane: a FIN.
    MessageId fin() { return add(0); }

    SimulatedMessage& operator[](MessageId id) { return messages_[id]; }
    const SimulatedMessage& operator[](MessageId id) const { return messages_[id]; }
    void release(MessageId id);

    /// Returns a lane with ops that the other end has not matched: the first by rank.
    std::optional<Lane> unmatched() const;

  private:
    /// The list of a lane's messages of which only one end's op has been issued.
    struct Pending {
        MessageId first = kNoMessage;
        MessageId last = kNoMessage;
        MessageEnd end = MessageEnd::send;
    };
    /// Returns the lane as one number; ranks have 31 bits.
    static std::uint64_t key(const Lane& lane) {
        return static_cast<std::uint64_t>(lane.from) << 32 |
               static_cast<std::uint64_t>(lane.to) << 1 | (lane.is_signal ? 1U : 0U);
    }
    MessageId add(std::uint64_t bytes);

    std::vector<SimulatedMessage> messages_;
    std::unordered_map<std::uint64_t, Pending> pending_;
    MessageId free_ = kNoMessage;
};

} // namespace ucg::sim
