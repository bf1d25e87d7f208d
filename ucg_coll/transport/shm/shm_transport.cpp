#include "ucg_coll/transport/shm/shm_transport.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace ucg::transport {
namespace {

const char* what_is_wrong(Code code) {
    switch (code) {
    case Code::disagreement:
        return "a message of another length or algorithm than was awaited: the ranks of the "
               "collective gave different counts, datatypes or roots, or MPI_IN_PLACE at some of "
               "them only, or called different ones";
    case Code::out_of_memory: return "a message ahead of time for which there is no memory";
    default: return "a message that could not be read from its memory";
    }
}

} // namespace

Result<std::unique_ptr<ShmTransport>> ShmTransport::create(shm::Heap& heap, Ranks ranks_on_host,
                                                           Rank self_index,
                                                           const ShmOptions& options) {
    UCG_ASSERT(self_index >= 0 && static_cast<std::size_t>(self_index) < ranks_on_host.size());
    UCG_ASSERT(std::has_single_bit(options.outstanding_max));
    const RegionLayout layout =
        region_layout(static_cast<std::uint32_t>(ranks_on_host.size()), options);
    const auto index = static_cast<std::size_t>(self_index);
    auto lines = heap.reserve_close(layout.close_bytes(index), layout.lines_bytes(index));
    if (!lines) {
        return lines.status();
    }
    auto pairs = heap.reserve_near(layout.pairs_bytes(), 0);
    if (!pairs) {
        return pairs.status();
    }
    auto sleeper = heap.sleeper();
    if (!sleeper) {
        return sleeper.status();
    }
    shm::Lease staging;
    if (const std::uint64_t bytes =
            transport::staging_bytes(static_cast<std::uint32_t>(ranks_on_host.size()), options);
        bytes > 0) {
        auto leased = layout.all_at_first() ? heap.reserve(bytes, 0) : heap.reserve_close(bytes, 0);
        if (leased.ok()) {
            staging = std::move(*leased);
        }
    }
    return std::unique_ptr<ShmTransport>(new ShmTransport(heap, ranks_on_host, self_index, options,
                                                          std::move(*lines), std::move(*pairs),
                                                          std::move(staging), (*sleeper)->bell()));
}

ShmTransport::ShmTransport(shm::Heap& heap, Ranks ranks_on_host, Rank self_index,
                           const ShmOptions& options, shm::Lease lines, shm::Lease pairs,
                           shm::Lease staging, const shm::Doorbell& bell)
    : heap_(heap), bell_(bell), ranks_(ranks_on_host.begin(), ranks_on_host.end()),
      first_rank_(ranks_.front()),
      consecutive_(static_cast<std::size_t>(ranks_.back() - first_rank_) + 1 == ranks_.size()),
      self_(static_cast<std::uint32_t>(self_index)), options_(options),
      limits_(limits_of(options, ~std::uint64_t{0})),
      far_limits_(limits_of(options, options.far_copy_bytes_min)),
      shape_(ring_shape(static_cast<std::uint32_t>(ranks_.size()), options)),
      flag_slot_shape_(
          transport::flag_slot_shape(static_cast<std::uint32_t>(ranks_.size()), options)),
      staging_(std::move(staging)),
      layout_(shape_, flag_slot_shape_, options.outstanding_max, options.rings_at_first),
      lines_(std::move(lines)), pairs_(std::move(pairs)), sending_(ranks_.size()),
      receiving_(ranks_.size()) {
    auto& head = *reinterpret_cast<RegionHead*>(lines_.data());
    head.process = shm::own_process_number();
    if (options.single_copy_bytes_min != CopyLengths::never()) {
        head.ticket = shm::own_access_ticket();
    }
}

void ShmTransport::break_off() {
    reinterpret_cast<RegionHead*>(lines_.data())->absent.store(1, std::memory_order_relaxed);
    establish();
}

