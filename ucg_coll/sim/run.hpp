// Internal to ucg_coll/sim: one run of all ranks' programs.
//
// This is a discrete-event simulation with few events: a rank that is resumed runs, ahead of the
// common clock, until it waits for a message or a flag slot whose arrival is not known yet. That is
// right because nobody else touches what is its own (processor, port), and because the arrival of a
// message follows from its sender's past. What ranks share are host links, which messages request
// in events of their own, and ranks' memory, to which its readers come in events of their own, in
// order of time.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "ucg_coll/sim/host_links.hpp"
#include "ucg_coll/sim/mailbox.hpp"
#include "ucg_coll/sim/simulator.hpp"
#include "ucg_coll/sim/tree_links.hpp"

namespace ucg::sim {

/// Returns the socket of each rank, by rank; sockets are numbered over all hosts. The ranks of a
/// socket are closer to one another than the widest distance on their host. Where no ranks are, as
/// when they are not bound, the host is one socket.
std::vector<std::uint32_t> sockets_of(const topo::Placement& placement);

/// One run of all ranks' programs.
class Run {
  public:
    Run(const topo::Placement& placement, const Options& options,
        std::span<const graph::LoweredSchedule> programs, std::span<const OwnBuffers> buffers,
        std::uint64_t seed, Trace* trace);

    Result<Outcome> go();

  private:
    /// The state of one message op or, in a repeat, of the message op of one iteration.
    struct Slot {
        static constexpr Picoseconds kUnderWay = -1;
        MessageId message = kNoMessage; ///< What it still has to take in: a message or a FIN.
        Picoseconds done = 0; ///< While `message` is set, when a receive was posted. Else when the
                              ///< op completes; kUnderWay if that is not known of a send yet.
    };

    /// The way into or out of a rank's memory, for those who copy by it.
    struct Way {
        Picoseconds free = 0;
        Rank user = kNoRank; ///< The last rank that used it, which does not wait for itself.
    };

    struct RankState : graph::Position {
        std::uint32_t op = 0;            ///< The schedule's op that the step is, or comes to next.
        Picoseconds clock = 0;           ///< The processor is busy until then.
        Picoseconds port_free = 0;       ///< When the last message has left.
        Picoseconds gap_over = 0;        ///< When the next may leave without being part of a burst.
        std::uint64_t message_count = 0; ///< The number of messages sent, by which noise is drawn.
        std::uint64_t compute_count = 0;
        std::size_t first_slot = 0;
        std::uint32_t round = 0; ///< Which of several collectives in a row it runs.
        std::uint32_t burst = 0; ///< Messages since the port was last idle.
        bool has_looked = false; ///< Whether it has taken in the flag slots of this step.
        bool waits_for_send = false;
        bool is_resting = false;      ///< Whether it waits, and has nothing to do.
        Picoseconds alarm = -1;       ///< If it rests: when it is resumed at the latest.
        Way way_out;                  ///< For copies out of its memory by receivers.
        Way way_copied;               ///< For copies into its memory by senders.
        Picoseconds way_in_since = 0; ///< Since when messages have come without pause by rings.
        Picoseconds way_in_free = 0;  ///< When the next message may come through a ring.
        std::vector<Slot*> copies;    ///< Receives that are copied once and have not been.
        std::vector<Slot*> posted;    ///< Other receives that have not been taken in.
        std::array<bool, graph::kBufferKinds.size()> written =
            {};                  ///< Which of its own buffers it has written; graph::BufferKind.
        bool is_in_turn = false; ///< Whether it has come to peers' memory in the order of time.

        void note_written(const graph::Address& address) {
            written[static_cast<std::size_t>(address.buffer)] |= !address.of_peer;
        }
        bool has_written(const graph::Address& address) const {
            return written[static_cast<std::size_t>(address.buffer)];
        }
    };

    /// The flag slot of one rank in one of several collectives in a row.
    struct FlagSlot {
        static constexpr Picoseconds kUnknown = -1;
        Picoseconds begin = 0;         ///< When its owner begins to share.
        Picoseconds shared = kUnknown; ///< When its owner has shared.
        std::uint32_t op = 0;
        std::uint32_t readers = 0;
        std::vector<Rank> waiters; ///< The ranks that can do nothing before it is shared.
    };

    /// A flag slot that a step reads.
    struct Look {
        Rank owner = kNoRank;
        std::uint32_t op = 0; ///< The reader's op in the schedule.
        Picoseconds arrival = 0;
    };

    /// For how long what a step reads of peers occupies one way to their memory.
    struct WayLoad {
        std::uint64_t way = 0; ///< See way().
        double ns = 0;
    };
    /// For how long a step that reads until `end` occupies a way to peers' memory.
    struct Reading {
        Picoseconds end = 0;
        double ns = 0;
    };

    enum class EventKind : std::uint8_t { resume, link_out, link_in, edge };
    struct Event {
        Picoseconds time = 0;
        std::uint64_t number = 0;  ///< The order among events of equal time: that of their making.
        std::uint32_t subject = 0; ///< A rank or a message.
        EventKind kind = EventKind::resume;

        bool operator>(const Event& other) const {
            return time != other.time ? time > other.time : number > other.number;
        }
    };

