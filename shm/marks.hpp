// The marks of messages whose RTS a sender has sent and whose FIN it awaits. By its mark a message
// is told apart from others when the receiver reads them in another order than they were sent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shm/ring_layout.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// Returns the mark's bit in the word of RingFin::remembered that has it.
inline std::uint64_t mark_bit(std::uint64_t mark) {
    return std::uint64_t{1} << mark % RingFin::kMarkBits;
}

/// The sender's own record of which message has which mark. Grows with the messages that await
/// their FIN at a time, of which there are few.
class Marks {
  public:
    bool all_taken() const { return first_free() == RingFin::kMarks; }

    /// Takes the lowest free mark for the message whose RTS has that fragment number, and returns
    /// it. REQUIRES: !all_taken().
    std::uint64_t take(std::uint64_t sequence) {
        const std::uint64_t mark = first_free();
        UCG_ASSERT(mark < RingFin::kMarks);
        if (mark == sequences_.size()) {
            sequences_.push_back(0);
        }
        sequences_[mark] = sequence;
        return mark;
    }
    void free(std::uint64_t mark) { sequences_[mark] = 0; }

    /// Returns the fragment number of the RTS whose message has that mark.
    std::uint64_t sequence(std::uint64_t mark) const { return sequences_[mark]; }

  private:
    std::uint64_t first_free() const {
        return static_cast<std::uint64_t>(std::find(sequences_.begin(), sequences_.end(), 0U) -
                                          sequences_.begin());
    }

    std::vector<std::uint64_t> sequences_; ///< Index: mark. 0: it is free.
};

} // namespace ucg::shm
