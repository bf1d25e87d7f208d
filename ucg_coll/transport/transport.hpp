// The narrow interface between the engine and what moves bytes. A Transport belongs to one group
// and one process; the engine owns the messages, the transport borrows them while they are in
// flight.
//
// Threading: a transport is used by one thread at a time (the caller holds the group's lock). It
// locks by itself what the transports of several groups share. Nothing here calls back into the
// engine: a transport only changes the state of a message.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/ranks.hpp"
#include "ucg_coll/graph/flag_slots.hpp"
#include "ucg_coll/graph/schedule.hpp"

namespace ucg::transport {

enum class Direction : std::uint8_t { send, recv };

enum class MessageState : std::uint8_t {
    idle,   ///< Not in flight: never posted, or completed and taken.
    posted, ///< In flight: the transport holds a pointer to it; data must stay valid.
    done,   ///< Complete. send: data may be changed. recv: data is there.
    failed, ///< The transport failed; Transport::status() tells why.
    part,   ///< recv with `read_on_arrival`: the next bytes are at `part`, until take_part().
};

/// Does a message's sender copy a part of it, where both of its ends could copy it?
enum class SenderHelp : std::uint8_t {
    unwanted, ///< No: it is worked on at once, so it should come into the receiver's cache.
    spare,    ///< If the sender has a processor for itself.
    wanted,   ///< If the message is long, in any case: several wait for one receiver.
};

/// One message. It is matched by (group, peer, sequence, channel, step): the transport knows the
/// group; `sequence` numbers the group's collectives; `channel` tells data from signals; `step`
/// counts the messages of the collective from one rank to another on that channel. Within one
/// (peer, sequence, channel) both sides post in the order of `step`.
struct Message {
    std::byte* data = nullptr; ///< May be null when bytes is 0.
    std::uint64_t bytes = 0;   ///< Equal on both sides.
    Rank peer = kNoRank;       ///< A rank of the group, never the own one.
    std::uint32_t sequence = 0;
    std::uint16_t step = 0; ///< Modulo 2^16.
    /// The collective's plan, at most kPlanMax: two ranks that run different plans under one
    /// sequence learn of it instead of waiting for ever.
    std::uint16_t plan = 0;
    std::uint8_t channel = 0; ///< kDataChannel or kSignalChannel
    Direction direction = Direction::send;
    MessageUse use = MessageUse::exchanged;     ///< send: by the collective (graph::message_use()).
    SenderHelp sender_help = SenderHelp::spare; ///< recv.
    bool segment = false; ///< send: it is a segment of a vector that is too long for caches.
    MessageState state = MessageState::idle; ///< Written by the transport once posted.
    /// recv: its bytes may be read where they arrive. The transport gives out a part of them at a
    /// time, from the message's start on; the length of each part but the last is a multiple of a
    /// cache line. What it has not given out when the message is done lies at `data`. A transport
    /// that cannot do so gives out nothing.
    bool read_on_arrival = false;
    std::uint64_t moved = 0;         ///< The transport's own: bytes already moved.
    Message* next = nullptr;         ///< The transport's own: link of a queue.
    const std::byte* part = nullptr; ///< Set in state `part`: where the next bytes are, ...
    std::uint64_t part_bytes = 0;    ///< ... and how many.
    std::uint64_t taken = 0; ///< The caller's: bytes of all parts so far. 0 when it is posted.
};

/// A message's state where another thread may end the message, as a thread does that drives a
/// transport of several groups: the state is stored with release and loaded with acquire.
inline std::atomic_ref<std::uint8_t> shared_state(Message& message) {
    return std::atomic_ref(reinterpret_cast<std::uint8_t&>(message.state));
}

inline constexpr std::uint8_t kDataChannel = 0;
inline constexpr std::uint8_t kSignalChannel = 1;
inline constexpr std::uint16_t kPlanMax = 0x7fff;

/// Returns plan and channel in one number, as they travel.
inline std::uint16_t lane_of(const Message& message) {
    return static_cast<std::uint16_t>(message.plan << 1U | message.channel);
}
inline std::uint16_t plan_of(std::uint16_t lane) {
    return lane >> 1U;
}

/// A buffer of one running collective of one rank, for peers that share memory with it: the buffer
/// itself, or the staging buffer that holds what was published of it
/// (graph::Schedule::staging_buffer_bytes).
struct SharedBuffer {
    std::byte* data = nullptr;
    bool staging_buffer = false;
};
/// Index: graph::BufferKind, without flag slots.
using SharedBuffers = std::array<SharedBuffer, 3>;

/// What ranks see of one another's memory. Threading: as for Transport.
class PeerMemory {
  public:
    virtual ~PeerMemory() = default;
    PeerMemory() = default;
    PeerMemory(const PeerMemory&) = delete;
    PeerMemory& operator=(const PeerMemory&) = delete;

