// Which buffers of a ring have pages. Buffers get theirs when a message first needs them, so that a
// ring of short messages takes little memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "shm/ring_layout.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// The sender's record of which of a ring's buffers have pages. A long one may have only its first
/// page.
class BackedBuffers {
  public:
    BackedBuffers() = default;
    explicit BackedBuffers(const RingShape& shape)
        : shape_(shape), per_bit_{per_bit(shape.depth, kBits), per_bit(shape.depth, kBits),
                                  per_bit(shape.long_buffers(), long_bits(shape))} {}

    /// Returns whether all buffers that a message of that length may use have pages, wherever it
    /// begins.
    bool suffice(std::uint64_t message_bytes) const {
        return message_bytes <= up_to_ ||
               (pages_ && message_bytes > shape_.short_bytes() && message_bytes <= kPageBytes);
    }

    /// Gives pages to the buffers that the message needs, which begins at place n of the round.
    /// Returns flags that say how to cut it: `wanted`, if there are pages for that, else kCutShort
    /// or kCutToLines. `back(offset, bytes)` gives pages to bytes of the buffers, and returns
    /// whether it could.
    template <typename Back>
    std::uint64_t prepare(std::uint64_t n, std::uint64_t message_bytes, std::uint64_t wanted,
                          Back back) {
        if (suffice(message_bytes) || fits(n, message_bytes, wanted, back)) {
            return wanted;
        }
        const bool cuts_short = shape_.short_bytes() > 0 && fits(n, message_bytes, kCutShort, back);
        return cuts_short ? kCutShort : kCutToLines;
    }

    /// Returns whether any buffer has pages.
    bool any() const { return any_; }

  private:
    static constexpr std::uint32_t kBits = 64;
    static constexpr std::uint32_t kLongBits = 32;
    /// Buffers of one page are whole with that page, so their two kinds share bits alike.
    static constexpr std::uint32_t long_bits(const RingShape& shape) {
        return shape.slot_bytes > kPageBytes ? kLongBits : kBits;
    }
    /// Short buffers, first pages of long buffers, and whole long buffers.
    enum Kind : std::uint8_t { brief, page, whole, kinds };

    /// Gives pages to the buffers of all fragments, or, if these go around the ring, to all buffers
    /// of that kind. Returns whether it could.
    template <typename Back>
    bool fits(std::uint64_t n, std::uint64_t bytes, std::uint64_t flags, Back back) {
        const std::uint64_t most = (flags & kCutShort) != 0 ? shape_.depth : ~std::uint64_t{0};
        std::uint64_t moved = 0;
        for (std::uint64_t i = 0; i < most && moved < bytes && done_[whole] != all(whole);) {
            const std::uint64_t length = fragment_bytes(shape_, n + i, bytes, moved, flags);
            const std::uint64_t end = i + slots_of(shape_, length);
            for (; i < end; ++i) {
                if (length > kInlineBytes && !fits(n + i, kind_of(length), back)) {
                    return false;
                }
            }
            moved += length;
        }
        for (std::uint32_t i = 0; i < shape_.depth && moved < bytes; ++i) {
            if (!fits(i, shape_.short_bytes() > 0 ? brief : whole, back)) {
                return false;
            }
        }
        return true;
    }

    template <typename Back>
    bool fits(std::uint64_t n, Kind kind, Back back) {
        const std::uint64_t index = kind == whole ? shape_.long_index(n) : n & (shape_.depth - 1);
        const std::uint64_t bit = std::uint64_t{1} << index / per_bit_[kind];
        if ((done_[kind] & bit) != 0) {
            return true;
        }
        const std::uint64_t first = index / per_bit_[kind] * per_bit_[kind];
        if (!fit_from(first, kind, back)) {
            return false;
        }
        any_ = true;
        done_[kind] |= bit;
        done_[whole] |= kind == page && bytes_of(page) == shape_.slot_bytes ? bit : 0;
        sum_up();
        return true;
    }

    /// Gives pages to the buffers that share a bit; whole long ones lie side by side.
    template <typename Back>
    bool fit_from(std::uint64_t first, Kind kind, Back back) {
        const std::uint64_t end = first + per_bit_[kind];
        if (kind == whole) {
            if (!back(shape_.long_offset(first),
                      per_bit_[kind] * std::uint64_t{shape_.slot_bytes})) {
                return false;
            }
            for (std::uint64_t i = first; i < std::min<std::uint64_t>(end, shape_.depth); ++i) {
                // No more of these share a bit.
                done_[page] |= std::uint64_t{1} << i / per_bit_[page];
            }
            return true;
        }
        for (std::uint64_t i = first; i < end; ++i) {
            if (!back(shape_.buffer_offset(i, bytes_of(kind)), bytes_of(kind))) {
                return false;
            }
        }
        return true;
    }

    static std::uint32_t per_bit(std::uint32_t count, std::uint32_t bits) {
        return std::max(1U, count / bits);
    }
    std::uint32_t count_of(Kind kind) const {
        return kind == whole ? shape_.long_buffers() : shape_.depth;
    }
    /// Returns the bits of all buffers of that kind.
    std::uint64_t all(Kind kind) const {
        const std::uint32_t bits = count_of(kind) / per_bit_[kind];
        return bits == kBits ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    }

    Kind kind_of(std::uint64_t length) const {
        return length <= shape_.short_bytes() ? brief : length <= kPageBytes ? page : whole;
    }
    std::uint64_t bytes_of(Kind kind) const {
        return kind == brief  ? shape_.short_bytes()
               : kind == page ? std::min<std::uint64_t>(kPageBytes, shape_.slot_bytes)
                              : shape_.slot_bytes;
    }
    void sum_up() {
        const bool briefs = shape_.short_bytes() == 0 || done_[brief] == all(brief);
        pages_ = done_[page] == all(page);
        up_to_ = !briefs                      ? kInlineBytes
                 : done_[whole] == all(whole) ? ~std::uint64_t{0}
                 : pages_                     ? kPageBytes
                                              : std::max(kInlineBytes, shape_.short_bytes());
    }

    RingShape shape_;
    std::array<std::uint32_t, kinds> per_bit_ = {1, 1, 1}; ///< Buffers for each bit of done_.
    std::uint64_t up_to_ = kInlineBytes; ///< Up to this length messages need no more pages.
    bool pages_ = false;                 ///< All long buffers have their first page.
    bool any_ = false;
    std::array<std::uint64_t, kinds> done_ = {}; ///< By kind: bits of buffers that have pages.
};

} // namespace ucg::shm
