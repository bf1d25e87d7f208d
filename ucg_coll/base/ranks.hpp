// A view of some ranks: those of a list, or consecutive ones, which need no list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include "ucg_coll/base/assert.hpp"
#include "ucg_coll/base/types.hpp"

namespace ucg {

/// A view like std::span<const Rank>, from which it can be made. It does not own the list, which
/// must outlive it.
class Ranks {
  public:
    Ranks() = default;
    Ranks(std::span<const Rank> list) : list_(list.data()), count_(list.size()) {}
    Ranks(const std::vector<Rank>& list) : Ranks(std::span(list)) {}
    Ranks(std::vector<Rank>&&) = delete; // It would not live as long as the view.
    /// Returns the `count` ranks first, first + 1, ...
    static Ranks consecutive(Rank first, std::size_t count) {
        Ranks ranks;
        ranks.first_ = first;
        ranks.count_ = count;
        return ranks;
    }

    std::size_t size() const { return count_; }
    bool empty() const { return count_ == 0; }
    /// REQUIRES: index < size().
    Rank operator[](std::size_t index) const {
        UCG_DEBUG_ASSERT(index < count_);
        return list_ != nullptr ? list_[index] : first_ + static_cast<Rank>(index);
    }
    /// Is that rank among them? REQUIRES: they rise.
    bool contains(Rank rank) const {
        return list_ != nullptr
                   ? std::binary_search(list_, list_ + count_, rank)
                   : rank >= first_ && static_cast<std::size_t>(rank - first_) < count_;
    }
    Rank front() const { return (*this)[0]; }
    Rank back() const { return (*this)[count_ - 1]; }

    class Iterator {
      public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = Rank;
        using difference_type = std::ptrdiff_t;
        using pointer = const Rank*;
        using reference = Rank;

        Iterator() = default;
        Iterator(const Ranks& ranks, std::size_t index)
            : list_(ranks.list_), first_(ranks.first_), index_(index) {}
        Rank operator*() const {
            return list_ != nullptr ? list_[index_] : first_ + static_cast<Rank>(index_);
        }
        Iterator& operator++() {
            ++index_;
            return *this;
        }
        Iterator operator++(int) {
            const Iterator before = *this;
            ++index_;
            return before;
        }
        bool operator==(const Iterator& other) const { return index_ == other.index_; }

      private:
        const Rank* list_ = nullptr;
        Rank first_ = 0;
        std::size_t index_ = 0;
    };
    Iterator begin() const { return {*this, 0}; }
    Iterator end() const { return {*this, count_}; }

  private:
    const Rank* list_ = nullptr; ///< Null: consecutive ranks from first_ on.
    Rank first_ = 0;
    std::size_t count_ = 0;
};

} // namespace ucg
