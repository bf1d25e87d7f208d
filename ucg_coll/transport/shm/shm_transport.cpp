#include "ucg_coll/transport/shm/shm_transport.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "ucg_coll/transport/shm/footprint.hpp"

namespace ucg::transport {
namespace {

constexpr std::uint32_t kDepthMin = 4;

std::uint64_t table_bytes(const ShmOptions& options) {
    return std::uint64_t{options.outstanding_max} * kCacheLine;
}

/// What lies where in the region of each rank of a host. The start, which has pages from the
/// beginning, is the table of exposed buffers, the lines of the rings from all peers, and, in the
/// first rank's, the lines of all boards. What is behind it gets pages when it is first used.
struct Layout {
    shm::RingShape ring;
    shm::BoardShape board;
    std::uint64_t rings; ///< Where they begin.

    Layout(const shm::RingShape& ring_shape, const shm::BoardShape& board_shape,
           const ShmOptions& options)
        : ring(ring_shape), board(board_shape),
          rings(round_up(table_bytes(options), 2 * kCacheLine)) {}

    std::uint64_t ring_lines(std::size_t ring_index) const {
        return rings + ring_index * ring.lines_bytes();
    }
    std::uint64_t board_lines() const { return ring_lines(board.ranks - 1); }
    /// Of the rank with that index on the host; the buffers are at the same place in all.
    std::uint64_t start_bytes(std::size_t index) const {
        return board_lines() + (index == 0 ? board.lines_bytes() : 0);
    }
    std::uint64_t ring_buffers(std::size_t ring_index) const {
        return round_up(start_bytes(0), shm::page_bytes()) + ring_index * ring.buffers_bytes();
    }
    /// Half a page behind a page's start: processors prefetch within a page and learn it at the
    /// start of one, so a share of a page that lies across two is read as two streams.
    std::uint64_t board_buffers() const {
        return round_up(ring_buffers(board.ranks - 1), shm::page_bytes()) + shm::page_bytes() / 2;
    }
    std::uint64_t region_bytes() const { return board_buffers() + board.buffers_bytes(); }
};

/// A region has a ring for each rank but its owner.
std::size_t ring_index(std::size_t receiver, std::size_t sender) {
    return sender - (sender > receiver ? 1 : 0);
}

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

shm::RingShape ring_shape(std::uint32_t rank_count, const ShmOptions& options) {
    UCG_ASSERT(std::has_single_bit(options.depth) && options.depth >= 2 &&
               options.depth < shm::JointCopy::kTurns);
    const std::uint64_t rings = std::uint64_t{rank_count} * (rank_count - 1);
    const std::uint64_t least = round_up(options.slot_bytes_min, kCacheLine);
    const std::uint64_t most = std::max(least, round_up(options.slot_bytes_max, kCacheLine));
    std::uint32_t depth = options.depth;
    std::uint64_t room = most;
    if (rings > 0) {
        const std::uint64_t ring =
            std::max(options.host_bytes_max / rings, shm::RingShape::head_bytes());
        const auto room_per_slot = [&](std::uint32_t slots) {
            const std::uint64_t slot = (ring - shm::RingShape::head_bytes()) / slots;
            const std::uint64_t buffers =
                slot - std::min(slot, std::uint64_t{sizeof(shm::RingSlot)});
            return buffers > shm::kWholeBytes + shm::kShortBytes
                       ? buffers - shm::kShortBytes
                       : std::min(buffers, shm::kWholeBytes);
        };
        while (room_per_slot(depth) < least && depth > kDepthMin) {
            depth /= 2;
        }
        room = room_per_slot(depth);
    }
    const std::uint64_t slot_bytes = std::clamp(room / kCacheLine * kCacheLine, least, most);
    return {depth, static_cast<std::uint32_t>(slot_bytes)};
}

shm::BoardShape board_shape(std::uint32_t rank_count, const ShmOptions& options) {
    constexpr std::uint64_t kPartOfHost = 8;
    UCG_ASSERT(std::has_single_bit(options.board_depth));
    const std::uint64_t all = options.host_bytes_max / kPartOfHost;
    const std::uint64_t board =
        (all - std::min<std::uint64_t>(all, sizeof(shm::BoardSleepers))) / rank_count;
    const std::uint64_t lines =
        sizeof(shm::BoardHead) + options.board_depth * std::uint64_t{sizeof(shm::BoardSlot)};
    const std::uint64_t room = (board - std::min(board, lines)) / options.board_depth;
    const std::uint64_t most = std::max(kCacheLine, round_up(options.board_bytes_max, kCacheLine));
    const std::uint64_t slot_bytes = std::clamp(room / kCacheLine * kCacheLine, kCacheLine, most);
    return {rank_count, options.board_depth, static_cast<std::uint32_t>(slot_bytes)};
}

ShmFootprint footprint(std::uint32_t rank_count, const ShmOptions& options) {
    const Layout layout(ring_shape(rank_count, options), board_shape(rank_count, options), options);
    return {round_up(layout.start_bytes(0), shm::page_bytes()),
            layout.region_bytes() + round_up(options.staging_bytes, shm::page_bytes())};
}

Result<std::unique_ptr<ShmTransport>> ShmTransport::create(shm::Heap& heap,
                                                           std::span<const Rank> ranks_on_host,
                                                           Rank self_index,
                                                           const ShmOptions& options) {
    UCG_ASSERT(self_index >= 0 && static_cast<std::size_t>(self_index) < ranks_on_host.size());
    UCG_ASSERT(std::has_single_bit(options.outstanding_max));
    const auto rank_count = static_cast<std::uint32_t>(ranks_on_host.size());
    const Layout layout(ring_shape(rank_count, options), board_shape(rank_count, options), options);
    auto region = heap.reserve(layout.region_bytes(),
                               layout.start_bytes(static_cast<std::size_t>(self_index)));
    if (!region) {
        return region.status();
    }
    auto sleeper = heap.sleeper();
    if (!sleeper) {
        return sleeper.status();
    }
    shm::Lease staging;
    if (options.staging_bytes > 0) {
        if (auto leased = heap.reserve(options.staging_bytes, 0); leased.ok()) {
            staging = std::move(*leased);
        }
    }
    return std::unique_ptr<ShmTransport>(new ShmTransport(heap, ranks_on_host, self_index, options,
                                                          std::move(*region), std::move(staging),
                                                          (*sleeper)->bell()));
}

ShmTransport::ShmTransport(shm::Heap& heap, std::span<const Rank> ranks_on_host, Rank self_index,
                           const ShmOptions& options, shm::Lease region, shm::Lease staging,
                           const shm::Doorbell& bell)
    : heap_(heap), bell_(bell), ranks_(ranks_on_host.begin(), ranks_on_host.end()),
      first_rank_(ranks_.front()),
      consecutive_(static_cast<std::size_t>(ranks_.back() - first_rank_) + 1 == ranks_.size()),
      self_(static_cast<std::uint32_t>(self_index)), options_(options),
      shape_(ring_shape(static_cast<std::uint32_t>(ranks_.size()), options)),
      board_shape_(transport::board_shape(static_cast<std::uint32_t>(ranks_.size()), options)),
      staging_(std::move(staging)), region_(std::move(region)), sending_(ranks_.size()),
      receiving_(ranks_.size()) {}

ShmTransport::~ShmTransport() {
    if (!established_) {
        return;
    }
    if (staging_.bytes() > 0) { // By the schedules' rules no peer reads it any more.
        heap_.retire(std::move(staging_), {});
    }
    std::vector<const std::atomic<std::uint64_t>*> left;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        if (i != self_) {
            peers_[i].inbox.leave(peers_[i].outbox.has_backed());
            left.push_back(&peers_[i].outbox.peer_left());
        }
    }
    heap_.retire(std::move(region_), std::move(left));
}

ShmAddress ShmTransport::address() const {
    const bool single_copy = options_.single_copy_bytes_min != ~std::uint64_t{0};
    const auto bell = heap_.locate(reinterpret_cast<const std::byte*>(&bell_), sizeof(bell_));
    UCG_ASSERT(bell.has_value());
    return {heap_.address(),
            region_.offset(),
            bell->offset,
            shape_,
            board_shape_,
            ranks_[self_],
            options_.outstanding_max,
            staging_.bytes(),
            single_copy ? shm::own_access_ticket() : shm::AccessTicket{}};
}

Status ShmTransport::check(std::span<const ShmAddress> addresses) const {
    UCG_ASSERT(addresses.size() == ranks_.size());
    const std::uint64_t end = Layout(shape_, board_shape_, options_).region_bytes();
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const ShmAddress& peer = addresses[i];
        if (peer.rank != ranks_[i] || peer.shape != shape_ || peer.board_shape != board_shape_ ||
            peer.outstanding_max != options_.outstanding_max ||
            peer.region_offset > peer.heap.capacity_bytes ||
            end > peer.heap.capacity_bytes - peer.region_offset ||
            peer.bell_offset > peer.heap.capacity_bytes - sizeof(shm::Doorbell)) {
            return failure(
                Code::disagreement,
                "shared memory: rank {} has rings of {} slots of {} bytes and a board of {} of {}, "
                "rank {} has {} of {} and {} of {}: the settings must be the same on all ranks",
                ranks_[self_], shape_.depth, shape_.slot_bytes, board_shape_.depth,
                board_shape_.slot_bytes, peer.rank, peer.shape.depth, peer.shape.slot_bytes,
                peer.board_shape.depth, peer.board_shape.slot_bytes);
        }
    }
    return Status();
}

