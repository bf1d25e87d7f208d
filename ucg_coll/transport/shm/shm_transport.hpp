// Messages between the ranks of one group on one host, through rings in the node heap; flag slots
// that each rank writes once for all; and the addresses of buffers that lie in that heap, for
// schedules that read peers' memory in place.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "shm/doorbell.hpp"
#include "shm/flag_slot.hpp"
#include "shm/heap.hpp"
#include "shm/ring.hpp"
#include "ucg_coll/base/ranks.hpp"
#include "ucg_coll/transport/shm/active_set.hpp"
#include "ucg_coll/transport/shm/flag_slot_room.hpp"
#include "ucg_coll/transport/shm/help.hpp"
#include "ucg_coll/transport/shm/lazy_array.hpp"
#include "ucg_coll/transport/shm/link.hpp"
#include "ucg_coll/transport/shm/region_layout.hpp"
#include "ucg_coll/transport/shm/vain_wait.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// The depth of flag slots where memory is short, and where a processor gains nothing by more.
inline constexpr std::uint32_t kFlagSlotDepth = 16;

/// Returns the depth of flag slots nearest to the one that a profile asks for.
constexpr std::uint32_t flag_slot_depth(std::uint64_t wanted) {
    constexpr std::uint64_t kDepthMax = 1024;
    return std::bit_floor(
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, kFlagSlotDepth, kDepthMax)));
}

/// Options of a ShmTransport. They are the same on all ranks of a group.
struct ShmOptions {
    std::uint32_t depth = 16;                ///< Slots of a ring; a power of two, at least 2.
    std::uint32_t slot_bytes_max = 16 << 10; ///< The longest fragment, where there is room.
    std::uint32_t slot_bytes_min = 512;
    /// Bytes of all buffers of one ring, where there is room: long messages use one after the other
    /// (RingShape::buffers).
    std::uint64_t ring_bytes = 256 << 10;
    /// Bytes that the rings of one group may take of one host. With many ranks the slots become
    /// shorter, then fewer; where even the shortest and fewest take more, the bound is exceeded and
    /// the lease may fail.
    std::uint64_t host_bytes_max = std::uint64_t{64} << 20;
    /// A group whose ranks have at most so many peers on the host has all its rings from the
    /// beginning. In a larger one two ranks make theirs when one has a message for the other, and
    /// the first so many rings to each rank lie in memory that has pages from the beginning.
    std::uint32_t rings_at_first = 16;
    /// Messages of at least so many bytes are copied once, by the kernel on behalf of the receiver
    /// and the sender, where it permits that. For shorter ones a system call costs more than a
    /// second copy.
    CopyLengths single_copy_bytes_min = 16 << 10;
    /// From which time on the kernel's copies are slow. Messages up to the length of a ring's
    /// buffers go through the ring then, except those that both ends copy.
    shm::SlowPull slow_pull = {1e12, 0};
    /// Ranks look up the pages of another rank's memory one after the other (shm::PageLookups).
    shm::PageLookupCost page_lookups = {};
    /// Like single_copy_bytes_min, where sender and receiver have cores that share no cache, if it
    /// is less.
    std::uint64_t far_copy_bytes_min = ~std::uint64_t{0};
    /// The sender finds out whether cores share a cache by reads of what the receiver has written:
    /// they take so many nanoseconds or more if not. Messages in the ring are cut into fewer
    /// fragments then. 0: no core is far.
    std::uint32_t near_ns = 0;
    /// Like single_copy_bytes_min, for messages in the sender's segment, which are copied without a
    /// system call.
    std::uint64_t mapped_copy_bytes_min = 8 << 10;
    /// Both ends copy parts of messages that are copied once from this length on, if these are
    /// longer than a piece.
    std::uint64_t cooperative_copy_bytes_min = 0;
    /// Ranks have processors for themselves, so that a sender that waits may as well copy a part of
    /// such a message. Where they share processors, what one rank does keeps another from its own
    /// work.
    bool own_processors = true;
    /// Bytes of the last-level cache that ranks which share processors have. Where the group's
    /// rings do not fit it, those buffers are used again first that were used last.
    std::uint64_t cache_bytes = ~std::uint64_t{0};
    /// Collectives of the group that may be outstanding at once; a power of two.
    std::uint32_t outstanding_max = 64;
    /// Bytes wanted for each rank's scratch and staging buffers that peers read; of more than 32
    /// ranks, all together have as many as 32 would (staging_bytes()). Where the heap has no room
    /// for them, there are none.
    std::uint64_t staging_bytes = 0;
    /// How many sequence numbers a rank may be ahead of its peers on its flag slot, where there is
    /// room; a power of two, at least 2.
    std::uint32_t flag_slot_depth = kFlagSlotDepth;
    /// The longest share in bytes, where there is room. With many ranks flag slots become less
    /// deep, down to kFlagSlotDepth, and then shares become shorter.
    std::uint32_t flag_slot_bytes_max = 8 << 10;
    std::chrono::milliseconds attach_timeout{30000};
};

