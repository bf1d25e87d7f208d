#include "shm/heap.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <utility>

#include "shm/budget.hpp"
#include "shm/exchange.hpp"
#include "shm/mappings.hpp"

namespace ucg::shm {
namespace {

constexpr std::uint64_t kCapacityMin = std::uint64_t{1} << 20;
constexpr std::uint64_t kCapacityShare = 4; // A heap has at most 1/4 of the memory there is,
constexpr std::uint64_t kLeaseShare = 2;    // all lessees 1/2 of the memory that is left,
constexpr std::uint64_t kAddressShare = 2;  // all heaps 1/2 of the address space that is left.
/// So much of a process's share may be taken before the memory that is left is read again.
constexpr std::uint64_t kAllowanceShare = 64;
constexpr std::uint64_t kAllowanceMax = std::uint64_t{1} << 20;
constexpr unsigned kShareUses = 64; // So many calls of expect() use one reading.
/// Retired ranges that are kept for the next of their kind: so many, with so many bytes of pages.
constexpr std::size_t kKeptMax = 24;
constexpr std::uint64_t kKeptBytesMax = std::uint64_t{1} << 20;
/// The pause between two looks whether the peers exist that have not left retired memory.
constexpr auto kAskPause = std::chrono::seconds(1);
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// Returns how large a file may grow. Beyond that there is no error but the signal SIGXFSZ, so the
/// limit is asked for and not tried.
std::uint64_t file_bytes_max() {
    rlimit limit = {};
    const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? limit.rlim_cur : kNoLimit;
}

/// Returns the bytes of address space that RLIMIT_AS leaves to this process.
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

/// Returns the wanted capacity, reduced to what this process may have, in whole pages; at least
/// one.
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
                       "a node heap of {} bytes is no page: raise UCG_HEAP_SIZE", capacity);
    }
    return capacity / page_bytes() * page_bytes();
}

/// Makes a segment; halves the capacity until the address space (RLIMIT_AS) has room for it.
Result<std::unique_ptr<SharedSegment>> largest_segment(std::uint64_t capacity) {
    auto segment = SharedSegment::create(capacity);
    while (!segment.ok() && segment.status().code() == Code::out_of_memory &&
           capacity / 2 >= kCapacityMin) {
        capacity = round_up(capacity / 2, page_bytes());
        segment = SharedSegment::create(capacity);
    }
    return segment;
}

} // namespace

Lease::Lease(Lease&& other) noexcept
    : heap_(std::exchange(other.heap_, nullptr)), data_(std::exchange(other.data_, nullptr)),
      offset_(std::exchange(other.offset_, 0)), bytes_(std::exchange(other.bytes_, 0)),
      start_(std::exchange(other.start_, 0)), backed_(std::exchange(other.backed_, 0)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
    std::swap(heap_, other.heap_);
    std::swap(data_, other.data_);
    std::swap(offset_, other.offset_);
    std::swap(bytes_, other.bytes_);
    std::swap(start_, other.start_);
    std::swap(backed_, other.backed_);
    return *this;
}

Lease::~Lease() {
    if (heap_ != nullptr) {
        heap_->give_back(*this);
    }
}

Status Lease::back(std::uint64_t bytes) {
    const std::uint64_t wanted = round_up(bytes, page_bytes());
    if (wanted <= backed_) {
        return {};
    }
    UCG_ASSERT(wanted <= bytes_);
    if (Status status = heap_->take_pages(offset_ + backed_, wanted - backed_); !status.ok()) {
        return status;
    }
    backed_ = wanted;
    return {};
}

Result<std::unique_ptr<Heap>> Heap::create(const HeapOptions& options) {
    Result<Door> door = Door::open();
    if (!door.ok()) {
        return door.status();
    }
    return create(options, std::move(*door));
}

Result<std::unique_ptr<Heap>> Heap::create(const HeapOptions& options, Door door) {
    const Result<std::uint64_t> capacity = allowed_capacity(options);
    if (!capacity.ok()) {
        return capacity.status();
    }
    std::unique_ptr<SharedSegment> segment = SharedSegment::of_process();
    if (segment == nullptr) {
        auto made = largest_segment(*capacity);
        if (!made) {
            return made.status();
        }
        segment = std::move(*made);
    }
    const Part part = {0, std::min(*capacity, segment->own_bytes())};
    if (segment->own_bytes() < segment->bytes()) {
        // A preloaded one: mlockall() would back the holes of all that can be touched. If this
        // fails, nothing else is lost.
        ::mprotect(segment->base() + part.bytes, segment->own_bytes() - part.bytes, PROT_NONE);
    }
    const Token token = door.token();
    std::unique_ptr<Heap> heap(new Heap(std::move(segment), {Part{}, Part{}, part}, options.lessees,
                                        token, std::move(door)));
    note_mapping(token, heap->segment_);
    return heap;
}

