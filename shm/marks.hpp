// The marks of messages that a sender has announced and that are not read yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shm/ring_layout.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// In the word of the receipt that has it.
inline std::uint64_t mark_bit(std::uint64_t mark) {
    return std::uint64_t{1} << mark % RingReceipt::kMarkBits;
}

/// The sender's own record: who has which mark. Grows with the messages that are announced and
/// unread at a time, of which there are few.
class Marks {
  public:
    bool all_taken() const { return first_free() == RingReceipt::kMarks; }

    /// The lowest free mark, for the message announced in that turn. REQUIRES: !all_taken().
    std::uint64_t take(std::uint64_t turn) {
        const std::uint64_t mark = first_free();
        UCG_ASSERT(mark < RingReceipt::kMarks);
        if (mark == turns_.size()) {
            turns_.push_back(0);
        }
        turns_[mark] = turn;
        return mark;
    }
    void free(std::uint64_t mark) { turns_[mark] = 0; }

    std::uint64_t turn(std::uint64_t mark) const { return turns_[mark]; }

  private:
    std::uint64_t first_free() const {
        return static_cast<std::uint64_t>(std::find(turns_.begin(), turns_.end(), 0U) -
                                          turns_.begin());
    }

    std::vector<std::uint64_t> turns_; ///< Index: mark. 0: it is free.
};

} // namespace ucg::shm
