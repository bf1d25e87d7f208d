// Matching within a group: which arrival belongs to which posted receive. Nothing here knows UCX,
// so that it can be tested without it.
//
// Invariant of a RankLink: no posted receive has the key of an early arrival.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/transport.hpp"
#include "ucg_coll/transport/ucx/wire.hpp"

namespace ucg::transport::ucx {

struct Peer;

/// Identifies a message between two ranks of a group.
struct Key {
    std::uint32_t sequence = 0;
    std::uint16_t step = 0;
    std::uint16_t lane = 0; ///< lane_of() the message.

    bool operator==(const Key&) const = default;
};

inline Key key_of(const Message& message) {
    return {message.sequence, message.step, lane_of(message)};
}
inline Key key_of(const Envelope& envelope) {
    return {envelope.sequence, envelope.step, envelope.lane};
}

/// Do the two keys belong to one collective for which the ranks have different plans?
inline bool contradict(const Key& one, const Key& other) {
    return one.sequence == other.sequence && plan_of(one.lane) != plan_of(other.lane);
}

/// Gives a message back to its group. The store is a release: whoever drives the worker ends
/// messages of all groups, whose own threads look at the state under other locks.
inline void end(Message& message, const Status& outcome) {
    const MessageState state = outcome.ok() ? MessageState::done : MessageState::failed;
    shared_state(message).store(static_cast<std::uint8_t>(state), std::memory_order_release);
}

/// An intrusive list in order of arrival. T has `T* next`, and key_of(const T&).
template <typename T>
class Fifo {
  public:
    bool empty() const { return head_ == nullptr; }

    void push(T& item) {
        item.next = nullptr;
        (head_ == nullptr ? head_ : tail_->next) = &item;
        tail_ = &item;
    }

    /// Returns the item with this key; null if there is none.
    T* find(const Key& key) {
        T* item = head_;
        while (item != nullptr && !(key_of(*item) == key)) {
            item = item->next;
        }
        return item;
    }

    T* front() { return head_; }

    T* pop() {
        T* item = head_;
        if (item != nullptr) {
            head_ = item->next;
            item->next = nullptr;
        }
        return item;
    }

    /// Returns the first item that contradicts the key; null if none does.
    T* contradicting(const Key& key) {
        T* item = head_;
        while (item != nullptr && !contradict(key_of(*item), key)) {
            item = item->next;
        }
        return item;
    }

    /// Takes out and returns the item with this key, or returns null. In most programs it is the
    /// first.
    T* take(const Key& key) {
        T* before = nullptr;
        for (T* item = head_; item != nullptr; before = item, item = item->next) {
            if (key_of(*item) == key) {
                (before == nullptr ? head_ : before->next) = item->next;
                tail_ = tail_ == item ? before : tail_;
                item->next = nullptr;
                return item;
            }
        }
        return nullptr;
    }

  private:
    T* head_ = nullptr;
    T* tail_ = nullptr;
};

/// Something that came before its receive was posted: eager data (a copy), or a rendezvous that
/// waits for our answer.
struct Early {
    Early* next = nullptr;
    Envelope envelope;
    std::uint64_t bytes = 0;
    void* rendezvous = nullptr;         ///< UCP's handle of the data; null for eager data.
    std::unique_ptr<std::byte[]> large; ///< Eager data that does not fit into `small`.
    std::array<std::byte, kEarlyShortBytes> small;

    std::span<const std::byte> data() const {
        return {large ? large.get() : small.data(), static_cast<std::size_t>(bytes)};
    }
};
static_assert(sizeof(Early) <= kEarlyBytes);
inline Key key_of(const Early& early) {
    return key_of(early.envelope);
}

/// Recycles early arrivals, so that a program whose ranks drift apart allocates only at first. Of
/// what a peer sent while this rank was late, which may be 1700 records for each group and peer, no
/// more than 2 * kKept stay when they are released.
class EarlyPool {
  public:
    /// Returns a copy of eager data.
    Early* hold(const Envelope& envelope, const void* data, std::size_t bytes);
    /// Returns a record of a rendezvous that is to be answered later.
    Early* hold_rendezvous(const Envelope& envelope, void* rendezvous, std::size_t bytes);
    void release(Early* early);

  private:
    static constexpr std::size_t kKept = 4096; ///< Of 192 bytes each.

    Early* take();
    void shrink();
    std::vector<std::unique_ptr<Early>> all_;
    Fifo<Early> free_;
    std::size_t free_count_ = 0;
};

struct GroupState;

/// A receive of a long message that a peer has posted.
struct Ready {
    Key key;
    std::uint64_t bytes = 0;
};

/// One group's relation to one peer rank; made at its first use.
///
/// Credits count the bytes that eager messages may occupy at the receiver (credit_cost), from the
/// beginning, modulo 2^32: `sent` and `acknowledged` are for messages to the peer, `consumed` and
/// `reported` for messages from it. A count that comes late or twice changes nothing.
struct RankLink {
    RankLink(GroupState& owner, Rank peer_rank, std::uint32_t id_there, Peer& the_peer)
        : group(owner), rank(peer_rank), group_there(id_there), peer(the_peer) {}