ShmAddress ShmTransport::address() const {
    const auto bell = heap_.locate(reinterpret_cast<const std::byte*>(&bell_), sizeof(bell_));
    UCG_ASSERT(bell.has_value());
    return {heap_.address(),
            lines_.offset(),
            pairs_.offset(),
            bell->offset,
            shape_,
            flag_slot_shape_,
            ranks_[self_],
            options_.outstanding_max,
            options_.rings_at_first,
            staging_.bytes()};
}

Status ShmTransport::check(std::span<const ShmAddress> addresses) const {
    UCG_ASSERT(addresses.size() == ranks_.size());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const ShmAddress& peer = addresses[i];
        const auto lies_within = [&](std::uint64_t offset, std::uint64_t bytes) {
            return offset <= peer.heap.capacity_bytes && bytes <= peer.heap.capacity_bytes - offset;
        };
        if (peer.rank != ranks_[i] || peer.shape != shape_ ||
            peer.flag_slot_shape != flag_slot_shape_ ||
            peer.outstanding_max != options_.outstanding_max ||
            peer.rings_at_first != options_.rings_at_first ||
            !lies_within(peer.lines_offset, layout_.close_bytes(i)) ||
            !lies_within(peer.pairs_offset, layout_.pairs_bytes()) ||
            !lies_within(peer.bell_offset, sizeof(shm::Doorbell))) {
            return failure(Code::disagreement,
                           "shared memory: rank {} has rings of {} slots of {} bytes and {} slots "
                           "of {} bytes for "
                           "its shares, rank {} has {} of {} and {} of {}: the settings must be "
                           "the same on all "
                           "ranks",
                           ranks_[self_], shape_.depth, shape_.slot_bytes, flag_slot_shape_.depth,
                           flag_slot_shape_.slot_bytes, peer.rank, peer.shape.depth,
                           peer.shape.slot_bytes, peer.flag_slot_shape.depth,
                           peer.flag_slot_shape.slot_bytes);
        }
    }
    return Status();
}

Status ShmTransport::connect(std::span<const ShmAddress> addresses) {
    UCG_ASSERT(sites_.empty());
    if (Status status = check(addresses); !status.ok()) {
        return status;
    }
    std::vector<shm::HeapAddress> heaps;
    for (const ShmAddress& peer : addresses) {
        heaps.push_back(peer.heap);
    }
    if (Status status = heap_.attach(heaps, options_.attach_timeout); !status.ok()) {
        return status;
    }
    staging_bytes_ = staging_.bytes();
    for (const ShmAddress& peer : addresses) {
        staging_bytes_ = std::min(staging_bytes_, peer.staging_bytes);
    }
    peers_ = LazyArray<Peer>(ranks_.size());
    locate(addresses);
    flag_slots_.emplace(flag_slot_shape_, self_, sites_[0].lines + layout_.flag_slot_lines(),
                        lines_.data() + layout_.flag_slot_buffers(self_), heap_);
    if (!consecutive_) {
        flag_slots_->never_at_once();
    }
    make_help();
    for (std::uint32_t i = 0; i < sites_.size(); ++i) {
        if (i != self_) {
            flag_slots_->connect(i, sites_[i].lines + layout_.flag_slot_buffers(i),
                                 *sites_[i].bell);
        }
        if (i != self_ && layout_.all_at_first()) {
            open(i);
        }
    }
    if (staging_bytes_ == 0) {
        staging_ = {}; // A rank of the group has none, so it is of no use.
    }
    log(LogLevel::info,
        "shared memory: rank {}, one of {} on its host, takes long messages of {} peers by one "
        "copy",
        ranks_[self_], ranks_.size(), single_copy_peers_);
    return Status();
}

/// Finds where the peers' memory is mapped. REQUIRES: the heaps are attached.
void ShmTransport::locate(std::span<const ShmAddress> addresses) {
    for (const ShmAddress& address : addresses) {
        std::shared_ptr<std::byte> segment = heap_.hold(address.heap.token);
        std::byte* base = segment.get();
        sites_.push_back({base, base + address.lines_offset, base + address.pairs_offset,
                          reinterpret_cast<shm::Doorbell*>(base + address.bell_offset)});
        if (segments_.empty() || segments_.back() != segment) { // Most ranks have the same one.
            segments_.push_back(std::move(segment));
        }
    }
}

