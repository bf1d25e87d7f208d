// Which own memory the kernel copies for peers. It copies only pages that it manages: not what a
// driver has mapped, of a device or shared with one, nor secret memory (memfd_secret), though the
// process itself reads and writes those as any other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ucg::shm {

/// What is known of that. Used by one thread at a time.
class ReadableMemory {
  public:
    /// Returns whether peers that may read this process's memory can read these bytes. Finds out by
    /// trying the first and the last one, since what a program gives as one buffer is of one kind.
    /// Tries the same bytes once, since what lies at an address seldom becomes of another kind,
    /// until they are forgotten. Returns false once the kernel has refused to try.
    bool has(const std::byte* data, std::uint64_t bytes) {
        const auto begin = reinterpret_cast<std::uintptr_t>(data);
        for (const Range& known : known_) {
            if (known.begin <= begin && begin + bytes <= known.end) {
                return true;
            }
        }
        return find_out({begin, begin + bytes});
    }

    /// Forgets what is known of these bytes. For bytes that a peer could not read though they were
    /// readable once: other memory lies there now.
    void forget(const std::byte* data, std::uint64_t bytes);

  private:
    struct Range {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
    };

    bool find_out(const Range& range);
    bool kernel_reads(std::uintptr_t first, std::uintptr_t last);
    void add(const Range& range);

    std::array<Range, 8> known_; ///< Readable; empty ones are unused.
    std::size_t oldest_ = 0;     ///< The one to be replaced next.
    bool refused_ = false;
};

} // namespace ucg::shm