Status ShmTransport::connect(std::span<const ShmAddress> addresses) {
    UCG_ASSERT(peers_.empty());
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
    const SingleCopyLimits limits = {options_.mapped_copy_bytes_min,
                                     options_.single_copy_bytes_min};
    peers_.resize(ranks_.size());
    const Layout layout(shape_, board_shape_, options_);
    boards_.emplace(board_shape_, self_,
                    heap_.base_of(addresses[0].heap.token) + addresses[0].region_offset +
                        layout.board_lines(),
                    region_.data() + layout.board_buffers(), heap_);
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        if (i == self_) {
            continue;
        }
        Peer& peer = peers_[i];
        peer.segment = heap_.hold(addresses[i].heap.token);
        std::byte* segment = peer.segment.get();
        std::byte* region = segment + addresses[i].region_offset;
        peer.exposed = reinterpret_cast<const Exposed*>(region);
        auto& bell = *reinterpret_cast<shm::Doorbell*>(segment + addresses[i].bell_offset);
        shm::PeerReach reach = {segment, {}, false};
        const shm::PeerAccess access = heap_.access_to(addresses[i].access_ticket);
        if (access.reads) {
            reach.process = addresses[i].access_ticket;
            reach.writes = access.writes;
            ++single_copy_peers_;
        }
        const std::size_t there = ring_index(i, self_);
        const std::size_t here = ring_index(self_, i);
        const RingPlace to = {region + layout.ring_lines(there),
                              region + layout.ring_buffers(there)};
        const RingPlace from = {region_.data() + layout.ring_lines(here),
                                region_.data() + layout.ring_buffers(here)};
        peer.outbox = Outbox(to, from.lines, shape_, bell, heap_, reach, limits);
        peer.inbox = Inbox(from, to.lines, shape_, bell, heap_, reach, options_.own_processors);
        boards_->connect(static_cast<std::uint32_t>(i), region + layout.board_buffers(), bell);
    }
    if (staging_bytes_ == 0) {
        staging_ = {}; // A rank of the group has none, so it is of no use.
    }
    log(LogLevel::info, "shared memory: rank {} of {} takes long messages of {} peers by one copy",
        ranks_[self_], ranks_.size(), single_copy_peers_);
    return Status();
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
}