bool ShmTransport::peers_wait_since(std::chrono::nanoseconds when) const {
    return std::ranges::all_of(sites_, [&](const Site& site) {
        return &site == &sites_[self_] || site.bell->waits_only.since(when);
    });
}

bool ShmTransport::reuses_buffers() const {
    const std::uint64_t rings = ranks_.size() * (ranks_.size() - 1);
    return !options_.own_processors && rings * shape_.buffers_bytes() > options_.cache_bytes;
}

/// Returns what is known of access to that process; null where single copies are switched off.
shm::PeerAccess* ShmTransport::access_to(const shm::AccessTicket& ticket) {
    return options_.single_copy_bytes_min == CopyLengths::never() ? nullptr
                                                                  : &heap_.access_to(ticket);
}

/// Returns when this rank looks up pages of that one. Of two ranks each is the only one that copies
/// from and to the other's memory.
shm::PageLookups ShmTransport::lookups(const Site& site) const {
    return ranks_.size() > 2 ? shm::PageLookups(site.head().lookups_until, options_.page_lookups)
                             : shm::PageLookups();
}

/// Makes the rings between this rank and a peer. Returns false, and the group has failed, where
/// there is no memory for their lines.
bool ShmTransport::open(std::uint32_t index) {
    std::byte* to = ring_lines(index, self_);
    std::byte* from = ring_lines(self_, index);
    if (to == nullptr || from == nullptr) {
        flag_slots_->lose(shm::Loss::memory);
        return !lost();
    }
    const Site& site = sites_[index];
    shm::PeerReach reach = {site.segment, {}, nullptr, site.head().process, lookups(site)};
    const shm::AccessTicket ticket = site.head().ticket;
    if (shm::PeerAccess* access = access_to(ticket); access != nullptr && access->reads()) {
        reach.process = ticket;
        reach.access = access;
        ++single_copy_peers_;
    }
    // Where the distance decides nothing, no read is timed.
    const bool far_matters =
        reach.reads() &&
        options_.far_copy_bytes_min < options_.single_copy_bytes_min[MessageUse::exchanged];
    const SingleCopyLimits& limits = far_matters ? far_limits_ : limits_;
    const auto buffers = [&](std::uint32_t receiver, std::uint32_t sender) {
        return sites_[receiver].pairs +
               layout_.ring_buffers(RegionLayout::ring_index(receiver, sender));
    };
    peers_.make(index, {Outbox({to, buffers(index, self_)}, from, shape_, *site.bell, heap_,
                               readable_, reach, reuses_buffers(), limits),
                        Inbox({from, buffers(self_, index)}, to, shape_, *site.bell, heap_,
                              spare_arrivals_, reach, options_.slow_pull, options_.own_processors,
                              options_.cooperative_copy_bytes_min, flag_slots_->loss_word())});
    return true;
}

/// Returns where the lines of that ring are mapped here; null if there is no memory for them.
std::byte* ShmTransport::ring_lines(std::uint32_t receiver, std::uint32_t sender) {
    const Site& site = sites_[receiver];
    if (layout_.all_at_first()) {
        return site.lines + layout_.first_ring(RegionLayout::ring_index(receiver, sender));
    }
    const std::uint32_t number = ring_number(receiver, sender);
    return number == 0                          ? nullptr
           : number <= layout_.rings_at_first() ? site.lines + layout_.first_ring(number - 1)
                                                : site.pairs + layout_.further_ring(number - 1);
}

