// Messages whose RTS was taken out of the ring before they were read. Their senders await a FIN, so
// each is in one place until that is sent: among the early arrivals while no receive is posted for
// it, then among the remembered ones; or among the declined ones, if it has to come by the ring.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "shm/ring.hpp"
#include "ucg_coll/transport/shm/message_queue.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// A posted message that is to be read in its sender's memory.
struct Remembered {
    Message* message = nullptr;
    shm::RemoteBytes elsewhere;
    shm::ReadLater later;
};

/// The remembered messages that are posted, in the order of their posts. Only of the first may some
/// bytes have been read.
class RememberedMessages {
  public:
    bool empty() const { return messages_.empty(); }
    const Remembered& first() const { return messages_.front(); }

    void push(const Remembered& message) { messages_.push_back(message); }
    void pop() { messages_.erase(messages_.begin()); }

    /// Removes those in the sender's private memory, of which nothing counts as read any more;
    /// calls `removed(remembered)` for each.
    template <typename Removed>
    void erase_private(Removed removed) {
        for (auto at = messages_.begin(); at != messages_.end();) {
            if (at->elsewhere.place != 0) {
                ++at;
                continue;
            }
            const Remembered each = *at;
            at = messages_.erase(at);
            each.message->moved = 0;
            removed(each);
        }
    }

    /// Fails and removes all; returns how many.
    unsigned fail_all() {
        for (const Remembered& each : messages_) {
            each.message->state = MessageState::failed;
        }
        const auto failed = static_cast<unsigned>(messages_.size());
        messages_.clear();
        return failed;
    }

  private:
    std::vector<Remembered> messages_;
};

/// Messages that will come by the ring, since the kernel does not let this end read them. When one
/// of them begins to come, its mark may be used again.
class DeclinedMessages {
  public:
    bool empty() const { return messages_.empty(); }
    /// Adds a message that the ring remembers by `later`.
    void add(std::uint64_t tag, const shm::ReadLater& later) { messages_.push_back({tag, later}); }
    /// Adds the message whose RTS is at the ring's head, which the ring remembers from now on.
    void add_head(shm::RingReceiver& ring) {
        const std::uint64_t tag = ring.tag();
        add(tag, ring.remember());
    }

    /// Removes the message of that tag, and returns by what the ring remembers it; none if it was
    /// not declined.
    std::optional<shm::ReadLater> take(std::uint64_t tag) {
        const auto found = std::find_if(messages_.begin(), messages_.end(),
                                        [tag](const Declined& each) { return each.tag == tag; });
        if (found == messages_.end()) {
            return std::nullopt;
        }
        const shm::ReadLater later = found->later;
        messages_.erase(found);
        return later;
    }

  private:
    struct Declined {
        std::uint64_t tag;
        shm::ReadLater later;
    };
    std::vector<Declined> messages_;
};

} // namespace ucg::transport