/// What this rank sends to memory that waits for it goes before what it would fetch, for which its
/// sender can do the same: a processor writes what its own cache has sooner than it reads what
/// another's has.
unsigned ShmTransport::progress() {
    unsigned moved = std::exchange(unreported_, 0);
    bool joint = false;
    for (std::size_t i = receiving_.size(); i-- > 0;) {
        Inbox& inbox = peers_[receiving_[i]].inbox;
        moved += inbox.drain(Pull::later);
        joint = joint || inbox.joint();
        if (!received(receiving_[i], moved)) {
            return moved;
        }
    }
    const bool copied = flush(moved);
    for (std::size_t i = joint ? receiving_.size() : 0; i-- > 0;) {
        Peer& peer = peers_[receiving_[i]];
        if (peer.inbox.joint()) {
            moved += copied ? peer.inbox.drain(Pull::end)
                            : peer.inbox.drain_jointly(peer.outbox.awaits_target());
            if (!received(receiving_[i], moved)) {
                return moved;
            }
        }
    }
    if (moved == 0 && ++fruitless_ % kLooksInVain == 0) [[unlikely]] {
        compare_awaited();
        moved += std::exchange(unreported_, 0);
    }
    return moved;
}

/// After a look at that peer's messages: false if they cannot be followed any more.
bool ShmTransport::received(std::uint32_t peer_index, unsigned& moved) {
    const Inbox& inbox = peers_[peer_index].inbox;
    if (inbox.broken() != Code::ok) {
        fail(inbox.broken(), peer_index);
        moved += std::exchange(unreported_, 0);
        return false;
    }
    if (inbox.idle()) {
        receiving_.remove(peer_index);
    }
    return true;
}

/// Returns whether this rank has copied a piece that a receiver would have had to copy. Of messages
/// that two ranks exchange, each copies its own.
bool ShmTransport::flush(unsigned& moved) {
    bool copied = false;
    for (std::size_t i = sending_.size(); i-- > 0;) {
        const std::uint32_t index = sending_[i];
        Peer& peer = peers_[index];
        const Outbox::Flushed flushed =
            peer.outbox.flush(peer.inbox.joint() ? shm::Share::all : shm::Share::half);
        moved += flushed.moved;
        copied = copied || flushed.copied;
        if (peer.outbox.idle()) {
            sending_.remove(index);
        }
    }
    return copied;
}