    /// Returns this rank's staging memory, which all peers reach and which begins at a cache line:
    /// scratch and staging buffers of the collective that is exposed, one collective at a time. To
    /// be used as far as expose() was told.
    virtual std::span<std::byte> staging() = 0;

    /// Do the peers reach these bytes of this rank where they are?
    virtual bool is_mapped_by_peers(const std::byte* data, std::uint64_t bytes) const = 0;

    /// Makes this rank's buffers of a collective known, before anything else of it is posted, and
    /// so many bytes of staging() usable. Returns false if there is no memory for these: then the
    /// transport has failed, on all ranks.
    virtual bool expose(std::uint32_t sequence, const SharedBuffers& buffers,
                        std::uint64_t staging_bytes) = 0;

    /// Returns where a peer's buffer of a collective is mapped here. Valid once the peer has
    /// exposed it, which a signal or message received from it in that collective implies; null
    /// before that, and where it has exposed none.
    virtual SharedBuffer peer_buffer(Rank owner, graph::BufferKind buffer,
                                     std::uint32_t sequence) const = 0;

    /// Was all that was read of peers' buffers what they had exposed? To be asked once it has been
    /// read. A rank that fails gives its caller the buffers back, whoever still reads them; then
    /// this is false, and the transport has failed.
    virtual bool intact() { return true; }
};

/// A part of a collective whose ranks help one another: graph/helped.hpp.
struct HelpedPart {
    Rank owner = kNoRank;     ///< The rank that does it where all do their own.
    std::uint32_t number = 0; ///< Index among the owner's parts.
    std::uint64_t units = 0;
    std::vector<Rank> named; ///< Ranks whose buffers it reads or writes.
};

/// What a rank begins such a collective with.
struct HelpedCall {
    std::uint32_t sequence = 0;
    std::uint16_t plan = 0; ///< As in Message.
    std::byte* input = nullptr;
    std::uint64_t input_bytes = 0;
    std::byte* output = nullptr;
    std::uint64_t output_bytes = 0;
    std::span<const HelpedPart> parts; ///< Those that name this rank; valid until end().
};

/// How ranks of a host do what others of them still owe. Threading: as for Transport.
class Help {
  public:
    virtual ~Help() = default;
    Help() = default;
    Help(const Help&) = delete;
    Help& operator=(const Help&) = delete;

    /// Do all peers reach these bytes of this rank, so that they can be a call's buffer?
    virtual bool reached(const std::byte* data, std::uint64_t bytes) = 0;

    /// Makes this rank's buffers known to all; units of the parts that name this rank are done by
    /// whoever takes them. REQUIRES: the buffers are reached(); else a copy may fail.
    virtual void begin(const HelpedCall& call) = 0;
    /// To be called when all parts that name this rank are over.
    virtual void end(std::uint32_t sequence) = 0;