/// Returns the number of the ring in the receiver's region, from 1. Whichever of the two ranks asks
/// first takes the receiver's next ring for their messages, and gives it pages. Where both do at
/// once one number is lost. 0 if there are no pages.
std::uint32_t ShmTransport::ring_number(std::uint32_t receiver, std::uint32_t sender) {
    const Site& site = sites_[receiver];
    auto& agreed =
        reinterpret_cast<std::atomic<std::uint32_t>*>(site.lines + layout_.numbers())[sender];
    std::uint32_t number = agreed.load(std::memory_order_acquire);
    if (number != 0) {
        return number;
    }
    const std::uint32_t taken = site.head().rings_taken.fetch_add(1, std::memory_order_relaxed) + 1;
    if (taken > layout_.rings_at_first() &&
        !heap_.back(site.pairs + layout_.further_ring(taken - 1), shape_.lines_bytes()).ok()) {
        return 0;
    }
    // Release: the peer that finds the number finds the pages of the ring.
    return agreed.compare_exchange_strong(number, taken, std::memory_order_acq_rel,
                                          std::memory_order_acquire)
               ? taken
               : number;
}

/// Fails a message for which there is no ring.
void ShmTransport::give_up(Message& message) {
    message.state = MessageState::failed;
    ++unreported_;
}

std::uint32_t ShmTransport::search(Rank rank) const {
    const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
    UCG_ASSERT(found != ranks_.end() && *found == rank);
    return static_cast<std::uint32_t>(found - ranks_.begin());
}

/// What is sent goes first: a look for what is awaited may miss the cache, and the stores after it
/// would leave the processor that much later.
void ShmTransport::post(std::span<Message> messages) {
    if (abandoned_) [[unlikely]] {
        for (Message& message : messages) {
            message.state = MessageState::failed;
            ++unreported_;
        }
        return;
    }
    for (Message& message : messages) {
        if (message.direction == Direction::send) {
            send(message);
        }
    }
    for (Message& message : messages) {
        if (message.direction == Direction::recv) {
            receive(message);
        }
    }
    if (abandoned_) [[unlikely]] { // By one of these: the others would be posted for good.
        fail_all();
    }
}

/// Pushes pieces of what this rank sends before it pulls what it receives, of which the senders can
/// push pieces, too: a processor writes what its own cache has sooner than it reads what another's
/// has.
unsigned ShmTransport::progress() {
    unsigned moved = std::exchange(unreported_, 0);
    if (help_.has_value()) {
        moved += help_->answer();
    }
    bool cooperative = false;
    for (std::size_t i = receiving_.size(); i-- > 0;) {
        Inbox& inbox = peers_[receiving_[i]].inbox;
        moved += inbox.drain(Pull::later);
        cooperative = cooperative || inbox.cooperative();
        if (!received(receiving_[i], moved)) {
            return moved;
        }
    }
    const bool copied = flush(moved);
    for (std::size_t i = cooperative ? receiving_.size() : 0; i-- > 0;) {
        Peer& peer = peers_[receiving_[i]];
        if (peer.inbox.cooperative()) {
            moved += copied ? peer.inbox.drain(Pull::end)
                            : peer.inbox.drain_cooperatively(peer.outbox.awaits_target());
            if (!received(receiving_[i], moved)) {
                return moved;
            }
        }
    }
    if (moved != 0) {
        vain_messages_.end();
        seen_dead_ = false;
    } else if (flag_slots_->is_time_to_ask(++fruitless_) || flag_slots_->told_asleep() ||
               seen_dead_) [[unlikely]] {
        compare_awaited();
        compare_begun();
        moved += std::exchange(unreported_, 0);
    }
    return moved;
}

/// To be called after a look at that peer's messages. Returns false if they cannot be followed any
/// more.
bool ShmTransport::received(std::uint32_t peer_index, unsigned& moved) {
    const Inbox& inbox = peers_[peer_index].inbox;
    if (inbox.broken() != Code::ok) {
        fail(inbox.broken(), peer_index);
        moved += std::exchange(unreported_, 0);
        return false;
    }
    if (inbox.outdated()) [[unlikely]] {
        lost();
        moved += std::exchange(unreported_, 0);
        return false;
    }
    if (inbox.idle()) {
        receiving_.remove(peer_index);
    }
    return true;
}

