#include "ucg_coll/capi/node_memory.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

#include "ucg_coll/transport/shm/shm.hpp"

namespace ucg::capi {

shm::Heap* NodeMemory::heap_at_hand() {
    const std::lock_guard lock(mutex_);
    return heap_.get();
}

NodeMemory::HeapOrWish NodeMemory::heap_or_wish(bool claims) {
    const std::lock_guard lock(mutex_);
    if (heap_ != nullptr || claimed_) {
        return {.heap = heap_.get(), .wish = {}};
    }
    claimed_ = claims;
    if (!door_.has_value()) {
        if (Result<shm::Door> door = shm::Door::open(); door.ok()) {
            door_ = std::move(*door);
        } else {
            return {.heap = nullptr, .wish = shm::HeapWish()}; // Told when the heap is made.
        }
    }
    const Result<shm::HeapWish> wish = shm::Heap::wish(options_, *door_);
    return {.heap = nullptr,
            .wish = wish.ok() ? *wish : shm::HeapWish{.token = door_->token(), .key = {}}};
}

bool NodeMemory::claim(const shm::Token& wish) {
    const std::lock_guard lock(mutex_);
    const shm::Token now = door_.has_value() ? door_->token() : shm::Token();
    if (heap_ != nullptr || claimed_ || now != wish) {
        return false;
    }
    claimed_ = true;
    return true;
}

void NodeMemory::release_claim() {
    const std::lock_guard lock(mutex_);
    claimed_ = false;
}

std::unique_ptr<shm::HeapJoin> NodeMemory::join(std::span<const shm::HeapWish> wishes,
                                                std::size_t self,
                                                std::chrono::steady_clock::time_point deadline) {
    std::vector<shm::HeapWish> members;
    std::size_t place = 0;
    for (std::size_t i = 0; i < wishes.size(); ++i) {
        place = i == self ? members.size() : place;
        if (wishes[i].capacity_bytes > 0) {
            members.push_back(wishes[i]);
        }
    }
    if (wishes[self].capacity_bytes == 0 || members.size() == 1) {
        return nullptr;
    }
    const std::lock_guard lock(mutex_);
    UCG_ASSERT(heap_ == nullptr && door_.has_value());
    shm::Door door = std::move(*door_);
    door_.reset();
    return std::make_unique<shm::HeapJoin>(options_, std::move(door), std::move(members), place,
                                           deadline);
}

/// If the join failed, peers that miss this process are told: they then need not wait for their
/// time-out. Where a peer was gone, or gave the join up, later groups try again: none of them waits
/// for that peer, and the heap of this process was never there for others to map.
Result<shm::Heap*> NodeMemory::take_joined(Result<std::unique_ptr<shm::Heap>> joined) {
    Result<shm::Heap*> taken = [&] {
        const std::lock_guard lock(mutex_);
        return take(std::move(joined));
    }();
    if (!taken.ok() && taken.status().code() != Code::unreachable) {
        give_up();
    }
    return taken;
}

/// Other groups may have been made, or have failed, since the heap was told of. A heap that was
/// given up may end at any time.
Result<shm::Heap*> NodeMemory::heap_of(const shm::Token& token) {
    const std::lock_guard lock(mutex_);
    if (failed_ || (heap_ != nullptr && heap_->address().token != token)) {
        return failure(Code::io_error, "this process has given its shared memory up meanwhile");
    }
    return heap_locked();
}

Result<shm::Heap*> NodeMemory::heap_locked() {
    if (heap_ != nullptr) {
        return heap_.get();
    }
    if (!door_.has_value()) {
        return take(shm::Heap::create(options_));
    }
    shm::Door door = std::move(*door_);
    door_.reset();
    return take(shm::Heap::create(options_, std::move(door)));
}

Result<shm::Heap*> NodeMemory::take(Result<std::unique_ptr<shm::Heap>> made) {
    if (!made.ok()) {
        return made.status();
    }
    Result<shm::Sleeper*> sleeper = (*made)->sleeper();
    if (!sleeper.ok()) {
        return sleeper.status();
    }
    heap_ = std::move(*made);
    sleep_.sleep_by({heap_, *sleeper});
    return heap_.get();
}

Status NodeMemory::make_heap() {
    const std::lock_guard lock(mutex_);
    if (claimed_) {
        return Status(Code::busy, "ucg_mem_alloc: the first group, whose ranks are to share "
                                  "memory, is being made; ask again when it is made");
    }
    return heap_locked().status();
}

Result<std::byte*> NodeMemory::allocate(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const Result<shm::Heap*> node_heap = heap_locked();
    if (!node_heap.ok()) {
        return node_heap.status();
    }
    Result<shm::Lease> lease = (*node_heap)->lease(bytes);
    if (!lease.ok()) {
        return lease.status();
    }
    std::byte* data = lease->data();
    leased_.emplace(data, std::move(*lease));
    return data;
}

bool NodeMemory::release(const std::byte* data) {
    bool found = false;
    {
        const std::lock_guard lock(mutex_);
        found = leased_.erase(data) == 1;
    }
    drop_unused();
    return found;
}

void NodeMemory::give_up() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    if (heap_ != nullptr) {
        heap_->withdraw();
    }
}

void NodeMemory::drop_unused() {
    const std::lock_guard lock(mutex_);
    if (failed_ && heap_ != nullptr && heap_->unused()) {
        sleep_.sleep_alone();
        heap_.reset();
    }
}

void NodeMemory::collect() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock() && heap_ != nullptr) {
        heap_->collect();
    }
}

/// Many groups, and small heaps, must do with little: a ring has no more than a 2048th of what is
/// left, so that however many groups there are, further ones share memory, too.
std::uint64_t NodeMemory::ring_bytes(bool many) {
    constexpr std::uint64_t kPartOfHeap = 64;
    constexpr std::uint64_t kPartOfRest = 2048;
    constexpr std::uint64_t kLeast = std::uint64_t{16} << 10;
    const std::uint64_t few = transport::ShmOptions().ring_bytes;
    const std::lock_guard lock(mutex_);
    const std::uint64_t heap = heap_ == nullptr ? options_.capacity_bytes : heap_->free_bytes();
    // Rounded, so that what a group takes does not make the next one another kind.
    return many ? std::clamp(std::bit_floor(heap / kPartOfRest), kLeast, few)
                : std::max(few, std::bit_floor(heap / kPartOfHeap));
}

} // namespace ucg::capi