    /// What a part waits for.
    enum class State : std::uint8_t {
        waits,  ///< For ranks that it names and that have not begun.
        ready,  ///< For somebody to take a unit.
        taken,  ///< For those who have taken its last units to do them.
        over,   ///< For nothing: all that it writes is there, all that it reads may change.
        broken, ///< It will never be over: Transport::status() tells why.
    };
    virtual State look(const HelpedPart& part, std::uint32_t sequence) = 0;
    /// Returns a unit that is the caller's from now on: it owes unit_done(). Empty if others have
    /// taken all. REQUIRES: look() has returned `ready`.
    virtual std::optional<std::uint32_t> take(const HelpedPart& part, std::uint32_t sequence) = 0;
    virtual void unit_done(const HelpedPart& part, std::uint32_t sequence) = 0;

    // To be called while the caller owes a unit of a part that names the owner of these bytes.

    /// Returns where a buffer is mapped here; null if it is not.
    virtual std::byte* mapped(Rank owner, graph::BufferKind buffer, std::uint32_t sequence) = 0;
    enum class Copied : std::uint8_t {
        yes,
        later, ///< The owner is to do it: to be called again, with the same arguments.
        no,    ///< The transport has failed.
    };
    /// Copy by the kernel, or have the owner do it where the kernel refuses.
    virtual Copied read(Rank owner, graph::BufferKind buffer, std::uint32_t sequence,
                        std::uint64_t offset, std::span<std::byte> to) = 0;
    virtual Copied write(Rank owner, graph::BufferKind buffer, std::uint32_t sequence,
                         std::uint64_t offset, std::span<const std::byte> from) = 0;
};

/// Which collective uses the flag slots. The engine numbers the collectives of a group that use
/// them from 0, alike on all ranks.
struct FlagSlotSequence {
    std::uint64_t sequence = 0;   ///< The collective's number among those that use flag slots.
    std::uint32_t collective = 0; ///< Its number among all collectives: Message::sequence.
    std::uint16_t plan = 0;       ///< As in Message.
};

using graph::FlagSlotRead;

/// A collective in which a rank shares something and then reads what its peers have shared.
struct FlagSlotExchange {
    FlagSlotSequence sequence;
    const std::byte* data = nullptr; ///< What is shared; may be null where `bytes` is 0.
    std::uint64_t bytes = 0;
    std::span<const FlagSlotRead> reads;
    const std::byte** places = nullptr; ///< Has as many elements as `reads`: FlagSlots::poll().
    /// So often it may look again, for a caller that would wait and do nothing else. A look here
    /// takes a nanosecond, one of a wait forty.
    std::uint32_t looks = 0;
};

/// What FlagSlots::exchange() returns if nothing was shared: no number of peers.
inline constexpr std::size_t kNotShared = ~std::size_t{0};

/// What ranks share with all others of their host at once: each rank writes its own flag slot once,
/// and its peers there read it. Several collectives may use the flag slots at a time, each under a
/// flag-slot sequence number of its own. Threading: as for Transport.
class FlagSlots {
  public:
    virtual ~FlagSlots() = default;
    FlagSlots() = default;
    FlagSlots(const FlagSlots&) = delete;
    FlagSlots& operator=(const FlagSlots&) = delete;

    /// Returns the length of the longest share, in bytes; the same on all ranks.
    virtual std::uint64_t bytes_max() const = 0;

    /// Shares a copy of `data`, which may be null where `bytes` is 0. Returns false, and does
    /// nothing, while some peer may still read the earlier share whose slot this one takes. Called
    /// successfully at most once per sequence number. REQUIRES: bytes <= bytes_max().
    virtual bool share(const FlagSlotSequence& sequence, const std::byte* data,
                       std::uint64_t bytes) = 0;

    /// Returns how many of `reads`, from the first on, have been shared under that sequence number,
    /// and writes to as many `places` where they lie, to be read until finish() says otherwise. 0
    /// if broken(). Fewer bytes than a read wants are a disagreement.
    virtual std::size_t poll(const FlagSlotSequence& sequence, std::span<const FlagSlotRead> reads,
                             const std::byte** places) = 0;

