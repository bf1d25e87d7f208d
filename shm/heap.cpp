#include "shm/heap.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <new>
#include <sys/resource.h>
#include <sys/socket.h>
#include <utility>

#include "shm/budget.hpp"
#include "shm/exchange.hpp"

namespace ucg::shm {
namespace {

constexpr std::uint64_t kCapacityMin = std::uint64_t{1} << 20;
constexpr std::uint64_t kCapacityShare = 4; // Of the memory there is.
constexpr std::uint64_t kLeaseShare = 2;    // Of the memory that is left: of all lessees together.
constexpr std::uint64_t kAddressShare = 2;  // Of the address space that is left.
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// How large a file may grow. Beyond it there is no error but the signal SIGXFSZ, so the limit is
/// asked for and not tried.
std::uint64_t file_bytes_max() {
    rlimit limit = {};
    const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? limit.rlim_cur : kNoLimit;
}

/// What RLIMIT_AS leaves to this process.
std::uint64_t address_bytes_left() {
    rlimit limit = {};
    std::uint64_t pages = 0;
    std::ifstream usage("/proc/self/statm");
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !(usage >> pages)) {
        return kNoLimit;
    }
    return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, pages * page_bytes());
}

/// The wish, reduced to what this process may have, in whole pages; at least one of them.
Result<std::uint64_t> allowed_capacity(const HeapOptions& options) {
    const std::uint64_t file_max = file_bytes_max();
    if (file_max < page_bytes()) {
        return failure(Code::out_of_memory,
                       "the file size limit of this process ({} bytes, ulimit -f) leaves no room "
                       "for a node heap: raise it",
                       file_max);
    }
    const std::uint64_t address_max = address_bytes_left() / kAddressShare / options.mappings;
    if (address_max < page_bytes()) {
        return failure(Code::out_of_memory,
                       "the address space limit of this process (ulimit -v) leaves no room for the "
                       "node heaps of {} processes: raise it",
                       options.mappings);
    }
    const std::uint64_t capacity = std::min(
        {options.capacity_bytes, address_max, file_max, memory_budget().total / kCapacityShare});
    if (capacity < page_bytes()) {
        return failure(Code::out_of_memory,
                       "a node heap of {} bytes is less than a page: raise its capacity", capacity);
    }
    return capacity / page_bytes() * page_bytes();
}

/// Halves the wish until the address space (RLIMIT_AS) has room for it.
Result<std::unique_ptr<Segment>> largest_segment(std::uint64_t capacity) {
    auto segment = Segment::create(capacity);
    while (!segment.ok() && segment.status().code() == Code::out_of_memory &&
           capacity / 2 >= kCapacityMin) {
        capacity = round_up(capacity / 2, page_bytes());
        segment = Segment::create(capacity);
    }
    return segment;
}

/// The heaps of this process, so that ranks that are its threads keep one another's segments.
struct SegmentsInProcess {
    std::mutex mutex;
    std::map<Token, std::weak_ptr<Segment>> by_token;
};

/// Never destroyed: a heap may end after the statics of the program.
SegmentsInProcess& segments_in_process() {
    static auto& segments = *new SegmentsInProcess;
    return segments;
}

} // namespace

