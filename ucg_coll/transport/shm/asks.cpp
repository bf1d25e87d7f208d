#include "ucg_coll/transport/shm/asks.hpp"

#include <algorithm>

#include "ucg_coll/base/copy.hpp"

namespace ucg::transport {

/// Begins, continues or ends the copy of these bytes.
Asks::Answer Asks::step(const Place& place, std::byte* here, std::uint64_t bytes, bool writes,
                        bool& asked) {
    if (!busy_) {
        if (room_.bytes() == 0) {
            auto leased = heap_.lease(kRoomBytes);
            if (!leased.ok()) {
                return Answer::no_memory;
            }
            room_ = std::move(*leased);
        }
        busy_ = true;
        writes_ = writes;
        place_ = place;
        done_ = 0;
        ask(here, bytes);
        asked = true;
        return Answer::later;
    }
    if (place != place_ || writes != writes_ ||
        own_ask().answered.load(std::memory_order_acquire) != word_) {
        return Answer::later;
    }
    if (!writes) {
        copy_bytes(here + done_, room_.data(), piece_);
    }
    done_ += piece_;
    if (done_ == bytes) {
        busy_ = false;
        return Answer::yes;
    }
    ask(here, bytes);
    asked = true;
    return Answer::later;
}

/// Asks for the next piece. Stores the word last: a rank that acquires it finds the rest. The count
/// in the asked rank's head makes it look.
void Asks::ask(const std::byte* here, std::uint64_t bytes) {
    piece_ = std::min(bytes - done_, kRoomBytes);
    if (writes_) {
        copy_bytes(room_.data(), here + done_, piece_);
    }
    Ask& ask = own_ask();
    ask.offset = place_.offset + done_;
    ask.bytes = piece_;
    ask.place = room_.offset();
    ask.sequence = place_.sequence;
    ask.buffer = static_cast<std::uint16_t>(place_.buffer);
    ask.writes = writes_ ? 1 : 0;
    word_ = ((word_ >> kIndexBits) + 1) << kIndexBits | place_.index;
    ask.word.store(word_, std::memory_order_release);
    sites_[place_.index].head->asks.fetch_add(1, std::memory_order_release);
}

/// Answers an ask: copies between the own buffer and the asker's memory in `segment`.
void Asks::copy(const Ask& ask, std::byte* buffer, std::byte* segment) {
    std::byte* const there = segment + ask.place;
    if (ask.writes != 0) {
        copy_bytes(buffer + ask.offset, there, ask.bytes);
    } else {
        copy_bytes(there, buffer + ask.offset, ask.bytes);
    }
}

} // namespace ucg::transport