/// Returns from how many bytes on messages are copied once. While the kernel's copies are slow,
/// what fits a ring's buffers goes through the ring; but ranks that exchange without combining wait
/// for one another, and have processors to push what is long.
SingleCopyLimits limits_of(const ShmOptions& options, std::uint64_t far_bytes);

/// Returns the shape of the rings of a group with so many ranks on the host. REQUIRES: rank_count
/// >= 1.
shm::RingShape ring_shape(std::uint32_t rank_count, const ShmOptions& options);

/// Returns the shape of the flag slots of such a group: they take at most an eighth of
/// `host_bytes_max`, with shorter shares where ranks are many. REQUIRES: rank_count >= 1.
shm::FlagSlotShape flag_slot_shape(std::uint32_t rank_count, const ShmOptions& options);

/// Returns the bytes that each rank of such a group has for its peers to read: each peer needs page
/// tables for what all others have, so the sum does not grow with the ranks. REQUIRES:
/// rank_count >= 1.
std::uint64_t staging_bytes(std::uint32_t rank_count, const ShmOptions& options);

/// Returns the layout of a rank's memory in such a group. REQUIRES: rank_count >= 1.
RegionLayout region_layout(std::uint32_t rank_count, const ShmOptions& options);

/// Returns whether the kernel lets this process read and write the memory of all these. Tries what
/// was not tried before, by two system calls for each.
bool reaches_all(shm::Heap& heap, std::span<const shm::AccessTicket> others);

/// What a rank's peers need to know. Exchanged as bytes by the caller.
struct ShmAddress {
    shm::HeapAddress heap;
    // Offsets within the segment of the rank's heap.
    std::uint64_t lines_offset = 0; ///< Of the rank's lines.
    std::uint64_t pairs_offset = 0; ///< Of what it has reserved for pairs of ranks.
    std::uint64_t bell_offset = 0;  ///< Of its process's doorbell.
    shm::RingShape shape;
    shm::FlagSlotShape flag_slot_shape;
    Rank rank = kNoRank;
    std::uint32_t outstanding_max = 0;
    std::uint32_t rings_at_first = 0;
    std::uint64_t staging_bytes = 0;
};
static_assert(std::is_trivially_copyable_v<ShmAddress>);

/// A rank's end of a group on one host.
class ShmTransport final : public Transport, public PeerMemory, public FlagSlots {
  public:
    /// Makes a transport, for which it leases the rings by which this rank receives, and the flag
    /// slot. `ranks_on_host` are the group's ranks on this host, rising; `self_index` is the own
    /// position among them. The heap must outlive the transport. Fails with out_of_memory when the
    /// heap has no room.
    static Result<std::unique_ptr<ShmTransport>> create(shm::Heap& heap, Ranks ranks_on_host,
                                                        Rank self_index, const ShmOptions& options);

    /// Returns what the peers' connect() needs of this rank.
    ShmAddress address() const;