/// A share had no room: the peer that is behind may be at something else.
bool ShmTransport::refused(const BoardTurn& turn) {
    if (!abandoned_ && boards_->suspects()) {
        compare(turn, boards_->last_peer(), 0);
    }
    return false;
}

/// Some rank of the group has no memory for what the others would read.
bool ShmTransport::out_of_memory() {
    if (!abandoned_ && boards_->failed()) {
        status_ = failure(Code::out_of_memory,
                          "shared memory: a rank of the group has no memory left for what its "
                          "peers read: raise the limit, or set UCG_STAGING=0 to need less");
        log(LogLevel::error, "{}", status_.message());
        fail_all();
    }
    return abandoned_;
}

/// A turn waits for that peer, who may run another collective under the same sequence: then it has
/// sent a message of that, or shared something.
void ShmTransport::compare(const BoardTurn& turn, std::uint32_t peer_index, std::uint64_t bytes) {
    if (!out_of_memory() && (boards_->contradicts(turn, peer_index, bytes) ||
                             peers_[peer_index].inbox.contradicts(stamp_of(turn)))) {
        fail(Code::disagreement, peer_index);
    }
}

/// The same for messages, whose senders may have shared something instead.
void ShmTransport::compare_awaited() {
    if (out_of_memory()) {
        return;
    }
    for (std::size_t i = receiving_.size(); i-- > 0 && !abandoned_;) {
        const std::uint32_t index = receiving_[i];
        const Inbox& inbox = peers_[index].inbox;
        bool found = false;
        boards_->each_stamp(
            index, [&](std::uint64_t stamp) { found = found || inbox.awaits_other(stamp); });
        if (found) {
            fail(Code::disagreement, index);
        }
    }
}

/// After a broken message the ring cannot be followed any more; the group is lost.
void ShmTransport::fail(Code code, std::uint32_t peer_index) {
    status_ = failure(code, "shared memory: rank {} sent rank {} {}", ranks_[peer_index],
                      ranks_[self_], what_is_wrong(code));
    log(LogLevel::error, "{}", status_.message());
    fail_all();
}

void ShmTransport::abandon() {
    if (!abandoned_) {
        fail_all();
    }
}

void ShmTransport::fail_all() {
    abandoned_ = true;
    for (Peer& peer : peers_) {
        unreported_ += peer.outbox.fail_all() + peer.inbox.fail_all();
    }
    sending_.clear();
    receiving_.clear();
}

bool ShmTransport::reached_in_place(const std::byte* data, std::uint64_t bytes) const {
    return heap_.locate(data, bytes).has_value();
}

/// An offset in this heap's segment, doubled, plus one for a window; 0 for none: the table of
/// exposed buffers lies there.
std::uint64_t ShmTransport::place_of(const SharedBuffer& buffer) const {
    const auto place = buffer.data == nullptr ? std::nullopt : heap_.locate(buffer.data, 1);
    return place ? place->offset * 2 + (buffer.window ? 1 : 0) : 0;
}

bool ShmTransport::expose(std::uint32_t sequence, const SharedBuffers& buffers,
                          std::uint64_t staging_bytes) {
    if (Status status = staging_.back(staging_bytes); !status.ok()) [[unlikely]] {
        log(LogLevel::error, "{}", status.message());
        boards_->fail();
        return out_of_memory();
    }
    auto* table = reinterpret_cast<Exposed*>(region_.data());
    Exposed& entry = table[sequence & (options_.outstanding_max - 1)];
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        entry.place[i].store(place_of(buffers[i]), std::memory_order_relaxed);
    }
    entry.turn.store(std::uint64_t{sequence} + 1, std::memory_order_release);
    return true;
}

SharedBuffer ShmTransport::peer_buffer(Rank owner, graph::BufferKind buffer,
                                       std::uint32_t sequence) const {
    const Peer& peer = peers_[index_of(owner)];
    const Exposed& entry = peer.exposed[sequence & (options_.outstanding_max - 1)];
    if (entry.turn.load(std::memory_order_acquire) != std::uint64_t{sequence} + 1) {
        return {};
    }
    const std::uint64_t place =
        entry.place[static_cast<std::size_t>(buffer)].load(std::memory_order_relaxed);
    return place == 0 ? SharedBuffer{}
                      : SharedBuffer{peer.segment.get() + place / 2, place % 2 == 1};
}

} // namespace ucg::transport