    /// Calls finish() with this sequence number, share() and then poll(): one call, since short
    /// collectives are little more. Returns what poll() does, or kNotShared where share() would
    /// return false. REQUIRES: this rank looks at no earlier sequence number.
    virtual std::size_t exchange(const FlagSlotExchange& exchange) = 0;

    /// Returns where the share of one peer lies, as poll() does; null while it is not there. Not
    /// null where the peer shared no bytes.
    const std::byte* shared(const FlagSlotSequence& sequence, Rank peer, std::uint64_t bytes) {
        const FlagSlotRead read = {peer, bytes};
        const std::byte* place = nullptr;
        return poll(sequence, {&read, 1}, &place) == 1 ? place : nullptr;
    }

    /// Says that this rank will not look at shares with numbers below `sequence` any more; the
    /// argument only rises. Called for every number, whether or not this rank shares or reads under
    /// it, when that collective ends or by the exchange() of a later one.
    virtual void finish(std::uint64_t sequence) = 0;

    /// Is nothing shared any more? Then Transport::status() tells why.
    virtual bool broken() const = 0;

  protected:
    /// Does an exchange() by its three parts.
    std::size_t exchange_by_parts(const FlagSlotExchange& exchange) {
        finish(exchange.sequence.sequence);
        return share(exchange.sequence, exchange.data, exchange.bytes)
                   ? poll(exchange.sequence, exchange.reads, exchange.places)
                   : kNotShared;
    }
};

class Transport {
  public:
    virtual ~Transport() = default;
    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;

    /// Returns "shm", "ucx" or "loopback", for logs and ucg_info.
    virtual std::string_view name() const = 0;

    /// Starts the messages: sends in their order, and receives in theirs. A message that can finish
    /// at once (a short send that fits, a short recv whose data is there) is `done` on return; the
    /// others are `posted`. Never blocks, never allocates after a peer's first use except to hold
    /// early arrivals.
    virtual void post(std::span<Message> messages) = 0;

    /// To be called when the message's part has been read, so that its memory may change. REQUIRES:
    /// the message is in state `part`. Afterwards it is so again, with the next bytes, or `posted`,
    /// or `done`. Not called of a transport that gives out nothing.
    virtual void take_part(Message& message) {
        UCG_ASSERT(message.state != MessageState::part); // Nothing was given out.
    }

    /// Moves what can be moved. Returns how many things happened: a message completed or failed, or
    /// a part of it moved. 0: this transport waits for a peer. Never blocks.
    virtual unsigned progress() = 0;

    /// To be called when the group is lost by another transport's failure: messages in flight and
    /// to come fail, and peers no longer reach the callers' buffers. A transport whose peers reach
    /// nothing by themselves need not do anything.
    virtual void abandon() {}

    /// Has something failed, so that nobody should wait for what is still under way? Tells what
    /// progress() has found, at the cost of a load.
    virtual bool has_failed() const { return false; }

    /// Returns why messages failed; ok while none has.
    virtual Status status() const = 0;

    /// Returns the memory that this rank shares with its peers, for schedules that name peers'
    /// slices; null if the transport only carries messages.
    virtual PeerMemory* peer_memory() { return nullptr; }

    /// Returns how this rank and those that this transport reaches help one another; null if they
    /// cannot.
    virtual Help* help() { return nullptr; }

    /// Returns the flag slots of this rank and of all that this transport reaches; null if it has
    /// none.
    virtual FlagSlots* flag_slots() { return nullptr; }
};

/// A process's end of a group over a network while the group is being made: who its peers are. As
/// long as it exists, and then as long as the transport, none of them is forgotten.
class NetworkGroup {
  public:
    virtual ~NetworkGroup() = default; ///< The network must still be there.
    NetworkGroup() = default;
    NetworkGroup(const NetworkGroup&) = delete;
    NetworkGroup& operator=(const NetworkGroup&) = delete;

