// An array whose elements are made one by one: those that were never made take address space only,
// so that one of a thousand ranks does not pay for peers to which it never speaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::transport {

/// An array of which each element is made when it is first needed.
template <typename T>
class LazyArray {
  public:
    LazyArray() = default;
    explicit LazyArray(std::size_t size)
        : slots_(static_cast<Slot*>(std::calloc(size, sizeof(Slot)))) {
        if (slots_ == nullptr) {
            throw std::bad_alloc();
        }
    }
    LazyArray(LazyArray&&) noexcept = default;
    LazyArray& operator=(LazyArray&& other) noexcept {
        std::swap(slots_, other.slots_);
        std::swap(made_, other.made_);
        return *this;
    }
    ~LazyArray() {
        for (const std::uint32_t index : made_) {
            std::destroy_at(&(*this)[index]);
        }
    }

    /// Returns whether the element was made.
    bool has(std::size_t index) const { return slots_.get()[index].made; }
    /// Makes the element from `value` and returns it. REQUIRES: !has(index).
    T& make(std::uint32_t index, T&& value) {
        Slot& slot = slots_.get()[index];
        made_.push_back(index);
        T* made = ::new (&slot.bytes) T(std::move(value));
        slot.made = true;
        return *made;
    }
    /// REQUIRES: has(index).
    T& operator[](std::size_t index) {
        UCG_DEBUG_ASSERT(has(index));
        return *std::launder(reinterpret_cast<T*>(&slots_.get()[index].bytes));
    }
    /// Returns the indexes of the elements that were made, in the order in which that happened.
    std::span<const std::uint32_t> made() const { return made_; }

  private:
    /// Room for an element. Zeros are a slot whose element was not made.
    struct Slot {
        bool made;                             ///< Here, as `bytes` is looked at next.
        alignas(T) std::byte bytes[sizeof(T)]; // NOLINT(modernize-avoid-c-arrays)
    };
    static_assert(alignof(Slot) <= alignof(std::max_align_t));
    struct Free {
        void operator()(Slot* slots) const { std::free(slots); }
    };

    std::unique_ptr<Slot, Free> slots_;
    std::vector<std::uint32_t> made_;
};

} // namespace ucg::transport
