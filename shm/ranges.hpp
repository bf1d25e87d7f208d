// Which ranges of an address space are free: first or last fit, neighbours merged on release. A
// plain value; the memory behind the ranges is the heap's matter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace ucg::shm {

class Ranges {
  public:
    /// All of [0, size) is free.
    explicit Ranges(std::uint64_t size);

    /// The offset of `size` bytes that were free and now are not, or nothing. REQUIRES: size > 0.
    std::optional<std::uint64_t> take(std::uint64_t size);
    /// The same from the end of the last range that has so many.
    std::optional<std::uint64_t> take_last(std::uint64_t size);

    /// REQUIRES: the range was taken, as a whole.
    void give_back(std::uint64_t offset, std::uint64_t size);

    std::uint64_t free_bytes() const { return free_bytes_; }
    std::uint64_t largest_free() const;

  private:
    std::map<std::uint64_t, std::uint64_t> free_; // Offset to size; no two ranges touch.
    std::uint64_t free_bytes_;
};

} // namespace ucg::shm
