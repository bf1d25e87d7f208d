// Which of n things have work: add, remove and visit, all without a loop over n.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::transport {

/// A set of numbers below `universe`, in no order.
class ActiveSet {
  public:
    explicit ActiveSet(std::size_t universe) : place_(universe, kAbsent) {
        members_.reserve(universe);
    }

    void add(std::uint32_t item) {
        if (place_[item] == kAbsent) {
            place_[item] = static_cast<std::uint32_t>(members_.size());
            members_.push_back(item);
        }
    }

    /// Removes a member. The last one takes its place, so a visit from the last to the first may
    /// remove the member at which it is. REQUIRES: `item` is a member.
    void remove(std::uint32_t item) {
        UCG_DEBUG_ASSERT(place_[item] != kAbsent);
        const std::uint32_t place = place_[item];
        const std::uint32_t last = members_.back();
        members_[place] = last;
        place_[last] = place;
        place_[item] = kAbsent;
        members_.pop_back();
    }

    void clear() {
        while (!members_.empty()) {
            remove(members_.back());
        }
    }

    std::size_t size() const { return members_.size(); }
    std::uint32_t operator[](std::size_t place) const { return members_[place]; }

  private:
    static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

    std::vector<std::uint32_t> members_;
    std::vector<std::uint32_t> place_; ///< By number: its index in members_.
};

} // namespace ucg::transport