Result<HeapWish> Heap::wish(const HeapOptions& options, const Door& door) {
    HeapWish wish = {door.token(), door.key(), 0, file_bytes_max()};
    if (!SharedSegment::process_has_one()) {
        const Result<std::uint64_t> capacity = allowed_capacity(options);
        if (!capacity.ok()) {
            return capacity.status();
        }
        wish.capacity_bytes = *capacity;
    }
    return wish;
}

Heap::Heap(std::shared_ptr<SharedSegment> segment, const Parts& parts, unsigned lessees,
           const Token& segment_token, Door door)
    : segment_(std::move(segment)), parts_(parts), capacity_bytes_(part(Where::part).bytes),
      lessees_(lessees), door_(std::move(door)), address_{door_.token(), door_.key(), segment_token,
                                                          segment_->bytes(), segment_->own_bytes()},
      free_{Ranges(parts[0].bytes), Ranges(parts[1].bytes), Ranges(parts[2].bytes)},
      exchange_(std::make_unique<DescriptorExchange>(*this)) {
    kept_.reserve(kKeptMax);
}

std::uint64_t Heap::part_bytes() const {
    return parts_[0].bytes + parts_[1].bytes + parts_[2].bytes;
}

/// REQUIRES: the caller holds the lock.
std::uint64_t Heap::bytes_in_free() const {
    std::uint64_t bytes = 0;
    for (const Ranges& free : free_) {
        bytes += free.free_bytes();
    }
    return bytes;
}

/// REQUIRES: the caller holds the lock.
std::uint64_t Heap::bytes_retired() const {
    std::uint64_t bytes = 0;
    for (const Retired& retired : retired_) {
        for (const Lease& lease : retired.leases) {
            bytes += lease.bytes();
        }
    }
    return bytes;
}

Heap::~Heap() {
    door_.shut();
    collect();
    bell_ = Lease();
    drop_kept();
    for (Retired& retired : retired_) { // Not discarded: peers may still read it.
        for (Lease& lease : retired.leases) {
            if (lease.bytes() > 0) {
                lease.heap_ = nullptr;
                give_free(lease.offset_, lease.bytes_);
            }
        }
    }
    const std::uint64_t lost_bytes = lost_bytes_.load(std::memory_order_relaxed);
    if ((!retired_.empty() || lost_bytes > 0) && serves_malloc()) {
        // The preloaded segment would serve the next heap of the process, at the same places. It is
        // never given back, so that heap gets another one.
        static_cast<void>(new (std::nothrow) std::shared_ptr<SharedSegment>(segment_));
    }
    UCG_ASSERT(bytes_in_free() + lost_bytes == part_bytes());
    let_go([this] {
        peers_.clear();
        segment_.reset();
    });
}

Result<Lease> Heap::lease(std::uint64_t bytes) {
    return reserve(bytes, bytes);
}

Result<Lease> Heap::reserve(std::uint64_t bytes, std::uint64_t backed) {
    return reserve(bytes, backed, Where::part);
}

Result<Lease> Heap::reserve_close(std::uint64_t bytes, std::uint64_t backed) {
    return reserve(bytes, backed, Where::close);
}

Result<Lease> Heap::reserve_near(std::uint64_t bytes, std::uint64_t backed) {
    return reserve(bytes, backed, Where::near);
}

Result<Lease> Heap::reserve(std::uint64_t bytes, std::uint64_t backed, Where where) {
    if (bytes == 0) {
        return Status(Code::invalid_argument, "a lease of the node heap must have bytes");
    }
    // Every rank of a host finds the same shortage, so the caller reports it, once per host.
    if (bytes > capacity_bytes_) {
        return failure(Code::out_of_memory,
                       "the node heap has {} bytes per process, {} are wanted: raise UCG_HEAP_SIZE",
                       capacity_bytes_, bytes);
    }
    const std::uint64_t size = round_up(bytes, page_bytes());
    const std::uint64_t start = backs_pages() ? round_up(backed, page_bytes()) : size;
    if (start < size) {
        if (Status status = expect(size); !status.ok()) {
            return status;
        }
    }
    collect();
    if (std::optional<Lease> kept = take_kept(size, start)) {
        return std::move(*kept);
    }
    Result<std::uint64_t> offset = take_range(size, where, start == 0);
    if (!offset.ok()) {
        return offset.status();
    }
    if (Status status = take_pages(*offset, start); !status.ok()) {
        const std::lock_guard lock(mutex_);
        give_free(*offset, size);
        return status;
    }
    return Lease(*this, segment_->base() + *offset, *offset, size, start);
}

