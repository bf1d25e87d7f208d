// Messages in the order in which they were posted, linked through the messages themselves.
#pragma once

#include <cstdint>

#include "shm/cooperative_copy.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// Returns a message's name within one ordered pair of ranks, as one word to compare.
inline std::uint64_t tag_of(const Message& message) {
    return (std::uint64_t{message.sequence} << 32) | (std::uint64_t{message.step} << 16) |
           lane_of(message);
}

inline shm::MessageName name_of(const Message& message) {
    return {tag_of(message), message.bytes};
}

/// Returns whether the two tags belong to one collective, of which the ranks have different plans.
inline bool contradict(std::uint64_t tag, std::uint64_t other) {
    return tag >> 32 == other >> 32 &&
           plan_of(static_cast<std::uint16_t>(tag)) != plan_of(static_cast<std::uint16_t>(other));
}

/// A queue of posted messages. Does not own them.
class MessageQueue {
  public:
    bool empty() const { return first_ == nullptr; }
    Message& front() { return *first_; }
    bool begins_with(const Message& message) const { return first_ == &message; }

    void push(Message& message) {
        message.next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = &message;
        last_ = &message;
    }

    /// Puts the message before all others.
    void put_back(Message& message) {
        message.next = first_;
        last_ = first_ == nullptr ? &message : last_;
        first_ = &message;
    }

    /// Unlinks the first message and returns it. REQUIRES: !empty().
    Message& pop() {
        Message& message = *first_;
        first_ = message.next;
        return message;
    }

    /// Calls `look` with the tags of all messages.
    template <typename Look>
    void each_tag(Look look) const {
        for (const Message* at = first_; at != nullptr; at = at->next) {
            look(tag_of(*at));
        }
    }
    /// Returns whether a message of the queue contradict()s the tag.
    bool contradicts(std::uint64_t tag) const {
        bool found = false;
        each_tag([&](std::uint64_t own) { found = found || contradict(own, tag); });
        return found;
    }

    /// Unlinks the oldest message of that name, nearly always the first of all; null if none.
    Message* take(std::uint64_t tag) {
        Message* before = nullptr;
        for (Message* at = first_; at != nullptr; before = at, at = at->next) {
            if (tag_of(*at) == tag) {
                (before == nullptr ? first_ : before->next) = at->next;
                last_ = at == last_ ? before : last_;
                return at;
            }
        }
        return nullptr;
    }

    /// Unlinks all messages of which `ends(message)` is true; returns how many.
    template <typename Ends>
    unsigned remove_if(Ends ends) {
        unsigned removed = 0;
        Message* before = nullptr;
        for (Message* at = first_; at != nullptr;) {
            Message* const next = at->next; // The owner may post it again at once.
            if (ends(*at)) {
                (before == nullptr ? first_ : before->next) = next;
                last_ = at == last_ ? before : last_;
                ++removed;
            } else {
                before = at;
            }
            at = next;
        }
        return removed;
    }

  private:
    Message* first_ = nullptr;
    Message* last_ = nullptr; ///< Meaningless when empty.
};

} // namespace ucg::transport
