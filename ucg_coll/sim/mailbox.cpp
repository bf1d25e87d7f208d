#include "ucg_coll/sim/mailbox.hpp"

#include <algorithm>

namespace ucg::sim {

MessageId Mailbox::add(std::uint64_t bytes) {
    MessageId id = free_;
    if (id == kNoMessage) {
        id = static_cast<MessageId>(messages_.size());
        UCG_ASSERT(id != kNoMessage);
        messages_.emplace_back();
    } else {
        free_ = messages_[id].next;
        messages_[id] = {};
    }
    messages_[id].bytes = bytes;
    return id;
}

Mailbox::Match Mailbox::match(const Lane& lane, MessageEnd end, std::uint64_t bytes) {
    const auto [entry, added] = pending_.try_emplace(key(lane));
    Pending& pending = entry->second;
    if (!added && pending.end != end) {
        const MessageId id = pending.first;
        pending.first = messages_[id].next;
        messages_[id].next = kNoMessage;
        if (pending.first == kNoMessage) {
            pending_.erase(entry);
        }
        return {id, true};
    }
    const MessageId id = add(bytes);
    if (added) {
        pending = {id, id, end};
    } else {
        messages_[pending.last].next = id;
        pending.last = id;
    }
    return {id, false};
}

void Mailbox::release(MessageId id) {
    messages_[id].next = free_;
    free_ = id;
}

std::optional<Mailbox::Lane> Mailbox::unmatched() const {
    // The least key: the map's own order differs between libraries.
    const auto least =
        std::min_element(pending_.begin(), pending_.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    if (least == pending_.end()) {
        return std::nullopt;
    }
    const std::uint64_t key = least->first;
    return Lane{static_cast<Rank>(key >> 32), static_cast<Rank>((key & 0xffffffffU) >> 1),
                (key & 1U) != 0};
}

} // namespace ucg::sim