    /// Maps the peers' memory. Called once, by all the ranks of the host at about the same time,
    /// with their addresses in the order of `ranks_on_host`. It may fail on some ranks only: the
    /// caller agrees on the outcome, and if one failed, all destroy their transport and take
    /// another way.
    Status connect(std::span<const ShmAddress> addresses);

    /// Says that all ranks have connected. From now on peers may look at this rank's flag slots
    /// until they end, so that its memory is returned only then.
    void establish() { established_ = true; }

    /// Says that this rank alone goes without the group, which others may have made or still make:
    /// ranks that wait for it learn of that and fail. Its memory stays until they have ended. May
    /// be called even if it is not connected; afterwards it may only be destroyed. Takes no memory.
    void break_off();
    ~ShmTransport() override;

    std::string_view name() const override { return "shm"; }
    void post(std::span<Message> messages) override;
    void take_part(Message& message) override {
        peers_[index_of(message.peer)].inbox.take_part(message);
    }
    unsigned progress() override;
    bool has_failed() const override { return abandoned_; }
    Status status() const override {
        return status_.ok() && help_.has_value() ? help_->status() : status_;
    }
    void abandon() override;

    PeerMemory* peer_memory() override { return this; }
    /// PeerMemory::staging(): as many bytes as every rank of the host could lease; none before
    /// connect().
    std::span<std::byte> staging() override { return {staging_.data(), staging_bytes_}; }
    bool is_mapped_by_peers(const std::byte* data, std::uint64_t bytes) const override;
    bool expose(std::uint32_t sequence, const SharedBuffers& buffers,
                std::uint64_t staging_bytes) override;
    SharedBuffer peer_buffer(Rank owner, graph::BufferKind buffer,
                             std::uint32_t sequence) const override;
    bool intact() override;

    Help* help() override { return help_.has_value() ? &*help_ : nullptr; }
    /// Returns whether the kernel lets this process read and write the memory of all other ranks of
    /// the host. REQUIRES: connected.
    bool reaches_all();

    /// The flag slots of the ranks on the host.
    FlagSlots* flag_slots() override { return this; }
    std::uint64_t bytes_max() const override { return flag_slot_shape_.slot_bytes; }
    bool share(const FlagSlotSequence& sequence, const std::byte* data,
               std::uint64_t bytes) override {
        UCG_DEBUG_ASSERT(bytes <= bytes_max());
        return share(sequence, data, bytes, false);
    }
    std::size_t poll(const FlagSlotSequence& sequence, std::span<const FlagSlotRead> reads,
                     const std::byte** places) override {
        const std::size_t seen = flag_slots_->poll(sequence, reads, places,
                                                   [this](Rank rank) { return index_of(rank); });
        if (seen < reads.size()) {
            const std::uint32_t index = index_of(reads[seen].owner);
            if (flag_slots_->suspects(sequence, index)) [[unlikely]] {
                compare(sequence, index, reads[seen].bytes, shm::Awaits::message);
            }
        }
        return abandoned_ ? 0 : seen;
    }
    std::size_t exchange(const FlagSlotExchange& exchange) override {
        if (!flag_slots_->exchanges_at_once(exchange)) [[unlikely]] {
            return exchange_slowly(exchange);
        }
        const std::size_t seen = flag_slots_->exchange_at_once( // Ranks are consecutive then.
            exchange, [first = first_rank_](Rank rank) { return rank - first; });
        return seen == exchange.reads.size() && !flag_slots_->wakes() ? seen : look_again(exchange);
    }
    void finish(std::uint64_t sequence) override { flag_slots_->finish(sequence); }
    bool broken() const override { return abandoned_; }

    /// Says that so many threads of this process sleep, or are about to announce that at the
    /// doorbell: before that no rank that shares something looks at the doorbell. REQUIRES:
    /// connected.
    void sleeping(std::uint64_t threads) { flag_slots_->sleeping(threads); }

    /// Returns with how many of its peers this rank can exchange long messages by a single copy, as
    /// far as they have a ring.
    std::size_t single_copy_peers() const { return single_copy_peers_; }