Lease::Lease(Lease&& other) noexcept
    : heap_(std::exchange(other.heap_, nullptr)), data_(std::exchange(other.data_, nullptr)),
      offset_(std::exchange(other.offset_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
    std::swap(heap_, other.heap_);
    std::swap(data_, other.data_);
    std::swap(offset_, other.offset_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

Lease::~Lease() {
    if (heap_ != nullptr) {
        heap_->give_back(offset_, bytes_);
    }
}

Result<std::unique_ptr<Heap>> Heap::create(const HeapOptions& options) {
    const Result<std::uint64_t> capacity = allowed_capacity(options);
    if (!capacity.ok()) {
        return capacity.status();
    }
    std::unique_ptr<Segment> segment = Segment::of_process();
    if (segment == nullptr) {
        auto made = largest_segment(*capacity);
        if (!made) {
            return made.status();
        }
        segment = std::move(*made);
    }
    auto token = random_token();
    auto key = random_token();
    if (!token || !key) {
        return token ? key.status() : token.status();
    }
    auto listener = listen_for_peers(*token);
    if (!listener) {
        return listener.status();
    }
    const HeapAddress address = {*token, *key, segment->bytes()};
    const std::uint64_t leasable = std::min(*capacity, segment->own_bytes());
    return std::unique_ptr<Heap>(
        new Heap(std::move(segment), leasable, options.lessees, address, std::move(*listener)));
}

Heap::Heap(std::unique_ptr<Segment> segment, std::uint64_t capacity_bytes, unsigned lessees,
           const HeapAddress& address, Descriptor listener)
    : segment_(std::move(segment)), capacity_bytes_(capacity_bytes), lessees_(lessees),
      address_(address), listener_(std::move(listener)), ranges_(capacity_bytes) {
    SegmentsInProcess& all = segments_in_process();
    const std::lock_guard lock(all.mutex);
    all.by_token[address.token] = segment_;
}

std::shared_ptr<Segment> Heap::segment_in_process(const Token& token) {
    SegmentsInProcess& all = segments_in_process();
    const std::lock_guard lock(all.mutex);
    const auto found = all.by_token.find(token);
    return found == all.by_token.end() ? nullptr : found->second.lock();
}

Heap::~Heap() {
    stop_listening();
    collect();
    bell_ = Lease();
    for (Retired& retired : retired_) { // Not discarded: peers may still read it.
        retired.lease.heap_ = nullptr;
        ranges_.give_back(retired.lease.offset_, retired.lease.bytes_);
    }
    if (!retired_.empty() && serves_malloc()) {
        // The process's segment would serve its next heap, at the same places: that heap is to get
        // another one.
        static_cast<void>(new (std::nothrow) std::shared_ptr<Segment>(segment_));
    }
    UCG_ASSERT(ranges_.free_bytes() == capacity_bytes_);
    // Whichever heap of the process lets go of a segment last ends it, after the others' last use.
    SegmentsInProcess& all = segments_in_process();
    const std::lock_guard lock(all.mutex);
    all.by_token.erase(address_.token);
    peers_.clear();
    segment_.reset();
}

Result<Lease> Heap::lease(std::uint64_t bytes) {
    if (bytes == 0) {
        return Status(Code::invalid_argument, "a lease of the node heap must have bytes");
    }
    // Every rank of a host finds the same shortage, so the caller reports it, once per host.
    if (bytes > capacity_bytes_) {
        return failure(Code::out_of_memory,
                       "the node heap has {} bytes per process, {} are wanted: raise its capacity",
                       capacity_bytes_, bytes);
    }
    const std::uint64_t size = round_up(bytes, page_bytes());
    // They all look at the same moment, when none of them has taken anything yet.
    const std::uint64_t available = memory_budget().available;
    if (size > available / kLeaseShare / lessees_) {
        return failure(Code::out_of_memory,
                       "leases of {} bytes by {} processes would take most of the {} bytes of "
                       "memory that this host or control group has left",
                       size, lessees_, available);
    }
    collect();
    const std::lock_guard lock(mutex_);
    const auto offset = ranges_.take(size);
    if (!offset) {
        return failure(
            Code::out_of_memory,
            "the node heap has {} of {} bytes free, the largest piece {}, wanted {}: raise "
            "its capacity or free communicators",
            ranges_.free_bytes(), capacity_bytes_, ranges_.largest_free(), size);
    }
    if (Status status = segment_->reserve(*offset, size); !status.ok()) {
        ranges_.give_back(*offset, size);
        return status;
    }
    return Lease(*this, segment_->base() + *offset, *offset, size);
}

void Heap::retire(Lease lease, std::vector<const std::atomic<std::uint64_t>*> left) {
    {
        const std::lock_guard lock(mutex_);
        retired_.push_back({std::move(lease), std::move(left)});
        retired_count_ = retired_.size();
    }
    collect();
}

/// Acquire: what peers read, they read before the memory goes to somebody else.
void Heap::collect_retired() {
    std::vector<Retired> over; // Given back without the lock, which that takes.
    const std::lock_guard lock(mutex_);
    const auto waits = [](const Retired& retired) {
        return std::any_of(retired.left.begin(), retired.left.end(), [](const auto* word) {
            return word->load(std::memory_order_acquire) == 0;
        });
    };
    const auto first = std::partition(retired_.begin(), retired_.end(), waits);
    over.insert(over.end(), std::make_move_iterator(first),
                std::make_move_iterator(retired_.end()));
    retired_.erase(first, retired_.end());
    retired_count_ = retired_.size();
}

void Heap::give_back(std::uint64_t offset, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    segment_->discard(offset, bytes);
    ranges_.give_back(offset, bytes);
}

std::uint64_t Heap::free_bytes() {
    collect();
    const std::lock_guard lock(mutex_);
    return ranges_.free_bytes();
}

Result<Sleeper*> Heap::sleeper() {
    const std::lock_guard lock(sleeper_mutex_);
    if (sleeper_ == nullptr) {
        auto leased = lease(sizeof(Doorbell));
        if (!leased) {
            return leased.status();
        }
        bell_ = std::move(*leased);
        sleeper_ = std::make_unique<Sleeper>(*reinterpret_cast<Doorbell*>(bell_.data()));
    }
    return sleeper_.get();
}

Status Heap::attach(std::span<const HeapAddress> peers, std::chrono::milliseconds timeout) {
    const std::lock_guard lock(attach_mutex_);
    if (!listener_.valid()) {
        return Status(Code::unreachable,
                      "shared memory: this process has withdrawn its node heap from further peers");
    }
    Exchange exchange(*this, peers);
    if (exchange.complete()) {
        return Status();
    }
    unmap_ended(); // Before there are more.
    return exchange.run(std::chrono::steady_clock::now() + timeout);
}

void Heap::withdraw() {
    const std::lock_guard lock(attach_mutex_);
    stop_listening();
}

/// Resets who waits to be heard and refuses who calls later. A forked child may have the socket,
/// too, so closing it would not do.
void Heap::stop_listening() {
    if (const int listener = listener_.get(); listener >= 0) {
        ::shutdown(listener, SHUT_RDWR);
        for (Descriptor caller = next_caller(listener); caller.valid();) {
            caller = next_caller(listener);
        }
    }
    listener_.reset();
}

void Heap::add_peer(const Token& token, Peer peer) {
    const std::lock_guard lock(mutex_);
    peers_.emplace(token, std::make_shared<const Peer>(std::move(peer)));
}

/// Peers whose heaps have ended call nobody any more and are called by nobody. One that lives is
/// kept: it may have this heap mapped, and would not pass its own again.
void Heap::unmap_ended() {
    const std::lock_guard lock(mutex_);
    std::erase_if(peers_, [](const auto& entry) {
        return entry.second.use_count() == 1 && !somebody_listens(entry.first);
    });
}

std::byte* Heap::base_of(const Token& token) const {
    return hold(token).get();
}

std::shared_ptr<std::byte> Heap::hold(const Token& token) const {
    if (token == address_.token) {
        return {segment_, segment_->base()};
    }
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(token);
    return found == peers_.end() ? nullptr
                                 : std::shared_ptr<std::byte>(found->second, found->second->base);
}

std::optional<HeapPlace> Heap::locate(const std::byte* data, std::uint64_t bytes) const {
    const auto first = reinterpret_cast<std::uintptr_t>(data);
    const auto base = reinterpret_cast<std::uintptr_t>(segment_->base());
    if (first < base || first - base > segment_->bytes() ||
        bytes > segment_->bytes() - (first - base)) {
        return std::nullopt;
    }
    return HeapPlace{address_.token, first - base};
}

} // namespace ucg::shm
