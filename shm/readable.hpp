// Which own memory the kernel copies for peers. It takes nothing but pages that it manages: not
// what a driver has mapped, of a device or shared with one, nor secret memory, though the process
// itself reads and writes those as any other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ucg::shm {

/// Threads: one at a time.
class ReadableMemory {
  public:
    /// Can peers that may read this process's memory read these bytes? Finds out by trying the
    /// first and the last one, since what a program gives as one buffer is of one kind; once for
    /// the same bytes, since what lies at an address seldom becomes of another kind, until they are
    /// forgotten. No, from the time on at which the kernel refuses to try.
    bool has(const std::byte* data, std::uint64_t bytes) {
        const auto begin = reinterpret_cast<std::uintptr_t>(data);
        for (const Range& known : known_) {
            if (known.begin <= begin && begin + bytes <= known.end) {
                return true;
            }
        }
        return find_out({begin, begin + bytes});
    }

    /// A peer could not read these bytes, though they were readable once: others lie there now.
    void forget(const std::byte* data, std::uint64_t bytes);

  private:
    struct Range {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
    };

    bool find_out(const Range& range);
    bool kernel_reads(std::uintptr_t first, std::uintptr_t last);
    void add(const Range& range);

    std::array<Range, 8> known_;
    std::size_t oldest_ = 0; ///< Of these.
    bool refused_ = false;
};

} // namespace ucg::shm
