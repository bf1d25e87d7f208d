// Private memory of a test that takes the place of shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "ucg_coll/base/checked.hpp"

namespace ucg::test {

/// Zeroed memory that begins at a page boundary.
class ZeroedMemory {
  public:
    explicit ZeroedMemory(std::uint64_t bytes)
        : bytes_(static_cast<std::byte*>(std::aligned_alloc(kPage, round_up(bytes, kPage)))) {
        std::memset(bytes_.get(), 0, bytes);
    }
    std::byte* get() const { return bytes_.get(); }

  private:
    static constexpr std::uint64_t kPage = 4096;

    struct Free {
        void operator()(std::byte* bytes) const { std::free(bytes); }
    };
    std::unique_ptr<std::byte, Free> bytes_;
};

} // namespace ucg::test
