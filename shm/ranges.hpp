// Which ranges of an address space are free: first or last fit, neighbours merged on release. A
// plain value; the memory behind the ranges is the heap's matter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace ucg::shm {

/// The free ranges of [0, size).
class Ranges {
  public:
    /// All of [0, size) is free.
    explicit Ranges(std::uint64_t size);

    /// Takes the start of the first free range of at least `size` bytes. Returns its offset, or
    /// nothing if there is none. REQUIRES: size > 0.
    std::optional<std::uint64_t> take(std::uint64_t size);
    /// Like take(), but takes the end of the last such range.
    std::optional<std::uint64_t> take_last(std::uint64_t size);

    /// Makes a range free. REQUIRES: it was taken, as a whole.
    void give_back(std::uint64_t offset, std::uint64_t size);

    std::uint64_t free_bytes() const { return free_bytes_; }
    std::uint64_t largest_free() const;

  private:
    std::map<std::uint64_t, std::uint64_t> free_; // Offset to size; no two ranges touch.
    std::uint64_t free_bytes_;
};

} // namespace ucg::shm
