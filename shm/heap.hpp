// One process's share of the node heap: memory that the process hands out in leases and that its
// peers on the host map. Anonymous, of one user, gone with the last process that holds it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "shm/bootstrap.hpp"
#include "shm/door.hpp"
#include "shm/doorbell.hpp"
#include "shm/peer_copy.hpp"
#include "shm/ranges.hpp"
#include "shm/segment.hpp"
#include "shm/token.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

class DescriptorExchange;
class Heap;

/// Memory leased from a heap: zeroed, page-aligned, returned on destruction. All of it is backed by
/// pages, or, by Heap::reserve(), only its start. The heap must outlive it.
class Lease {
  public:
    Lease() = default;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();

    std::byte* data() const { return data_; }
    std::uint64_t bytes() const { return bytes_; }   ///< Rounded up to pages.
    std::uint64_t offset() const { return offset_; } ///< From the base of the heap's segment.
    std::uint64_t backed() const { return backed_; } ///< Bytes with pages, from the start.

    /// Gives pages to the start, up to `bytes`, before its first use. Fails as Heap::lease() does.
    Status back(std::uint64_t bytes);

  private:
    friend class Heap;
    Lease(Heap& heap, std::byte* data, std::uint64_t offset, std::uint64_t bytes,
          std::uint64_t backed)
        : heap_(&heap), data_(data), offset_(offset), bytes_(bytes), start_(backed),
          backed_(backed) {}

    Heap* heap_ = nullptr;
    std::byte* data_ = nullptr;
    std::uint64_t offset_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t start_ = 0;  ///< Bytes with pages at first,
    std::uint64_t backed_ = 0; ///< and now.
};

/// What each process stores in its mark, which lies in retired memory, when it uses that no more.
enum class LeftMark : std::uint8_t {
    none,
    left,
    left_pages, ///< It has given pages to that memory.
};

/// Which peers still look at retired memory.
struct Leavers {
    const std::atomic<LeftMark>* marks = nullptr; ///< In that memory, or null if there are none.
    std::uint32_t count = 0;                      ///< Marks, also of the owner, if it has one.
    bool pages_added = false; ///< The owner has given it pages other than by Lease::back().
    /// The processes, by mark, so that nobody waits for those that have ended; empty: not known.
    std::vector<PeerReach> processes = {};
};

/// Options of Heap::create() and Heap::join().
struct HeapOptions {
    /// Bytes of the segment's address space. Only what is leased uses memory. Reduced to a quarter
    /// of the memory of the machine or control group, and to what the limits of the process allow.
    std::uint64_t capacity_bytes = std::uint64_t{1} << 30;
    /// How many heaps this process will map, its own and its peers': under RLIMIT_AS all of them
    /// have to fit into half of what is left, so each gets its part of that.
    unsigned mappings = 1;
    /// How many processes of this host lease, at the same moment when a job makes a group: one
    /// lease takes no more than its part of the memory that is left. At least 1.
    unsigned lessees = 1;
};

/// Where a byte lies in the segment of a heap.
struct HeapPlace {
    Token token; ///< Of the heap.
    std::uint64_t offset = 0;

    bool operator==(const HeapPlace&) const = default;
};

/// A process's heap. Thread-safe. Belongs to the process that made it: a forked child may not use
/// it.
class Heap {
  public:
    /// Makes a heap in a new segment, or in the one of the preloaded libucg_heap.so. Peers fetch it
    /// at `door`.
    static Result<std::unique_ptr<Heap>> create(const HeapOptions& options, Door door);
    static Result<std::unique_ptr<Heap>> create(const HeapOptions& options);

    /// Returns how large a part this process can have of a segment that several make together: 0
    /// bytes where it would take the preloaded one now, which cannot be a part of another.
    static Result<HeapWish> wish(const HeapOptions& options, const Door& door);