    /// May an eager message of this cost be sent now?
    bool has_credit(std::uint32_t cost, std::uint32_t window) const {
        return sent - acknowledged + cost <= window;
    }

    void acknowledge(std::uint32_t released) {
        const bool newer = static_cast<std::int32_t>(released - acknowledged) > 0;
        const bool possible = static_cast<std::int32_t>(sent - released) >= 0;
        if (newer && possible) {
            acknowledged = released;
        }
    }

    /// Notes that the peer is ready to receive a message of ours of so many bytes. The peer may say
    /// so twice.
    void note_ready(const Key& key, std::uint64_t bytes) {
        const auto is_same = [&](const Ready& each) { return each.key == key; };
        if (std::none_of(ready.begin(), ready.end(), is_same)) {
            ready.push_back({key, bytes});
        }
    }

    /// Returns how many bytes the peer is ready to receive of the message that is about to be sent,
    /// and forgets it; empty if the peer is not ready.
    std::optional<std::uint64_t> take_ready(const Key& key) {
        const auto found = std::find_if(ready.begin(), ready.end(),
                                        [&](const Ready& each) { return each.key == key; });
        if (found == ready.end()) {
            return std::nullopt;
        }
        const std::uint64_t bytes = found->bytes;
        ready.erase(found);
        return bytes;
    }

    /// Is the peer ready for a message that belongs to the same collective, but to another plan?
    bool ready_contradicts(const Key& key) const {
        return std::any_of(ready.begin(), ready.end(),
                           [&](const Ready& each) { return contradict(each.key, key); });
    }

    GroupState& group;
    const Rank rank;
    const std::uint32_t group_there; ///< The peer's number for the group.
    Peer& peer;
    Fifo<Message> posted;     ///< Receives whose data has not arrived.
    Fifo<Message> unsent;     ///< Sends that wait for the connection.
    Fifo<Early> early;        ///< Arrivals whose receives are not posted.
    Fifo<Message> held;       ///< Long sends whose receives the peer has not posted.
    std::vector<Ready> ready; ///< Receives at the peer of long messages that are not posted here.
    std::uint32_t sent = 0;
    std::uint32_t acknowledged = 0;
    std::uint32_t consumed = 0;
    std::uint32_t reported = 0;
    bool credit_due = false; ///< It is in the list of links that owe a credit message.
};

/// A rank of a group: not served, or a process, or, from its first use on, the link to it, which
/// names the process. In one word: all groups of a process together have many ranks.
class Member {
  public:
    void set(Peer& peer) { word_ = reinterpret_cast<std::uintptr_t>(&peer); }
    void set(RankLink& link) { word_ = reinterpret_cast<std::uintptr_t>(&link) | kIsLink; }

    /// Returns null where there is no link yet.
    RankLink* link() const {
        return (word_ & kIsLink) == 0 ? nullptr : reinterpret_cast<RankLink*>(word_ - kIsLink);
    }
    /// Returns null where the rank is not served.
    Peer* peer() const {
        const RankLink* const used = link();
        return used == nullptr ? reinterpret_cast<Peer*>(word_) : &used->peer;
    }

  private:
    static constexpr std::uintptr_t kIsLink = 1; ///< No RankLink or Peer begins at an odd address.

    std::uintptr_t word_ = 0;
};

/// By rank: the number by which the rank's process knows a group. Where processes have made as many
/// groups each, their numbers are the same, and are kept once.
class GroupIds {
  public:
    GroupIds() = default;
    explicit GroupIds(std::span<const std::uint32_t> ids) : first_(ids.front()) {
        if (std::adjacent_find(ids.begin(), ids.end(), std::not_equal_to<>()) != ids.end()) {
            each_.assign(ids.begin(), ids.end());
        }
    }

    std::uint32_t operator[](Rank rank) const {
        return each_.empty() ? first_ : each_[static_cast<std::size_t>(rank)];
    }

  private:
    std::uint32_t first_ = 0;
    std::vector<std::uint32_t> each_; ///< Empty where all are like the first.
};

/// One group's state in this process.
struct GroupState {
    std::uint32_t id = 0; ///< This process's number for it; each has its own.
    Rank self = kNoRank;
    GroupIds ids;
    std::vector<Member> members;                  ///< Index: rank.
    std::vector<std::unique_ptr<RankLink>> links; ///< All that there are, in order of first use.
    std::uint64_t in_flight = 0;                  ///< Messages that UCP holds.
    unsigned completed = 0; ///< Messages that ended since the last progress().
    bool abandoned = false; ///< Nothing is sent or received any more.
    Status status;

    /// Ends a message that was posted, and counts it.
    void complete(Message& message, const Status& outcome) {
        ++completed;
        if (!outcome.ok() && status.ok()) {
            status = outcome;
        }
        end(message, outcome);
    }
};

} // namespace ucg::transport::ucx