    /// Adds the process of another rank by its ProcessNetwork::process(), if this process knows its
    /// address: from another group that has it, or because the two are connected. Returns whether
    /// it does.
    virtual bool add_known(Rank rank, std::uint64_t process) = 0;

    /// Adds the process of another rank by its ProcessNetwork::address().
    virtual Status add(Rank rank, std::string_view address) = 0;

    /// Returns this rank's end of the group; ranks that were not added are not served. `group_ids`
    /// has an entry per rank: the number by which its process knows the group. Each process chooses
    /// a number of its own, which no other group there has or had; so groups may be made at the
    /// same time, in any order. To be called last, and once.
    virtual Result<std::unique_ptr<Transport>>
    make_transport(std::span<const std::uint32_t> group_ids) = 0;
};

/// A process's end of a network, for all groups that have ranks beyond the reach of shared memory.
class ProcessNetwork {
  public:
    virtual ~ProcessNetwork() = default; ///< All transports on it must be gone.
    ProcessNetwork() = default;
    ProcessNetwork(const ProcessNetwork&) = delete;
    ProcessNetwork& operator=(const ProcessNetwork&) = delete;

    /// Returns what peers need in order to reach this process: bytes, not text. Valid as long as
    /// this object.
    virtual std::string_view address() const = 0;

    /// Returns the number that stands for this object among the processes of a job, and with it
    /// for address(). It is random and never 0: a process that opens the network again has another
    /// one, and so has a process to which the system gives the id of one that has ended.
    virtual std::uint64_t process() const = 0;

    /// Begins to make a group of so many ranks, of which this one is `self`.
    virtual std::unique_ptr<NetworkGroup> begin_group(Rank self, std::size_t ranks) = 0;

    /// Must other hosts be reached by the kernel's TCP, with system calls for each message?
    virtual bool only_tcp() const = 0;

    /// Moves everything of this process that can be moved. Returns how many things happened.
    virtual unsigned progress() = 0;

    /// Starts to part from all peers. To be followed by close_progress() until that returns true.
    /// Bounded in time.
    virtual void begin_close() = 0;
    virtual bool close_progress() = 0;
};

/// Which transport carries what to and from each rank of a group: agreed on when the group was
/// made, the same on both sides of every pair. Owns nothing.
class Routes {
  public:
    Routes() = default; ///< To nobody.
    /// Takes a list by rank, in which the own entry is null.
    Routes(std::span<Transport* const> by_rank) : by_rank_(by_rank) {}
    Routes(const std::vector<Transport*>& by_rank) : by_rank_(by_rank) {}
    template <std::size_t count>
    Routes(const std::array<Transport*, count>& by_rank) : by_rank_(by_rank) {}
    /// The ranks `local` of one host, which rise and of which one is `self`, reach one another by
    /// `within`; all others are reached by `beyond`, as are those where `within` is null.
    Routes(Rank self, Ranks local, Transport* within, Transport* beyond)
        : self_(self), local_(local), ends_{local.size() > 1 ? within : nullptr, beyond} {}

    /// Returns null for the own rank, and for one that no transport reaches.
    Transport* operator[](Rank rank) const {
        if (!by_rank_.empty()) {
            return by_rank_[static_cast<std::size_t>(rank)];
        }
        const auto [within, beyond] = ends_;
        return rank == self_                                ? nullptr
               : within != nullptr && local_.contains(rank) ? within
                                                            : beyond;
    }

    /// Returns all transports that reach somebody, and nulls. Valid as long as this object.
    std::span<Transport* const> all() const { return by_rank_.empty() ? ends_ : by_rank_; }

  private:
    std::span<Transport* const> by_rank_; ///< Empty: what follows tells.
    Rank self_ = kNoRank;
    Ranks local_;
    std::array<Transport*, 2> ends_ = {};
};

} // namespace ucg::transport