    /// A message on its way to another host.
    struct Transit {
        Rank from = 0;
        Rank to = 0;
        Picoseconds arrival = 0; ///< When it arrives, with the delays so far.
        // On a tree of switches:
        std::vector<graph::Edge> path = {};
        std::size_t hop = 0;    ///< The edge that it comes to next.
        Picoseconds tail = 0;   ///< When its last bytes have passed the edges before.
        Picoseconds flight = 0; ///< The time from when they have passed all edges to its arrival.
        std::size_t slot = 0;   ///< The index of the send's slot.
    };

    RankState& state(Rank rank) { return states_[static_cast<std::size_t>(rank)]; }

    void push(EventKind kind, Picoseconds time, std::uint32_t subject);
    void pass_link(const Event& event);
    void pass_edge(const Event& event);
    void enter_tree(MessageId id, Transit transit, Picoseconds begin, Picoseconds left, Slot& slot);
    Status advance(Rank rank);

    /// Puts the slots that a step waits for into `awaited_`.
    void collect_waits(const RankState& state, const graph::LoweredSchedule& program);
    /// Waits for the slots in `awaited_`. Returns false if an arrival is not known yet; the rank is
    /// then resumed later.
    bool wait(Rank rank, RankState& state);
    /// Puts the receives to take in into `arrived_`: those awaited, and those that arrive before
    /// the last of them. Returns false if these are not all known yet; the rank is then resumed
    /// later.
    bool find_arrived(Rank rank, RankState& state);
    void take_in(Rank rank, RankState& state);
    static Picoseconds passed_way_in(RankState& state, const SimulatedMessage& message);
    std::optional<Picoseconds> known_due(const RankState& state) const;
    bool take_copies(Rank rank, RankState& state);
    void rest(Rank rank, RankState& state, std::optional<Picoseconds> until);
    void copy_once(Rank rank, RankState& state, Slot& slot);
    static Picoseconds copied(const Copying& copying, Picoseconds offered, Picoseconds begin);
    static Picoseconds way_taken(Way& way, Rank user, Picoseconds takes, Picoseconds begin,
                                 Picoseconds end);
    void finish_copy(Rank rank, RankState& state, Slot& slot, Picoseconds end);
    MessageId await_fin(Rank rank, MessageId id, const price::MessagePrice& price);

    /// Waits for the flag slots of the step and takes them in. Returns false if one is not shared
    /// yet; the rank is then resumed later.
    bool look(Rank rank, RankState& state);
    void take_flag_slot_in(Rank rank, RankState& state, const Look& look);
    Picoseconds flag_slot_arrival(Rank owner, Rank reader, std::uint32_t round) const;
    std::size_t flag_slot_index(Rank owner, std::uint32_t round) const {
        return std::size_t{round} * states_.size() + static_cast<std::size_t>(owner);
    }
    void finish(Rank rank, RankState& state);
    void share(Rank rank, RankState& state);
    /// Returns whether the rank may go on to peers' memory, if its step reads any. If not, it is
    /// resumed when all ranks that come there earlier have been there.
    bool in_turn(Rank rank, RankState& state);

    /// Does what the step does, and goes on to the next step.
    Status issue(Rank rank, RankState& state, const graph::Step& step);
    Status post(Rank rank, RankState& state, const graph::Step& step);
    Status send(Rank rank, RankState& state, const graph::MessagePlan& plan, Slot& slot);
    Status receive(Rank rank, RankState& state, const graph::MessagePlan& plan, Slot& slot);
    double reduction_ns(Rank rank, const RankState& state, const graph::Step& step) const;
    void compute(Rank rank, RankState& state, Activity::Kind kind, double own_ns);
    double reading_ns(Rank rank, const RankState& state);
    double helped_part(Rank rank) const;
    std::uint64_t way(Rank reader, Rank owner) const;
    double load_ns(std::uint64_t way, Picoseconds now);
    const graph::LoweredSchedule& program(Rank rank) const {
        return programs_[static_cast<std::size_t>(rank)];
    }
    static Picoseconds pass_port(RankState& state, const cost::MessageTerms& terms);
    void depart(MessageId id, const Transit& transit, Picoseconds begin, Picoseconds left);
    void deliver(MessageId id, const Transit& transit);
    void record(Activity::Kind kind, Rank rank, Picoseconds start);

    Status check_memory() const;
    static Status mismatch(const Mailbox::Lane& lane, std::uint64_t sent, std::uint64_t received);
    Status check_end() const;

    const topo::Placement& placement_;
    const Options& options_;
    std::span<const graph::LoweredSchedule> programs_;
    std::span<const OwnBuffers> buffers_; ///< By rank.
    std::uint64_t seed_;
    Trace* trace_;
    std::optional<HostLinks> links_;
    std::optional<TreeLinks> tree_;
    Mailbox mailbox_;
    std::vector<Transit> transits_; ///< By MessageId; with links only.
    std::vector<RankState> states_;
    std::vector<FlagSlot> flag_slots_;                   ///< By round and rank.
    std::vector<std::uint32_t> sockets_;                 ///< By rank; see sockets_of().
    std::map<std::uint64_t, std::vector<Reading>> ways_; ///< The steps that read by each way.
    std::vector<WayLoad> loads_;                         ///< By what the step reads of peers.
    std::vector<Slot> slots_;                            ///< Of all ranks.
    std::vector<Slot*> awaited_;                         ///< What the next step waits for.
    std::vector<Slot*> arrived_;                         ///< The receives that it takes in.
    std::vector<Look> looks_;                            ///< The flag slots that it takes in.
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::uint64_t event_count_ = 0;
    Picoseconds now_ = 0; ///< The common clock.
    Outcome outcome_;
};

} // namespace ucg::sim
