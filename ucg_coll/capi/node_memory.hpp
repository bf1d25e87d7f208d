// The memory that a process shares with others of its host: its node heap, who may make that, and
// what the program has of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "shm/shm.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/optional_mutex.hpp"
#include "ucg_coll/capi/process_sleep.hpp"

namespace ucg::capi {

/// Any thread may use it. Its lock is held while memory is leased or given back; only those of
/// ProcessSleep and of the heap itself are taken under it.
class NodeMemory {
  public:
    /// `enabled`: the settings allow shared memory. `sleep`, which must outlive it, has threads
    /// sleep by the heap's doorbell while there is a heap.
    NodeMemory(const shm::HeapOptions& options, bool enabled, ProcessSleep& sleep, bool threaded)
        : options_(options), enabled_(enabled), sleep_(sleep), mutex_(threaded) {}
    ~NodeMemory() { sleep_.sleep_alone(); } // The doorbell's memory goes with the heap.
    NodeMemory(const NodeMemory&) = delete;
    NodeMemory& operator=(const NodeMemory&) = delete;

    /// May this process still share memory? Not after it could not map a peer, for a reason of its
    /// own or because the peer did not come in time: another attempt would wait for its time-out.
    /// May be called under any lock; so may the next two functions.
    bool usable() const { return enabled_ && !failed_.load(std::memory_order_relaxed); }
    /// Does the kernel let this process read and write the memory of all whose heaps are attached?
    bool reaches_attached() const { return reaches_attached_.load(std::memory_order_relaxed); }
    /// There is a process with an attached heap whose memory the kernel does not let this one read
    /// and write, or with which that was not tried.
    void reaches_not_all() { reaches_attached_.store(false, std::memory_order_relaxed); }

    /// Stops sharing memory, and lets the peers that wait for this process's heap know at once.
    void give_up();
    /// Unmaps the heap and those of peers if shared memory was given up and nothing is leased there
    /// any more: address space may be what was short. Called whenever something has been returned
    /// to the heap.
    void drop_unused();
    /// Takes back memory that peers have let go of, without waiting for a thread that leases
    /// memory, which does the same.
    void collect();

    /// Returns the node heap; null if there is none.
    shm::Heap* heap_at_hand();
    /// What a group that is being made may have of this process.
    struct HeapOrWish {
        shm::Heap* heap = nullptr; ///< The node heap; null if there is none.
        /// Without a heap: what this process wishes of one that is made together with others; its
        /// capacity is 0 if this process would make one alone. The same for all groups that ask.
        /// Empty if a group that is being made has claimed it.
        std::optional<shm::HeapWish> wish;
    };
    /// Returns which of the two it is at one moment: another thread may make the heap in the next,
    /// for memory of the program's own. `claims`: the caller's group claims what it wishes for.
    HeapOrWish heap_or_wish(bool claims);
    /// Keeps everybody else from making the heap that was wished for, until release_claim().
    /// Returns false if it cannot be made as was wished: another group has claimed it, or tried to
    /// make it.
    bool claim(const shm::Token& wish);
    void release_claim();
    /// Begins to make the node heap that is claimed, together with those of the others that wish
    /// for one. `wishes` are those of all ranks of the group on this host, and `self` is the own
    /// one's index. Returns null if no heap is to be made so: then heap_of() returns one.
    /// Collective.
    std::unique_ptr<shm::HeapJoin> join(std::span<const shm::HeapWish> wishes, std::size_t self,
                                        std::chrono::steady_clock::time_point deadline);
    /// Keeps the heap that a join has made. If the join failed, gives up sharing memory, unless it
    /// failed because a peer was gone.
    Result<shm::Heap*> take_joined(Result<std::unique_ptr<shm::Heap>> joined);
    /// Returns the node heap that this process has told of by its token; makes it if there is none.
    /// Fails where that heap is gone, or is another one.
    Result<shm::Heap*> heap_of(const shm::Token& token);
    /// Makes the node heap if there is none. Fails with busy if a group that is being made has
    /// claimed it. REQUIRES: the caller holds the context's waiting_makers(), or knows that no
    /// group is made by waiting.
    Status make_heap();

    /// Returns memory of the node heap for the program, which gives it back by release(). Makes the
    /// heap if it is gone.
    Result<std::byte*> allocate(std::uint64_t bytes);
    /// Gives back memory. Returns false when `data` is not the start of memory that allocate() has
    /// returned.
    bool release(const std::byte* data);
    /// Returns how many bytes the buffers of one ring of a new group may have in all. `many`: the
    /// process has many groups.
    std::uint64_t ring_bytes(bool many);

  private:
    Result<shm::Heap*> heap_locked();
    Result<shm::Heap*> take(Result<std::unique_ptr<shm::Heap>> made);

    const shm::HeapOptions options_;
    const bool enabled_;
    ProcessSleep& sleep_;
    std::atomic<bool> reaches_attached_ = true;
    std::atomic<bool> failed_ = false; ///< Written under the lock.

    OptionalMutex mutex_;           ///< Guards what follows.
    std::optional<shm::Door> door_; ///< Of the heap that is not made yet.
    bool claimed_ = false;          ///< A group that is being made has claimed the heap.
    std::shared_ptr<shm::Heap> heap_;
    std::unordered_map<const std::byte*, shm::Lease> leased_; ///< The program's, by its address.
};

} // namespace ucg::capi