    /// Returns whether a message is held up by a full ring or not yet read by its receiver, or a
    /// share by a peer that may still read the share whose slot it takes. A thread that sleeps then
    /// awaits room as well.
    bool stuck() const {
        return sending_.size() > 0 || (flag_slots_.has_value() && flag_slots_->waits_for_room());
    }

    /// Tell peers that a wait that leaves its processor to others begins or ends in this process;
    /// `now` is by the host's steady clock. Any thread.
    void enter_wait(std::chrono::nanoseconds now) { sites_[self_].bell->waits_only.enter(now); }
    void leave_wait(std::chrono::nanoseconds now) { sites_[self_].bell->waits_only.leave(now); }
    /// Returns whether all peers have done nothing but wait since `when`. Any thread.
    bool peers_wait_since(std::chrono::nanoseconds when) const;

    /// Returns the word where this rank tells its peers, by CallsSoFar::word(), of each collective
    /// that it starts.
    std::atomic<std::uint64_t>& latest_call() {
        return reinterpret_cast<CallCount*>(lines_.data() + RegionLayout::call_count())->latest;
    }
    /// What a peer has told of its collectives.
    struct PeerCalls {
        Rank rank = kNoRank;
        std::int64_t process = 0; ///< Its number (PID).
        CallsSoFar calls;
    };
    /// Returns what the other ranks of the host have told, in rank order. REQUIRES: connected.
    std::vector<PeerCalls> calls_of_peers() const;
    /// Returns true for the first rank of the host that asks, for each collective, which is given
    /// as the CallsSoFar of a rank that has started it last; also for the first that asks with
    /// `beyond`, if another one was first. False once that is asked for a later collective: of a
    /// host whose ranks stall in several, the first report names all ranks that are behind.
    /// REQUIRES: connected.
    bool is_first_to_report(const CallsSoFar& call, bool beyond) const;

    const shm::RingShape& shape() const { return shape_; }

  private:
    struct Peer {
        Outbox outbox;
        Inbox inbox;
    };

    /// Where a rank's memory is mapped here.
    struct Site {
        std::byte* segment = nullptr; ///< That of its heap.
        std::byte* lines = nullptr;   ///< RegionLayout's first lease, and
        std::byte* pairs = nullptr;   ///< its other one.
        shm::Doorbell* bell = nullptr;

        RegionHead& head() const { return *reinterpret_cast<RegionHead*>(lines); }
        CallCount& call_count() const {
            return *reinterpret_cast<CallCount*>(lines + RegionLayout::call_count());
        }
    };