    /// Like create(), in one segment with the heaps of others that have none yet, which need not be
    /// attached then. Collective: all `members` call it at about the same time, with equal wishes;
    /// `self` is the own index, and `door` the one of that wish. Fails with timed_out when one of
    /// them has not come within `timeout`, with unreachable when one is gone or failed. HeapJoin
    /// does it in steps.
    static Result<std::unique_ptr<Heap>> join(const HeapOptions& options, Door door,
                                              std::span<const HeapWish> members, std::size_t self,
                                              std::chrono::milliseconds timeout);
    ~Heap();
    Heap(const Heap&) = delete;
    Heap& operator=(const Heap&) = delete;

    /// Leases memory of which all has pages. Fails with out_of_memory when the segment has no such
    /// range free, or when so much memory, leased by all lessees of this host at once, would
    /// endanger its processes: never later, by a signal, when it is written.
    Result<Lease> lease(std::uint64_t bytes);

    /// Leases address space of `bytes` bytes, of which the first `backed` have pages. Others must
    /// be given pages before they are written for the first time: by the owner with Lease::back(),
    /// from the start, or by any process with back(). Where the kernel cannot do that, all have
    /// pages. Costs no system call where as much was retired before. Fails as lease() does.
    Result<Lease> reserve(std::uint64_t bytes, std::uint64_t backed);

    /// Like reserve(), for memory at which all peers look: where there is room, close to what the
    /// processes that made their heaps together with this one have leased so, in few pages of page
    /// tables.
    Result<Lease> reserve_close(std::uint64_t bytes, std::uint64_t backed);

    /// Like reserve_close(), for memory at which pairs of peers look: behind all that is close.
    Result<Lease> reserve_near(std::uint64_t bytes, std::uint64_t backed);

    using Leases = std::array<Lease, 3>; ///< Those of no bytes are ignored.
    /// Returns the leases to the heap when all peers have left, or have ended. Whether they have is
    /// looked at here, at every lease(), and by collect(). What still waits when the heap ends
    /// stays as it is: peers keep their mapping of it. The pages that a lease began with may be
    /// kept for the next one of its kind. Where there is no memory to do so the leases are returned
    /// later, or stay taken.
    void retire(Leases leases, Leavers leavers) noexcept;

    /// Gives pages to a part of what this or an attached heap has reserved. Fails as lease() does.
    Status back(std::byte* data, std::uint64_t bytes);

    /// Returns to the heap what was retired and is no longer read. Costs a load where nothing
    /// waits.
    void collect() {
        if (retired_count_.load(std::memory_order_relaxed) > 0) {
            collect_retired();
        }
    }

    const HeapAddress& address() const { return address_; }

    /// Maps the heaps of `peers`, the own one and those already mapped excepted. Collective: each
    /// of the peers must call it at about the same time with this heap among its own `peers`, since
    /// each serves its segment while it fetches the others'. Returns when all are mapped, and
    /// fails with timed_out when one has not come within `timeout`, with unreachable when some are
    /// gone and all others are mapped, and with another code when this process cannot share memory
    /// with one that is there. What was mapped stays mapped as long as its owner's heap lives, or
    /// somebody here holds it; afterwards until further peers are attached. HeapAttach does it in
    /// steps.
    Status attach(std::span<const HeapAddress> peers, std::chrono::milliseconds timeout);

    /// From now on no further peer gets this heap: those that wait for it in attach() fail with
    /// unreachable at once and not after their timeout, even if a forked child of this process
    /// lives on. For a process whose attach() failed otherwise than with unreachable, so that peers
    /// may wait for it. What peers have mapped stays; the own attach() to further peers fails from
    /// now on.
    void withdraw();

    /// Returns the owner's end of its doorbell. The doorbell lies in this heap's segment, beside
    /// those of the heaps that were made together with this one, or on a page that the first call
    /// leases: a process that waits for one group has to serve all others, so all their messages
    /// ring the same one. Fails as lease() does. Valid as long as the heap.
    Result<Sleeper*> sleeper();

    /// Returns what keeps all attached heaps attached as long as the caller holds it: no attach()
    /// of others lets go of heaps that have ended, or seem to have, as one that was withdrawn does.
    std::shared_ptr<const void> keep_mapped() {
        const std::lock_guard lock(mutex_);
        return mapped_;
    }

