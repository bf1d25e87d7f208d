// The part of a heap that concerns its peers: how it comes to share a segment with theirs, and how
// it maps those of others.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "shm/exchange.hpp"
#include "shm/heap.hpp"

namespace ucg::shm {

HeapJoin::HeapJoin(const HeapOptions& options, Door door, std::vector<HeapWish> members,
                   std::size_t self, Clock::time_point deadline)
    : options_(options), door_(std::move(door)), members_(std::move(members)), self_(self),
      bootstrap_(door_, members_, self, deadline) {}

std::optional<Result<std::unique_ptr<Heap>>> HeapJoin::step(Clock::time_point until) {
    std::optional<Result<std::shared_ptr<SharedSegment>>> met = bootstrap_.step(until);
    if (!met) {
        return std::nullopt;
    }
    if (!met->ok()) {
        return met->status();
    }
    return make(std::move(**met));
}

std::unique_ptr<Heap> HeapJoin::make(std::shared_ptr<SharedSegment> segment) {
    const CommonLayout layout(members_);
    const Heap::Part part = {layout.part(self_), layout.part_bytes(self_)};
    const Heap::Parts parts = {Heap::Part{layout.close(self_), layout.close_bytes()},
                               Heap::Part{layout.near(self_), layout.near_bytes()}, part};
    segment->guard(part.offset, part.bytes);
    auto* bell = reinterpret_cast<Doorbell*>(segment->base() + layout.bell(self_));
    std::unique_ptr<Heap> heap(
        new Heap(std::move(segment), parts, options_.lessees, members_[0].token, std::move(door_)));
    heap->sleeper_ = std::make_unique<Sleeper>(*bell);
    for (const HeapWish& member : members_) {
        heap->mates_.push_back(member.token);
    }
    std::sort(heap->mates_.begin(), heap->mates_.end());
    return heap;
}

Result<std::unique_ptr<Heap>> Heap::join(const HeapOptions& options, Door door,
                                         std::span<const HeapWish> members, std::size_t self,
                                         std::chrono::milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    HeapJoin join(options, std::move(door), {members.begin(), members.end()}, self, deadline);
    std::optional<Result<std::unique_ptr<Heap>>> heap;
    while (!(heap = join.step(deadline))) {
    }
    return std::move(*heap);
}

/// Orders the peers from those behind the own place on, so that not all call the first one at once.
HeapAttach::HeapAttach(Heap& heap, std::span<const HeapAddress> peers, Clock::time_point deadline)
    : heap_(heap), started_(Clock::now()), deadline_(deadline) {
    const auto own = std::find(peers.begin(), peers.end(), heap_.address_);
    const auto first = static_cast<std::size_t>(own - peers.begin());
    for (std::size_t i = 0; i < peers.size(); ++i) {
        const HeapAddress& peer = peers[(first + i) % peers.size()];
        if (!heap_.attached(peer.token)) {
            wanted_.push_back(peer);
        }
    }
    if (!wanted_.empty()) { // Otherwise nothing may be unmapped: the caller relies on all of them.
        const std::lock_guard lock(heap_.attach_mutex_);
        heap_.unmap_ended(); // Before there are more.
        mapped_ = heap_.keep_mapped();
        heap_.exchange_->want(wanted_);
    }
}

HeapAttach::~HeapAttach() {
    if (!wanted_.empty()) {
        const std::lock_guard lock(heap_.attach_mutex_);
        heap_.exchange_->forget(wanted_);
    }
}

std::vector<HeapAddress> HeapAttach::missing() const {
    std::vector<HeapAddress> missing;
    std::copy_if(wanted_.begin(), wanted_.end(), std::back_inserter(missing),
                 [&](const HeapAddress& peer) { return !heap_.attached(peer.token); });
    return missing;
}

std::optional<Status> HeapAttach::step(Clock::time_point until) {
    if (missing().empty()) {
        return Status();
    }
    const std::lock_guard lock(heap_.attach_mutex_);
    if (heap_.door_.number() < 0) {
        return Status(Code::unreachable,
                      "shared memory: this process has withdrawn its node heap from further peers");
    }
    return look_at(heap_.exchange_->step(std::min(until, deadline_)));
}

std::optional<Status> HeapAttach::look_at(const Status& stepped) const {
    const std::vector<HeapAddress> missing = this->missing();
    if (missing.empty()) {
        return Status();
    }
    if (!stepped.ok()) {
        return stepped;
    }
    if (Status status = heap_.exchange_->failure_of(missing); !status.ok()) {
        return status;
    }
    return Clock::now() >= deadline_ ? std::optional(late(missing)) : std::nullopt;
}

Status HeapAttach::late(std::span<const HeapAddress> missing) const {
    const auto waited =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_);
    return failure(
        Code::timed_out,
        "shared memory: {} processes of this host did not pass their node heaps within {} "
        "ms (the first is {})",
        missing.size(), waited.count(), to_text(missing.front().token));
}

Status Heap::attach(std::span<const HeapAddress> peers, std::chrono::milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    HeapAttach attach(*this, peers, deadline);
    std::optional<Status> status;
    while (!(status = attach.step(deadline))) {
    }
    return *status;
}

void Heap::withdraw() {
    const std::lock_guard lock(attach_mutex_);
    door_.shut();
}

void Heap::add_peer(const Token& token, std::shared_ptr<SharedSegment> mapping) {
    const std::lock_guard lock(mutex_);
    peers_.emplace(token, std::make_shared<const Peer>(Peer{std::move(mapping)}));
}

/// Lets go of the mappings that nobody holds of peers whose heaps have ended, which call nobody any
/// more and are called by nobody. One that lives is kept: it may have this heap mapped, and would
/// not pass its own again.
void Heap::unmap_ended() {
    const std::lock_guard lock(mutex_);
    std::erase_if(peers_, [none_keeps = mapped_.use_count() == 1](const auto& entry) {
        return none_keeps && entry.second.use_count() == 1 && !somebody_listens(entry.first);
    });
}

/// Returns a sum, so that the order does not matter. All bits of tokens are random.
std::uint64_t Heap::attached_digest() const {
    const auto add = [](std::uint64_t sum, const Token& token) {
        return sum + Hash().value(token.bits[0]).value(token.bits[1]).digest();
    };
    std::uint64_t sum = mates_.empty()
                            ? add(0, address_.token)
                            : std::accumulate(mates_.begin(), mates_.end(), std::uint64_t{0}, add);
    const std::lock_guard lock(mutex_);
    for (const auto& [token, peer] : peers_) {
        sum = add(sum, token);
    }
    return sum;
}

std::byte* Heap::base_of(const Token& token) const {
    return hold(token).get();
}

std::shared_ptr<std::byte> Heap::hold(const Token& token) const {
    if (token == address_.token || std::binary_search(mates_.begin(), mates_.end(), token)) {
        return {segment_, segment_->base()};
    }
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(token);
    return found == peers_.end()
               ? nullptr
               : std::shared_ptr<std::byte>(found->second, found->second->mapping->base());
}

} // namespace ucg::shm