/// Sends what is queued. Returns whether this rank has copied a piece that a receiver would have
/// had to copy. Of messages that two ranks exchange, each copies its own.
bool ShmTransport::flush(unsigned& moved) {
    bool copied = false;
    for (std::size_t i = sending_.size(); i-- > 0;) {
        const std::uint32_t index = sending_[i];
        Peer& peer = peers_[index];
        const Outbox::Flushed flushed =
            peer.outbox.flush(peer.inbox.cooperative() ? shm::Share::all : shm::Share::half);
        moved += flushed.moved;
        copied = copied || flushed.copied;
        if (peer.outbox.idle()) {
            sending_.remove(index);
        }
    }
    return copied;
}

/// Called when a share had no room: the peer that is behind may be at another collective. Returns
/// false.
bool ShmTransport::refused(const FlagSlotSequence& sequence) {
    if (!abandoned_ && flag_slots_->suspects()) {
        compare(sequence, flag_slots_->last_peer(), 0, shm::Awaits::room);
    }
    return false;
}

/// Does exchange() where the share may have to wait, or is long.
std::size_t ShmTransport::exchange_slowly(const FlagSlotExchange& exchange) {
    ShmTransport::finish(exchange.sequence.sequence);
    const bool waits = !exchange.reads.empty();
    if (!share(exchange.sequence, exchange.data, exchange.bytes, waits)) {
        return kNotShared;
    }
    flag_slots_->look_for(exchange, [this](Rank rank) { return index_of(rank); });
    return ShmTransport::poll(exchange.sequence, exchange.reads, exchange.places);
}

/// Does the rest of exchange() after a share at once, if a peer is not there yet or sleeps.
std::size_t ShmTransport::look_again(const FlagSlotExchange& exchange) {
    if (flag_slots_->wakes()) {
        flag_slots_->wake(shm::Awaits::both); // There may be more room, too.
    }
    return ShmTransport::poll(exchange.sequence, exchange.reads, exchange.places);
}

namespace {

Status failure_of(shm::Loss loss) {
    switch (loss) {
    case shm::Loss::none: break;
    case shm::Loss::memory:
        return failure(Code::out_of_memory,
                       "shared memory: a rank of the group has no memory left for what its peers "
                       "read: raise the limit, or set UCG_STAGING=0 to need less");
    case shm::Loss::rank:
        return failure(Code::unreachable,
                       "shared memory: a rank is not in the group that the others have made; it "
                       "has said why");
    case shm::Loss::disagreement:
        return failure(Code::disagreement,
                       "shared memory: a rank of the group has got what it did not await, and has "
                       "said what");
    case shm::Loss::message:
        return failure(Code::io_error,
                       "shared memory: a rank of the group could not read a message, and has said "
                       "why");
    case shm::Loss::elsewhere:
        return failure(Code::io_error,
                       "shared memory: a rank of the group has failed, and has said why");
    case shm::Loss::process:
        return failure(Code::io_error,
                       "shared memory: a rank's process has ended, and another one has said which");
    }
    return Status();
}

} // namespace

/// Returns whether the group cannot go on, by what any of its ranks has found, and fails it here
/// then. True as well where nothing moves any more for another reason.
bool ShmTransport::lost() {
    const shm::Loss loss = flag_slots_->loss();
    if (abandoned_ || loss == shm::Loss::none) {
        return abandoned_;
    }
    status_ = failure_of(loss);
    log(LogLevel::error, "{}", status_.message());
    fail_all();
    return true;
}

/// Like lost(), and also if that peer, for which this rank waits, has broken off.
bool ShmTransport::lost(std::uint32_t peer_index) {
    if (sites_[peer_index].head().absent.load(std::memory_order_relaxed) != 0) {
        flag_slots_->lose(shm::Loss::rank);
    }
    return lost();
}