    /// Returns where the segment of an attached heap, or the own one, starts in this process; null
    /// when it is not attached.
    std::byte* base_of(const Token& token) const;

    /// Returns a digest of the set of attached heaps, with the own one: equal for equal sets, for
    /// others hardly ever.
    std::uint64_t attached_digest() const;

    /// Like base_of(); the segment stays mapped as long as the caller keeps the pointer, whatever
    /// its owner does.
    std::shared_ptr<std::byte> hold(const Token& token) const;

    /// Returns where `bytes` bytes from `data` on lie, if all of them lie in the own heap's
    /// segment.
    std::optional<HeapPlace> locate(const std::byte* data, std::uint64_t bytes) const;

    /// Returns what the kernel permits this process with that one's memory, which is tried once for
    /// each. Valid as long as the heap.
    PeerAccess& access_to(const AccessTicket& ticket);

    /// Returns the bytes that can be leased in all.
    std::uint64_t capacity_bytes() const { return capacity_bytes_; }
    std::uint64_t free_bytes();
    /// Returns whether nothing is leased but the doorbell.
    bool unused();
    /// Returns whether the segment also serves this process's malloc. Then locate() finds malloc's
    /// large blocks.
    bool serves_malloc() const { return segment_->own_bytes() < segment_->bytes(); }

  private:
    friend class Lease;
    friend class DescriptorExchange;
    friend class HeapAttach;
    friend class HeapJoin;

    /// A part of the segment that is this heap's.
    struct Part {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };

    /// The mapping in which a peer's heap lies. Other peers, and heaps of this process, may share
    /// it.
    struct Peer {
        std::shared_ptr<SharedSegment> mapping;
    };

    /// Memory that peers may still read.
    struct Retired {
        Leases leases;
        Leavers leavers;
        std::uint32_t awaited = 0; ///< Index of the first mark that was not seen to be set.

        bool waits(bool ask);
        bool pages_added() const;
    };

    /// A range that was retired and keeps the pages of its start for the next one of its kind:
    /// programs that make one communicator after the other make them alike.
    struct Kept {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
        std::uint64_t backed = 0;
    };

    /// Parts of the segment from which this process leases, in their order there.
    enum class Where : std::uint8_t { close, near, part };
    using Parts = std::array<Part, 3>; ///< By Where.

    Heap(std::shared_ptr<SharedSegment> segment, const Parts& parts, unsigned lessees,
         const Token& segment_token, Door door);
    Ranges& free_in(Where where) { return free_[static_cast<std::size_t>(where)]; }
    const Part& part(Where where) const { return parts_[static_cast<std::size_t>(where)]; }
    std::uint64_t part_bytes() const;
    std::uint64_t bytes_in_free() const;
    std::uint64_t bytes_retired() const;
    Result<Lease> reserve(std::uint64_t bytes, std::uint64_t backed, Where where);
    std::optional<std::uint64_t> take_free(std::uint64_t bytes, Where where, bool bare);
    void give_free(std::uint64_t offset, std::uint64_t bytes);
    void give_back(const Lease& lease);
    Status take_pages(std::uint64_t offset, std::uint64_t bytes);
    Result<std::uint64_t> take_range(std::uint64_t bytes, Where where, bool bare);
    Status allow(std::uint64_t bytes);
    Status expect(std::uint64_t bytes);
    std::uint64_t read_share();
    Status too_much(std::uint64_t bytes, std::uint64_t share) const;
    std::optional<Lease> take_kept(std::uint64_t bytes, std::uint64_t backed);
    void keep(Lease& lease, bool pages_added);
    void make_room(std::uint64_t backed);
    void drop(const Kept& kept);
    void drop_kept();
    void collect_retired();
    bool attached(const Token& token) const { return base_of(token) != nullptr; }
    void add_peer(const Token& token, std::shared_ptr<SharedSegment> mapping);
    void unmap_ended();