Result<std::uint64_t> Heap::take_range(std::uint64_t size, Where where, bool bare) {
    const std::lock_guard lock(mutex_);
    auto offset = take_free(size, where, bare);
    if (!offset) {
        drop_kept();
        offset = take_free(size, where, bare);
    }
    if (!offset) {
        return failure(
            Code::out_of_memory,
            "the node heap has {} of {} bytes free, the largest piece {}, wanted {}; peers still "
            "use {} of communicators that are freed here: raise its capacity or free communicators",
            free_in(Where::part).free_bytes(), capacity_bytes_, free_in(Where::part).largest_free(),
            size, bytes_retired());
    }
    return *offset;
}

/// Takes a free range of that part, or of the large one. Offsets are from the segment's start. What
/// has pages, which all peers touch, lies together for the sake of their page tables; what is
/// `bare` lies at the end. REQUIRES, as does give_free(): the caller holds the lock.
std::optional<std::uint64_t> Heap::take_free(std::uint64_t bytes, Where where, bool bare) {
    for (const Where at : {where, Where::part}) {
        Ranges& free = free_in(at);
        if (const auto taken =
                bare && at == Where::part ? free.take_last(bytes) : free.take(bytes)) {
            return part(at).offset + *taken;
        }
    }
    return std::nullopt;
}

void Heap::give_free(std::uint64_t offset, std::uint64_t bytes) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (offset - parts_[i].offset < parts_[i].bytes) {
            free_[i].give_back(offset - parts_[i].offset, bytes);
        }
    }
}

/// Gives pages to a range that is taken.
Status Heap::take_pages(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) {
        return {};
    }
    if (Status status = allow(bytes); !status.ok()) {
        return status;
    }
    return segment_->reserve(offset, bytes);
}

Status Heap::back(std::byte* data, std::uint64_t bytes) {
    if (!backs_pages()) {
        return {}; // All has had pages from the start.
    }
    if (Status status = allow(bytes); !status.ok()) {
        return status;
    }
    return back_pages(data, bytes);
}

/// Fails if so many bytes may not be taken now. Reads what memory is left once for many small
/// ranges.
Status Heap::allow(std::uint64_t bytes) {
    {
        const std::lock_guard lock(mutex_);
        if (bytes <= allowance_) {
            allowance_ -= bytes;
            return {};
        }
    }
    const std::uint64_t share = read_share();
    if (bytes > share) {
        return too_much(bytes, share);
    }
    const std::lock_guard lock(mutex_);
    allowance_ = std::min(kAllowanceMax, (share - bytes) / kAllowanceShare);
    return {};
}

/// Fails if so much memory is not left that what is only reserved would find its pages later. Uses
/// a reading of a while ago.
Status Heap::expect(std::uint64_t bytes) {
    {
        const std::lock_guard lock(mutex_);
        if (share_uses_ > 0 && bytes <= share_) {
            --share_uses_;
            return {};
        }
    }
    const std::uint64_t share = read_share();
    return bytes > share ? too_much(bytes, share) : Status();
}

/// Reads and returns this process's share of the memory that is left. All processes of a host may
/// look at the same moment, when none of them has taken anything yet.
std::uint64_t Heap::read_share() {
    const std::uint64_t share = memory_budget().available / kLeaseShare / lessees_;
    const std::lock_guard lock(mutex_);
    share_ = share;
    share_uses_ = kShareUses;
    return share;
}

Status Heap::too_much(std::uint64_t bytes, std::uint64_t share) const {
    return failure(Code::out_of_memory,
                   "leases of {} bytes by {} processes would take most of the {} bytes of memory "
                   "that this host or control group has left",
                   bytes, lessees_, share * lessees_ * kLeaseShare);
}

/// Takes a range that was kept, if there is one of that kind, and writes zeros to its pages, which
/// are likely in caches.
std::optional<Lease> Heap::take_kept(std::uint64_t bytes, std::uint64_t backed) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
        return kept.bytes == bytes && kept.backed == backed;
    });
    if (found == kept_.end()) {
        return std::nullopt;
    }
    const std::uint64_t offset = found->offset;
    kept_.erase(found);
    if (backed > 0) {
        std::memset(segment_->base() + offset, 0, backed);
    }
    return Lease(*this, segment_->base() + offset, offset, bytes, backed);
}

/// Keeps a range for the next of its kind, or gives it back. Keeps only the pages with which the
/// lease began: the next one may not need others. REQUIRES: the caller holds the lock.
void Heap::keep(Lease& lease, bool pages_added) {
    if (lease.start_ > kKeptBytesMax) {
        segment_->discard(lease.offset_, lease.bytes_);
        give_free(lease.offset_, lease.bytes_);
    } else {
        make_room(lease.start_);
        const std::uint64_t end = pages_added ? lease.bytes_ : lease.backed_;
        if (end > lease.start_) {
            segment_->discard(lease.offset_ + lease.start_, end - lease.start_);
        }
        kept_.push_back({lease.offset_, lease.bytes_, lease.start_});
    }
    lease.heap_ = nullptr;
    lease.bytes_ = 0; // What follows may fail, and would come by here again.
}

