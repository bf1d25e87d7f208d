// One mapping of one memfd, between two pages that nobody can touch: code that runs beyond its end
// does not write into its neighbour. The file has no name: when the last process that holds it is
// gone, by whatever signal, so is the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "shm/descriptor.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// Memory that several processes map.
class SharedSegment {
  public:
    /// Makes and maps a new file of `bytes` zeros, none of them backed by a page yet, sealed
    /// against a change of size, so that no process can make another one's access fail with SIGBUS
    /// by truncating it.
    static Result<std::unique_ptr<SharedSegment>> create(std::uint64_t bytes);

    /// Maps a file that another process created. Refuses one that is shorter than `bytes` or that
    /// could be shortened. `lease_bytes`: the length of what is leased, from the start, which has
    /// no huge pages; what is behind that may.
    static Result<std::unique_ptr<SharedSegment>> adopt(Descriptor file, std::uint64_t bytes,
                                                        std::uint64_t lease_bytes);

    /// Like adopt(), for a file of which a part is the caller's: keeps the descriptor, to pass it
    /// on.
    static Result<std::unique_ptr<SharedSegment>> join(Descriptor file, std::uint64_t bytes);

    /// Returns the segment of the preloaded libucg_heap.so, which has mapped it for the whole life
    /// of the process and serves the program's malloc from a part of it; null when nothing is
    /// preloaded, another heap of this process has it, or the program runs from ordinary memory.
    /// The destructor gives it back.
    static std::unique_ptr<SharedSegment> of_process();
    /// Returns whether of_process() would return one now.
    static bool process_has_one();

    SharedSegment(const SharedSegment&) = delete;
    SharedSegment& operator=(const SharedSegment&) = delete;
    ~SharedSegment();

    std::byte* base() const { return base_; }
    std::uint64_t bytes() const { return bytes_; }
    /// Returns the length of the part, from the start, that the owner of this object may reserve
    /// and discard.
    std::uint64_t own_bytes() const { return own_bytes_; }
    /// Returns the descriptor of a segment that was created or joined, for one system call; -1 when
    /// the program has closed it, and for an adopted one, which has none.
    int descriptor() const { return file_.get(); }

    /// Backs a range with zeroed pages, on the caller's NUMA node by the usual first-touch policy.
    /// Exhaustion is out_of_memory here and never a signal later. Core files of this process hold
    /// what is reserved, and nothing else of any segment. REQUIRES: the segment is not adopted, and
    /// the range lies in the caller's part and is page-aligned.
    Status reserve(std::uint64_t offset, std::uint64_t bytes);

    /// Returns the pages of a range to the system: it reads as zeros. What the program has locked
    /// in memory (mlockall) may stay there. REQUIRES: as reserve().
    void discard(std::uint64_t offset, std::uint64_t bytes);

    /// From now on this process cannot touch the pages before and after a range. REQUIRES: it does
    /// not use them, and the range is page-aligned.
    void guard(std::uint64_t offset, std::uint64_t bytes);

  private:
    SharedSegment(Descriptor file, std::byte* base, std::uint64_t bytes)
        : file_(std::move(file)), base_(base), bytes_(bytes), own_bytes_(bytes) {}
    static Result<std::unique_ptr<SharedSegment>> map_sealed(Descriptor file, std::uint64_t bytes,
                                                             std::uint64_t lease_bytes);
    static Result<std::unique_ptr<SharedSegment>> map(Descriptor file, std::uint64_t bytes,
                                                      std::uint64_t lease_bytes);
    Status back(std::uint64_t offset, std::uint64_t bytes);
    Status allocate(std::uint64_t offset, std::uint64_t bytes);

    Descriptor file_;
    std::byte* base_;
    std::uint64_t bytes_;
    std::uint64_t own_bytes_;
    bool of_process_ = false; ///< Mapped by the preloaded library, which alone may unmap it.
};

/// Returns whether any process that maps a file can back its pages before it writes them
/// (Linux 5.14).
bool backs_pages();

/// Backs the pages of some bytes of any mapped segment. Exhaustion is out_of_memory here and never
/// a signal later; unsupported where the kernel cannot do it.
Status back_pages(std::byte* data, std::uint64_t bytes);

/// Returns the bytes of a page of memory.
std::uint64_t page_bytes();

} // namespace ucg::shm
