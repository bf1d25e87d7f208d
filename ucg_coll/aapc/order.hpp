// Pair-wise synchronisation: which messages must wait for which, so that no two of different phases
// meet on a link. Section 5 of Faraj and Yuan.
//
// The messages that pass a link one way are to follow one another. It is enough that a message
// waits for those that come right before it on *every* link that the two share: where another
// message comes between the two on some link, they are ordered by way of it. One rank finds the
// messages that it must wait for alone, by arithmetic. The fewest synchronisations that are enough
// can be found only from all messages (minimal_syncs).
#pragma once

#include <vector>

#include "ucg_coll/aapc/users.hpp"

namespace ucg::aapc {

/// `later` may begin once `earlier` has ended.
struct Sync {
    Use earlier;
    Use later;

    bool operator==(const Sync&) const = default;
};

/// Finds the neighbours, in that order, of one message after another. Not thread-safe.
class Order {
  public:
    /// Borrows `phases`. REQUIRES: window > 0.
    explicit Order(const Phases& phases, std::uint32_t window = 1)
        : phases_(phases), window_(window) {}

    /// Return the messages that `message` waits for, and those that wait for it, sorted by phase.
    /// Messages of the same source are among them. Both lists are empty for messages within a node,
    /// which nobody waits for. Take time proportional to the links of the message's path, times
    /// O(log k). The list is valid until the next call.
    const std::vector<Use>& before(const Use& message) { return neighbours(message, false); }
    const std::vector<Use>& after(const Use& message) { return neighbours(message, true); }

  private:
    struct MemberStep { // One link of a message's path.
        std::uint32_t link = kNone;
        TreeDirection direction = TreeDirection::up;
        std::optional<Use> neighbour; // The message right before or after on this link.
    };
    const std::vector<Use>& neighbours(const Use& message, bool later);
    void find_path(PhaseMessage message);
    std::optional<Use> neighbour(const MemberStep& step, std::uint64_t phase, bool later) const;
    bool adjacent_everywhere(const Use& candidate) const;

    const Phases& phases_;
    std::uint32_t window_;
    std::vector<MemberStep> path_;
    std::vector<Use> found_;
};

/// Which member tells the source of the next message that a message has ended.
enum class Signaller : std::uint8_t {
    source,      ///< The message's source, once the message has left.
    destination, ///< The message's destination, once the message has arrived.
};

/// A signal to another member that a message has ended.
struct Signal {
    Position to = 0;
    std::uint32_t ended = 0; ///< The message's step, among those of the member that signals.

    bool operator==(const Signal&) const = default;
};

/// One step of a member: a message that it sends or receives. Steps are in the order of phases; in
/// a phase that has both, the message that the member sends comes first.
struct MemberStep {
    Use message;
    bool within_node = false;         ///< The message passes no link, and nobody waits for it.
    std::vector<Position> awaits;     ///< Members whose signals must have come before it sends.
    std::vector<std::uint32_t> after; ///< Steps of this member that must have ended before.
    std::vector<Signal> signals;      ///< Signals that it sends once this step has begun.

    bool operator==(const MemberStep&) const = default;
};

/// Returns the steps of a member, with the waits that Order finds. Of two members, the k-th signal
/// that one sends to the other is the k-th that the other awaits from it. A member may do its
/// steps, and what belongs to each of them, one after another, and wait in each for what it needs:
/// members never wait for one another in a circle. Takes time proportional to the member's messages
/// and the links of their paths, times O(log |M|) and the window. REQUIRES: window == 1, or sources
/// signal and window > 0.
std::vector<MemberStep> steps_of(const Phases& phases, Position member, Signaller signaller,
                                 std::uint32_t window = 1);

/// Returns all messages, sorted by phase and then by the position of their source.
std::vector<Use> all_messages(const Phases& phases);

/// Returns the fewest synchronisations that order all messages that share a link, given that each
/// member sends its messages one after another: the transitive reduction of the order, without
/// pairs of one source. They are sorted by the phase of `later`. REQUIRES: one member at each node
/// that has any.
///
/// Exact for any number of members. Takes time proportional to the messages times the members (512:
/// about a second), and memory proportional to the links times the members beside what it returns.
std::vector<Sync> minimal_syncs(const Phases& phases);

} // namespace ucg::aapc
