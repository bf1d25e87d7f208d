// The shortest messages of the short lane where their bytes are put straight into the receiver's
// memory: a ring of lines for each sender, one message a line. Nothing here knows UCX, so that it
// can be tested without it.
//
// UCT promises nothing about the order in which the bytes of one put become visible, so a line
// certifies itself: its first word is computed from all others and from the line's number. A line
// that is there in part only, or that of the lap before, does not match, and is looked at again.
// Thus one put is enough, and needs no fence.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ucg_coll/transport/ucx/wire.hpp"

namespace ucg::transport::ucx {

inline constexpr std::size_t kLineDataBytes = 24;
inline constexpr std::uint32_t kLinesPerRing = 16;

/// One message in a ring.
struct alignas(64) RingLine {
    std::uint64_t check = 0; ///< check_of() of this line.
    std::uint32_t bytes = 0; ///< Bytes of `data` that are in use.
    std::uint32_t taken = 0; ///< Lines that the sender has taken from its receiver's, modulo 2^32.
    Envelope envelope;
    std::array<std::byte, kLineDataBytes> data{};
};
static_assert(sizeof(RingLine) == 64 && std::is_trivially_copyable_v<RingLine>);

/// Returns the first word that a complete line has as the number-th of its ring.
std::uint64_t check_of(const RingLine& line, std::uint32_t number);

/// The sender's side of a ring. Numbers count modulo 2^32.
class LineWriter {
  public:
    bool has_room() const { return sent_ - acknowledged_ < kLinesPerRing; }

    /// Where the next line belongs, in bytes from the ring's beginning.
    std::size_t offset() const { return sent_ % kLinesPerRing * sizeof(RingLine); }

    /// Completes the next line. It counts as sent when advance() is called.
    void seal(RingLine& line) const { line.check = check_of(line, sent_); }
    void advance() { ++sent_; }

    /// Notes how many lines the receiver has taken. A count that comes late, or cannot be, changes
    /// nothing.
    void acknowledge(std::uint32_t taken) {
        const bool newer = static_cast<std::int32_t>(taken - acknowledged_) > 0;
        const bool possible = static_cast<std::int32_t>(sent_ - taken) >= 0;
        if (newer && possible) {
            acknowledged_ = taken;
        }
    }

  private:
    std::uint32_t sent_ = 0;
    std::uint32_t acknowledged_ = 0;
};

/// The receiver's side of a ring: it looks at memory that the sender may be writing.
class LineReader {
  public:
    explicit LineReader(std::span<RingLine, kLinesPerRing> ring) : ring_(ring) {}

    /// Has the first word of the next line arrived? Most looks find nothing, and cost no more than
    /// this.
    bool has_news() const {
        const std::size_t place = taken_ % kLinesPerRing;
        return std::atomic_ref(ring_[place].check).load(std::memory_order_relaxed) != seen_[place];
    }

    /// Returns the next line, if all of it has arrived.
    std::optional<RingLine> take();

    /// Has half a ring been taken that the sender has not been told of?
    bool owes() const { return taken_ - reported_ >= kLinesPerRing / 2; }
    std::uint32_t taken() const { return taken_; }
    void reported(std::uint32_t taken) { reported_ = taken; }

  private:
    std::span<RingLine, kLinesPerRing> ring_;
    std::array<std::uint64_t, kLinesPerRing> seen_{}; ///< First words of the lines taken last.
    std::uint32_t taken_ = 0;
    std::uint32_t reported_ = 0;
};

} // namespace ucg::transport::ucx