/// Called when this rank waits in vain for that peer at the flag slots. The peer may run another
/// collective under the same sequence number: then it has sent a message of that, or shared
/// something else. Or its process has ended, after all that it has shared.
void ShmTransport::compare(const FlagSlotSequence& sequence, std::uint32_t peer_index,
                           std::uint64_t bytes, shm::Awaits awaited) {
    if (lost(peer_index)) {
        return;
    }
    if (flag_slots_->contradicts(sequence, peer_index, bytes) ||
        contradicts(peer_index, stamp_of(sequence))) {
        fail(Code::disagreement, peer_index);
    } else if (waits_long(sequence) && gone(peer_index) &&
               !flag_slots_->has_come(sequence, peer_index, awaited)) {
        fail_without(peer_index);
    }
}

/// Returns whether the peer has begun a helped collective of that number with another plan, or has
/// sent a message of one. It may have made the ring for that.
bool ShmTransport::contradicts(std::uint32_t peer_index, std::uint64_t stamp) {
    if (help_.has_value() && help_->contradicts(peer_index, stamp)) {
        return true;
    }
    if (!peers_.has(peer_index)) {
        const auto* agreed =
            reinterpret_cast<const std::atomic<std::uint32_t>*>(lines_.data() + layout_.numbers());
        if (agreed[peer_index].load(std::memory_order_acquire) == 0 || !open(peer_index)) {
            return false;
        }
    }
    return peers_[peer_index].inbox.contradicts(stamp);
}

/// Like compare(), for messages in vain: their senders may have shared something instead, or have
/// begun a helped collective.
void ShmTransport::compare_awaited() {
    if (lost() || look_for_dead()) {
        return;
    }
    for (std::size_t i = sending_.size(); i-- > 0;) {
        if (lost(sending_[i])) {
            return;
        }
    }
    for (std::size_t i = receiving_.size(); i-- > 0 && !abandoned_;) {
        const std::uint32_t index = receiving_[i];
        if (lost(index)) {
            return;
        }
        const Inbox& inbox = peers_[index].inbox;
        bool found = false;
        flag_slots_->each_stamp(
            index, [&](std::uint64_t stamp) { found = found || inbox.awaits_other(stamp); });
        if (help_.has_value()) {
            inbox.each_tag(
                [&](std::uint64_t tag) { found = found || help_->contradicts(index, tag); });
        }
        if (found) {
            fail(Code::disagreement, index);
        }
    }
}

/// Fails after a broken message: the ring cannot be followed any more, so the group is lost, and
/// the others are told, as they would wait in vain for what this rank would send. If the message
/// could not be read since its sender has ended, that is said.
void ShmTransport::fail(Code code, std::uint32_t peer_index) {
    if (code == Code::io_error && gone(peer_index)) {
        fail_without(peer_index);
        return;
    }
    status_ = failure(code, "shared memory: rank {} sent rank {} {}", ranks_[peer_index],
                      ranks_[self_], what_is_wrong(code));
    log(LogLevel::error, "{}", status_.message());
    flag_slots_->lose(code == Code::disagreement ? shm::Loss::disagreement : shm::Loss::message);
    fail_all();
}

/// Tells the others of the host, which would wait in vain for what this rank would send or share.
void ShmTransport::abandon() {
    if (abandoned_) {
        return;
    }
    if (flag_slots_.has_value() && flag_slots_->loss() == shm::Loss::none) {
        flag_slots_->lose(shm::Loss::elsewhere);
    }
    fail_all();
}

/// Fails all messages. REQUIRES: this rank or another has stored that the group is lost.
void ShmTransport::fail_all() {
    shm::loss_fence(std::memory_order_release); // From here on callers may use their buffers.
    abandoned_ = true;
    if (flag_slots_.has_value()) {
        flag_slots_->never_at_once();
    }
    for (const std::uint32_t index : peers_.made()) {
        unreported_ += peers_[index].outbox.fail_all() + peers_[index].inbox.fail_all();
    }
    sending_.clear();
    receiving_.clear();
    if (help_.has_value()) {
        help_->abandon();
    }
}

} // namespace ucg::transport
