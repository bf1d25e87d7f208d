// How processes of a host that have no segment yet come to share one: the first of them makes it,
// with a part for each, and all others fetch it from there. Each process calls one other, maps one
// file and has one descriptor, however many there are. Internal to shm; heap.hpp is the way in.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "shm/door.hpp"
#include "shm/segment.hpp"
#include "shm/token.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

/// What a process that has no heap yet tells those with whom it may make one. Trivially copyable.
struct HeapWish {
    Token token;                      ///< Of its door,
    Token key;                        ///< and that door's key.
    std::uint64_t capacity_bytes = 0; ///< Of its part, in whole pages; 0: it takes part in none.
    std::uint64_t file_bytes_max = 0; ///< The largest file that it may make.
};

/// What lies where in the segment of such processes, in bytes from its start: the doorbells of all,
/// a small close part for each, a near part for each, then a large part for each, with a page that
/// nobody uses before and after it.
class CommonLayout {
  public:
    explicit CommonLayout(std::span<const HeapWish> members);

    std::uint64_t bell(std::size_t member) const;
    std::uint64_t bells_bytes() const;
    /// Where a member's close part lies, from which it leases what all look at; and its length.
    std::uint64_t close(std::size_t member) const;
    std::uint64_t close_bytes() const;
    /// Where a member's near part lies, from which it leases what pairs look at; and its length.
    std::uint64_t near(std::size_t member) const;
    std::uint64_t near_bytes() const;
    /// Where a member's large part lies, and its length: as much as it wishes, or less where the
    /// first member may not make so large a file. It is 0 for all members or for none.
    std::uint64_t part(std::size_t member) const;
    std::uint64_t part_bytes(std::size_t member) const {
        return std::min(members_[member].capacity_bytes, part_max_);
    }
    /// Returns the length of the segment. A page follows the last part, too.
    std::uint64_t bytes() const { return part(members_.size()); }

  private:
    std::span<const HeapWish> members_;
    std::uint64_t part_max_;
};

/// A bootstrap of processes, which share one segment afterwards. Collective: all members make one
/// at about the same time, with the same wishes. Not thread-safe.
class Bootstrap {
  public:
    using Clock = std::chrono::steady_clock;
    using Segments = Result<std::shared_ptr<SharedSegment>>;

    /// `self` is the own index in `members`; these and the door must outlive the bootstrap.
    Bootstrap(const Door& door, std::span<const HeapWish> members, std::size_t self,
              Clock::time_point deadline);
    ~Bootstrap();
    Bootstrap(const Bootstrap&) = delete;
    Bootstrap& operator=(const Bootstrap&) = delete;

    /// Does what is due, after waiting for news until `until` at most. Returns nothing as long as
    /// the bootstrap is not over; then, once, the common segment, with a descriptor that can be
    /// passed on, in which the doorbells have pages. Fails with timed_out when a member has not
    /// come by the deadline, with unreachable when one is gone or has shut its door.
    std::optional<Segments> step(Clock::time_point until);

  private:
    class Giver;
    class Taker;

    Status begin();
    std::optional<Segments> give(Clock::time_point until);
    std::optional<Segments> take(Clock::time_point until);

    const Door& door_;
    std::span<const HeapWish> members_;
    std::size_t self_;
    CommonLayout layout_;
    Clock::time_point deadline_;
    std::shared_ptr<SharedSegment> segment_; ///< The giver's; null for others.
    std::unique_ptr<Giver> giver_;           ///< Once begun, the first member has this one,
    std::unique_ptr<Taker> taker_;           ///< any other member this one.
};

} // namespace ucg::shm
