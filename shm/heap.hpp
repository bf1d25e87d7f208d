// The node heap, one process's share of it: memory that the process hands out in leases and that
// its peers on the host map. Anonymous, of one user, gone with the last process that holds it.
#pragma once

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

#include "shm/doorbell.hpp"
#include "shm/ranges.hpp"
#include "shm/segment.hpp"
#include "shm/token.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::shm {

class Heap;

/// Memory leased from a heap: zeroed, page-aligned, backed by pages, returned on destruction. The
/// heap must outlive it.
class Lease {
  public:
    Lease() = default;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();

    std::byte* data() const { return data_; }
    std::uint64_t bytes() const { return bytes_; }   ///< Rounded up to pages.
    std::uint64_t offset() const { return offset_; } ///< From the base of the heap's segment.

  private:
    friend class Heap;
    Lease(Heap& heap, std::byte* data, std::uint64_t offset, std::uint64_t bytes)
        : heap_(&heap), data_(data), offset_(offset), bytes_(bytes) {}

    Heap* heap_ = nullptr;
    std::byte* data_ = nullptr;
    std::uint64_t offset_ = 0;
    std::uint64_t bytes_ = 0;
};

struct HeapOptions {
    /// Address space of the segment. Only what is leased uses memory. Reduced to a quarter of the
    /// memory of the machine or control group, and to what the limits of the process allow.
    std::uint64_t capacity_bytes = std::uint64_t{1} << 30;
    /// Heaps that this process will map, its own and its peers': under RLIMIT_AS all of them have
    /// to fit into half of what is left, so each gets its part of that.
    unsigned mappings = 1;
    /// Processes of this host that lease, at the same moment when a job makes a group: one lease
    /// takes no more than its part of the memory that is left. At least 1.
    unsigned lessees = 1;
};

/// What another process needs in order to map a heap. Trivially copyable, without pointers: it is
/// exchanged as bytes.
struct HeapAddress {
    Token token;
    Token key; ///< A secret of those to whom the owner has told its address.
    std::uint64_t capacity_bytes = 0;

    bool operator==(const HeapAddress&) const = default;
};

/// Where in its owner's heap a byte is.
struct HeapPlace {
    Token token;
    std::uint64_t offset = 0;

    bool operator==(const HeapPlace&) const = default;
};

/// Thread-safe. Belongs to the process that made it: a forked child may not use it.
class Heap {
  public:
    /// Makes the segment, or takes the one of the preloaded libucg_heap.so, and the socket at which
    /// peers fetch it.
    static Result<std::unique_ptr<Heap>> create(const HeapOptions& options);
    ~Heap();
    Heap(const Heap&) = delete;
    Heap& operator=(const Heap&) = delete;

    /// Fails with out_of_memory when the segment has no such range free, or when so much memory,
    /// leased by all lessees of this host at once, would endanger its processes: never later, by a
    /// signal, when it is written.
    Result<Lease> lease(std::uint64_t bytes);

    /// Returns the lease when all words of `left`, which lie in this heap, are not 0: peers that
    /// read the memory write them when they have done with it. That is looked for here, at every
    /// lease(), and by collect(). What still waits when the heap ends stays as it is: peers keep
    /// their mapping of it.
    void retire(Lease lease, std::vector<const std::atomic<std::uint64_t>*> left);

    /// Returns what was retired and is no longer read. Costs a load where nothing waits.
    void collect() {
        if (retired_count_.load(std::memory_order_relaxed) > 0) {
            collect_retired();
        }
    }

    const HeapAddress& address() const { return address_; }

    /// Maps the heaps of `peers`, the own one and those already mapped excepted. Collective: each
    /// of the peers must call it at about the same time with this heap among its own `peers`, since
    /// everyone serves its segment while it fetches the others'. Returns when all are mapped, and
    /// fails with timed_out when one has not come within `timeout`, with unreachable when one is
    /// gone. What was mapped stays mapped as long as its owner's heap lives, or somebody here holds
    /// it; afterwards until further peers are attached.
    Status attach(std::span<const HeapAddress> peers, std::chrono::milliseconds timeout);

    /// No further peer gets this heap: who waits for it in attach() fails with unreachable at once
    /// and not after its timeout. For a process that could not attach to all of a group, and so
    /// leaves the others to miss it, even if a forked child of it lives on. What peers have mapped
    /// stays; attach() fails from now on.
    void withdraw();

    /// How the owner sleeps. The doorbell lies in this heap, on a page that the first call leases:
    /// a process that waits for one group has to serve all others, so all their messages ring the
    /// same one. Fails as lease() does. Valid as long as the heap.
    Result<Sleeper*> sleeper();

    /// Where the segment of an attached heap, or the own one, starts in this process; null when it
    /// is not attached.
    std::byte* base_of(const Token& token) const;

    /// The same; and it stays mapped for as long as the caller keeps this, whatever its owner does.
    std::shared_ptr<std::byte> hold(const Token& token) const;

    /// Where `bytes` bytes from `data` on lie, if all of them lie in the own segment.
    std::optional<HeapPlace> locate(const std::byte* data, std::uint64_t bytes) const;

    /// What can be leased in all.
    std::uint64_t capacity_bytes() const { return capacity_bytes_; }
    std::uint64_t free_bytes();
    /// Is nothing leased but the doorbell?
    bool unused() { return free_bytes() + bell_.bytes() == capacity_bytes_; }
    /// Does the segment also serve this process's malloc? Then `locate` finds its large blocks.
    bool serves_malloc() const { return segment_->own_bytes() < segment_->bytes(); }

  private:
    friend class Lease;
    friend class Exchange;

    /// A mapped peer. A heap of this same process has one mapping, which lives as long as anybody
    /// uses it.
    struct Peer {
        std::byte* base = nullptr;
        std::shared_ptr<Segment> mapping;
    };

    /// Memory that peers may still read.
    struct Retired {
        Lease lease;
        std::vector<const std::atomic<std::uint64_t>*> left;
    };

    Heap(std::unique_ptr<Segment> segment, std::uint64_t capacity_bytes, unsigned lessees,
         const HeapAddress& address, Descriptor listener);
    void give_back(std::uint64_t offset, std::uint64_t bytes);
    void collect_retired();
    bool attached(const Token& token) const { return base_of(token) != nullptr; }
    void add_peer(const Token& token, Peer peer);
    void unmap_ended();
    void stop_listening();
    /// That of a heap of this process; null if there is none.
    static std::shared_ptr<Segment> segment_in_process(const Token& token);

    std::shared_ptr<Segment> segment_;
    std::uint64_t capacity_bytes_;
    unsigned lessees_;
    HeapAddress address_;
    Descriptor listener_;
    mutable std::mutex mutex_; ///< Guards ranges_, peers_ and retired_.
    Ranges ranges_;
    std::map<Token, std::shared_ptr<const Peer>> peers_; ///< Shared with who holds them.
    std::vector<Retired> retired_;
    std::atomic<std::size_t> retired_count_ = 0; ///< Of retired_.
    std::mutex attach_mutex_;  ///< One exchange at a time; it serves the peers of all.
    std::mutex sleeper_mutex_; ///< Guards the making of the two below.
    Lease bell_;
    std::unique_ptr<Sleeper> sleeper_;
};

} // namespace ucg::shm