    ShmTransport(shm::Heap& heap, Ranks ranks_on_host, Rank self_index, const ShmOptions& options,
                 shm::Lease lines, shm::Lease pairs, shm::Lease staging, const shm::Doorbell& bell);
    Status check(std::span<const ShmAddress> addresses) const;
    void locate(std::span<const ShmAddress> addresses);
    void make_help();
    shm::PeerAccess* access_to(const shm::AccessTicket& ticket);
    shm::PageLookups lookups(const Site& site) const;
    shm::PeerReach process_of(const Site& site);
    std::vector<shm::PeerReach> processes() noexcept;
    std::atomic<shm::LeftMark>& left_mark(std::byte* lines, std::uint32_t index) const;
    bool reuses_buffers() const;
    bool open(std::uint32_t index);
    std::byte* ring_lines(std::uint32_t receiver, std::uint32_t sender);
    std::uint32_t ring_number(std::uint32_t receiver, std::uint32_t sender);
    Exposed& exposed(const Site& owner, std::uint32_t sequence) const {
        return reinterpret_cast<Exposed*>(
            owner.lines + RegionLayout::exposed())[sequence & (options_.outstanding_max - 1)];
    }
    bool contradicts(std::uint32_t peer_index, std::uint64_t stamp);
    /// Returns the rank's index on the host. The ranks of a host usually follow one another; else
    /// it is searched.
    std::uint32_t index_of(Rank rank) const {
        return consecutive_ ? static_cast<std::uint32_t>(rank - first_rank_) : search(rank);
    }
    std::uint32_t search(Rank rank) const;
    void send(Message& message) {
        const std::uint32_t index = index_of(message.peer);
        message.moved = 0;
        message.state = MessageState::posted;
        if (!peers_.has(index) && !open(index)) [[unlikely]] {
            give_up(message);
        } else if (!peers_[index].outbox.post(message)) {
            sending_.add(index);
        }
    }
    void receive(Message& message) {
        const std::uint32_t index = index_of(message.peer);
        message.moved = 0;
        message.state = MessageState::posted;
        if (!peers_.has(index) && !open(index)) [[unlikely]] {
            give_up(message);
            return;
        }
        Peer& peer = peers_[index];
        if (!peer.inbox.post(message)) {
            receiving_.add(index);
            if (peer.outbox.idle()) { // In an exchange each end copies its own message, later.
                peer.inbox.open_ahead(message);
            }
        }
    }
    void give_up(Message& message);
    std::uint64_t place_of(const SharedBuffer& buffer) const;
    bool received(std::uint32_t peer_index, unsigned& moved);
    bool flush(unsigned& moved);
    bool share(const FlagSlotSequence& sequence, const std::byte* data, std::uint64_t bytes,
               bool waits) {
        return (!abandoned_ && flag_slots_->share(sequence, data, bytes, waits)) ||
               refused(sequence);
    }
    bool refused(const FlagSlotSequence& sequence);
    [[gnu::noinline]] std::size_t exchange_slowly(const FlagSlotExchange& exchange);
    [[gnu::noinline]] std::size_t look_again(const FlagSlotExchange& exchange);
    bool lost();
    bool lost(std::uint32_t peer_index);
    void compare(const FlagSlotSequence& sequence, std::uint32_t peer_index, std::uint64_t bytes,
                 shm::Awaits awaited);
    void compare_awaited();
    bool gone(std::uint32_t peer_index);
    bool waits_long(const FlagSlotSequence& sequence);
    bool look_for_dead();
    void compare_begun();
    void fail(Code code, std::uint32_t peer_index);
    void fail_without(std::uint32_t peer_index);
    void fail_all();

    shm::Heap& heap_;
    const shm::Doorbell& bell_; ///< The own one, which peers ring.
    std::vector<Rank> ranks_;
    Rank first_rank_;
    bool consecutive_;
    std::uint32_t self_;
    ShmOptions options_;
    const SingleCopyLimits limits_;     ///< Of outboxes to peers where no core is far,
    const SingleCopyLimits far_limits_; ///< and to others.
    shm::RingShape shape_;
    shm::FlagSlotShape flag_slot_shape_;
    shm::Lease staging_;
    std::uint64_t staging_bytes_ = 0;
    RegionLayout layout_;
    shm::Lease lines_;
    shm::Lease pairs_;
    std::vector<std::shared_ptr<std::byte>> segments_; ///< Keeps the peers' segments mapped.
    std::vector<Site> sites_; ///< By index on the host; empty before connect().
    shm::ReadableMemory readable_;
    SpareArrivals spare_arrivals_;
    LazyArray<Peer> peers_;                  ///< By index on the host: those with a ring.
    std::optional<FlagSlotRoom> flag_slots_; ///< Empty before connect().
    std::optional<ShmHelp> help_;            ///< Empty before connect(), and with too many ranks.
    ActiveSet sending_;                      ///< Peers whose outbox is not idle.
    ActiveSet receiving_;                    ///< Peers whose inbox is not idle.
    std::size_t single_copy_peers_ = 0;
    std::uint32_t fruitless_ = 0; ///< Calls of progress() that moved nothing.
    unsigned unreported_ = 0;     ///< Messages that failed outside progress().
    VainWait vain_messages_;
    VainWait vain_shares_;
    std::uint64_t vain_sequence_ = 0; ///< The latest number under which it waited.
    bool seen_dead_ = false;          ///< The last look found an awaited peer's process ended.
    Status status_;
    bool established_ = false;
    bool abandoned_ = false; ///< Nothing moves any more.
};

} // namespace ucg::transport