    std::shared_ptr<SharedSegment> segment_;
    Parts parts_;
    std::uint64_t capacity_bytes_;
    unsigned lessees_;
    Door door_;
    HeapAddress address_;
    std::vector<Token> mates_;    ///< Tokens of the heaps in the same segment, rising.
    mutable std::mutex mutex_;    ///< Guards what follows, to retired_.
    std::array<Ranges, 3> free_;  ///< Of the parts, by Where.
    std::vector<Kept> kept_;      ///< Neither free nor leased; in the order of keep().
    std::uint64_t allowance_ = 0; ///< Bytes to back before the memory that is left is read again.
    std::uint64_t share_ = 0;     ///< This process's share of the memory when it was read last,
    unsigned share_uses_ = 0;     ///< and how many more calls of expect() may use that.
    std::map<Token, std::shared_ptr<const Peer>> peers_;            ///< Shared by hold().
    std::shared_ptr<const void> mapped_ = std::make_shared<char>(); ///< Shared by keep_mapped().
    std::map<AccessTicket, PeerAccess> access_;
    std::vector<Retired> retired_;
    std::chrono::steady_clock::time_point asked_; ///< When peers were last asked whether they live.
    std::atomic<std::size_t> retired_count_ = 0;  ///< Size of retired_.
    /// Bytes of leases that stay taken, since there was no memory to keep them in retired_.
    std::atomic<std::uint64_t> lost_bytes_ = 0;
    std::atomic<unsigned> retiring_ = 0;           ///< Threads in retire().
    std::mutex attach_mutex_;                      ///< Guards the exchange and the door.
    std::unique_ptr<DescriptorExchange> exchange_; ///< Serves the peers of all attachments.
    std::mutex sleeper_mutex_;                     ///< Guards the making of the two below.
    Lease bell_;
    std::unique_ptr<Sleeper> sleeper_;
};

/// Heap::join() in steps, for callers that may not wait. For one thread. Its destruction before it
/// is over shuts the door, and the others fail with unreachable.
class HeapJoin {
  public:
    using Clock = std::chrono::steady_clock;

    HeapJoin(const HeapOptions& options, Door door, std::vector<HeapWish> members, std::size_t self,
             Clock::time_point deadline);
    HeapJoin(const HeapJoin&) = delete;
    HeapJoin& operator=(const HeapJoin&) = delete;

    /// Does what is due, after waiting for news until `until` at most. Returns nothing as long as
    /// it is not over; then, once, what Heap::join() returns.
    std::optional<Result<std::unique_ptr<Heap>>> step(Clock::time_point until);

  private:
    std::unique_ptr<Heap> make(std::shared_ptr<SharedSegment> segment);

    HeapOptions options_;
    Door door_;
    std::vector<HeapWish> members_;
    std::size_t self_;
    Bootstrap bootstrap_;
};

/// Heap::attach() in steps, for callers that may not wait: between two of them others may attach to
/// the same peers. Its destruction gives it up. The heap must outlive it.
class HeapAttach {
  public:
    using Clock = std::chrono::steady_clock;

    HeapAttach(Heap& heap, std::span<const HeapAddress> peers, Clock::time_point deadline);
    ~HeapAttach();
    HeapAttach(const HeapAttach&) = delete;
    HeapAttach& operator=(const HeapAttach&) = delete;

    /// Does what is due, after waiting for news until `until` at most. Returns nothing as long as
    /// it is not over; then what Heap::attach() returns.
    std::optional<Status> step(Clock::time_point until);

  private:
    std::vector<HeapAddress> missing() const;
    std::optional<Status> look_at(const Status& stepped) const;
    Status late(std::span<const HeapAddress> missing) const;

    Heap& heap_;
    std::vector<HeapAddress> wanted_;    ///< Peers to attach, those behind the own place first.
    std::shared_ptr<const void> mapped_; ///< Keeps the peers mapped that were so before.
    Clock::time_point started_;
    Clock::time_point deadline_;
};

} // namespace ucg::shm
