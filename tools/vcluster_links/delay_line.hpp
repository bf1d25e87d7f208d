// Frames on their way along a link: first in, first out, each with the time at which it is due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "ucg_coll/base/base.hpp"

namespace ucg::tools {

/// A ring of a fixed number of bytes. A frame is read directly into it and written directly out of
/// it; none is split at the ring's end. Memory is touched only as far as frames have lain in it.
class DelayLine {
  public:
    /// The bytes that room() returns. More than any frame that a TAP device passes.
    static constexpr std::size_t kFrameMax = 1 << 16;

    struct Frame {
        std::uint64_t due_ns = 0;
        std::span<const std::byte> bytes;
    };

    /// REQUIRES: capacity >= bytes_for(kFrameMax).
    explicit DelayLine(std::size_t capacity)
        : ring_(new std::byte[capacity]), capacity_(capacity), end_(capacity) {
        UCG_ASSERT(capacity >= bytes_for(kFrameMax));
    }

    /// Returns the bytes of the ring that a frame of this length takes.
    static constexpr std::size_t bytes_for(std::size_t frame) {
        return sizeof(Head) + (frame + alignof(Head) - 1) / alignof(Head) * alignof(Head);
    }

    bool empty() const { return count_ == 0; }

    /// Returns kFrameMax bytes for the next frame; empty if the ring is full. Valid until push() or
    /// pop().
    std::span<std::byte> room() {
        constexpr std::size_t kNeed = bytes_for(kFrameMax);
        if (count_ == 0) { // Starts over, in memory that is still in a cache.
            first_ = next_ = 0;
            wrapped_ = false;
        }
        if (!wrapped_ && capacity_ - next_ < kNeed) {
            if (first_ < kNeed) {
                return {};
            }
            end_ = next_;
            next_ = 0;
            wrapped_ = true;
        }
        if (wrapped_ && first_ - next_ < kNeed) {
            return {};
        }
        return {ring_.get() + next_ + sizeof(Head), kFrameMax};
    }

    /// Appends a frame, the first `bytes` of what room() returned, which is due at `due_ns`.
    void push(std::size_t bytes, std::uint64_t due_ns) {
        UCG_ASSERT(bytes <= kFrameMax);
        const Head head{due_ns, bytes};
        std::memcpy(ring_.get() + next_, &head, sizeof(head));
        next_ += bytes_for(bytes);
        ++count_;
    }

    /// Returns the oldest frame; valid until pop(). REQUIRES: not empty.
    Frame front() const {
        const Head head = head_of_first();
        return {head.due_ns, {ring_.get() + first_ + sizeof(Head), head.bytes}};
    }

    void pop() {
        first_ += bytes_for(head_of_first().bytes);
        --count_;
        if (wrapped_ && first_ == end_) {
            first_ = 0;
            wrapped_ = false;
        }
    }

  private:
    struct Head {
        std::uint64_t due_ns;
        std::uint64_t bytes;
    };

    Head head_of_first() const {
        UCG_ASSERT(count_ > 0);
        Head head;
        std::memcpy(&head, ring_.get() + first_, sizeof(head));
        return head;
    }

    std::unique_ptr<std::byte[]> ring_;
    std::size_t capacity_;
    std::size_t end_;       ///< Where the frames before the ring's start end, once wrapped.
    std::size_t first_ = 0; ///< The oldest frame.
    std::size_t next_ = 0;  ///< Where the next frame will lie.
    std::size_t count_ = 0;
    bool wrapped_ = false; ///< Whether next_ has started over and first_ has not.
};

} // namespace ucg::tools