/// Gives back the ranges that were kept first, for one more with so many bytes of pages: perhaps no
/// lease wants their kind any more. REQUIRES: the caller holds the lock; backed <= kKeptBytesMax.
void Heap::make_room(std::uint64_t backed) {
    std::uint64_t bytes = backed;
    for (const Kept& kept : kept_) {
        bytes += kept.backed;
    }
    while (kept_.size() == kKeptMax || bytes > kKeptBytesMax) {
        bytes -= kept_.front().backed;
        drop(kept_.front());
        kept_.erase(kept_.begin());
    }
}

/// Discards all of a range, so that the next lease finds zeros even if somebody has written behind
/// its start without saying so. REQUIRES: the caller holds the lock.
void Heap::drop(const Kept& kept) {
    segment_->discard(kept.offset, kept.bytes);
    give_free(kept.offset, kept.bytes);
}

/// Gives all kept ranges back. REQUIRES: the caller holds the lock.
void Heap::drop_kept() {
    while (!kept_.empty()) {
        drop(kept_.back());
        kept_.pop_back();
    }
}

void Heap::retire(Leases leases, Leavers leavers) noexcept {
    retiring_.fetch_add(1, std::memory_order_relaxed);
    Retired retired = {std::move(leases), std::move(leavers)};
    try {
        {
            const std::lock_guard lock(mutex_);
            retired_.push_back(std::move(retired));
            retired_count_ = retired_.size();
        }
        collect();
    } catch (const std::bad_alloc&) {
        for (Lease& lease : retired.leases) { // Peers may still read it, so nobody else gets it.
            lease.heap_ = nullptr;
            lost_bytes_.fetch_add(lease.bytes_, std::memory_order_relaxed);
        }
    }
    retiring_.fetch_sub(1, std::memory_order_release); // The heap may end from now on.
}

/// Returns whether peers still look at it. Acquire: their reads come before the memory is leased
/// again. `ask`: ask whether the first of them has ended. Who has ended may have given pages to it.
bool Heap::Retired::waits(bool ask) {
    for (; awaited < leavers.count; ++awaited) {
        if (leavers.marks[awaited].load(std::memory_order_acquire) == LeftMark::none) {
            if (!ask || awaited >= leavers.processes.size() ||
                !has_ended(leavers.processes[awaited])) {
                return true;
            }
            leavers.pages_added = true;
        }
    }
    return false;
}

/// Returns whether it may have more pages than those known to the leases. REQUIRES: it does not
/// wait.
bool Heap::Retired::pages_added() const {
    return leavers.pages_added ||
           std::any_of(leavers.marks, leavers.marks + leavers.count,
                       [](const std::atomic<LeftMark>& mark) {
                           return mark.load(std::memory_order_relaxed) == LeftMark::left_pages;
                       });
}

void Heap::collect_retired() {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    const bool ask = now - asked_ >= kAskPause;
    asked_ = ask ? now : asked_;
    const auto first = std::partition(retired_.begin(), retired_.end(),
                                      [ask](Retired& retired) { return retired.waits(ask); });
    for (auto retired = first; retired != retired_.end(); ++retired) {
        const bool pages_added = retired->pages_added();
        for (Lease& lease : retired->leases) {
            if (lease.bytes() > 0) {
                keep(lease, pages_added);
            }
        }
    }
    retired_.erase(first, retired_.end());
    retired_count_ = retired_.size();
}

bool Heap::unused() {
    const std::uint64_t free = free_bytes();
    const std::lock_guard lock(mutex_);
    return free + bell_.bytes() == part_bytes() && retiring_.load(std::memory_order_acquire) == 0;
}

void Heap::give_back(const Lease& lease) {
    const std::lock_guard lock(mutex_);
    segment_->discard(lease.offset_, lease.bytes_);
    give_free(lease.offset_, lease.bytes_);
}

std::uint64_t Heap::free_bytes() {
    collect();
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = bytes_in_free();
    for (const Kept& kept : kept_) {
        bytes += kept.bytes;
    }
    return bytes;
}

PeerAccess& Heap::access_to(const AccessTicket& ticket) {
    const std::lock_guard lock(mutex_);
    const auto [known, fresh] = access_.try_emplace(ticket);
    if (fresh) {
        const bool reads = can_read(ticket);
        known->second.permit(reads, reads && can_write(ticket));
    }
    return known->second;
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
