// Pair-wise synchronisation: which messages must wait for which, so that no two of different phases
// meet on a link. Section 5 of Faraj and Yuan.
//
// The messages that pass a link one way are to follow one another. It is enough that a message
// waits for those that come right before it on *every* link that the two share: where another one
// comes between them on some link, they are ordered by way of it. One rank finds these alone, by
// arithmetic. The least that is enough needs all messages (minimal_syncs).
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

/// The neighbours in that order of one message after another. Not thread-safe.
class Order {
  public:
    /// Borrows `phases`. REQUIRES: window > 0.
    explicit Order(const Phases& phases, std::uint32_t window = 1)
        : phases_(phases), window_(window) {}

    /// What `message` waits for, and what waits for it, by phase. Messages of the same source are
    /// among them. Empty for messages within a node, which nobody waits for. Takes time in the
    /// links of its path, times O(log k). Valid until the next call.
    const std::vector<Use>& before(const Use& message) { return neighbours(message, false); }
    const std::vector<Use>& after(const Use& message) { return neighbours(message, true); }

  private:
    struct Step { // Of a message's path.
        std::uint32_t link = kNone;
        Direction direction = Direction::up;
        std::optional<Use> neighbour; // On this link.
    };
    const std::vector<Use>& neighbours(const Use& message, bool later);
    void find_path(Message message);
    std::optional<Use> neighbour(const Step& step, std::uint64_t phase, bool later) const;
    bool adjacent_everywhere(const Use& candidate) const;

    const Phases& phases_;
    std::uint32_t window_;
    std::vector<Step> path_;
    std::vector<Use> found_;
};

/// Which member sends word when a message has ended, to the source of the next one.
enum class Signaller : std::uint8_t {
    source,      ///< Its source: once what it sent has left.
    destination, ///< Its destination: once it is there.
};

/// Word to another member that a message has ended.
struct Signal {
    Position to = 0;
    std::uint32_t ended = 0; ///< The message's step, of the member that sends word.

    bool operator==(const Signal&) const = default;
};

/// One member's part: a message that it sends or receives, in the order of phases; in a phase that
/// has both, what it sends comes first.
struct Step {
    Use message;
    bool within_node = false;         ///< It passes no link, and nobody waits for it.
    std::vector<Position> awaits;     ///< Who must have sent word before a message of its own.
    std::vector<std::uint32_t> after; ///< Steps of this member that must have ended before it.
    std::vector<Signal> signals;      ///< What it sends word of once this step has begun.

    bool operator==(const Step&) const = default;
};

/// What a member does, by the run-time rule. Of two members, the k-th word that one sends the other
/// is the k-th that the other awaits of it. A member may take its steps and what belongs to them
/// one after another, waiting in each for what that needs: there is no circle. Takes time in its
/// own messages and the links of their paths, times O(log |M|) and the window.
/// REQUIRES: window == 1, or sources signal and window > 0.
std::vector<Step> steps_of(const Phases& phases, Position member, Signaller signaller,
                           std::uint32_t window = 1);

/// All messages, by phase and then by position of their source.
std::vector<Use> all_messages(const Phases& phases);

/// The fewest synchronisations that order all messages that share a link, given that each member
/// sends its messages one after another: the transitive reduction of the order, without pairs of
/// one source. By the phase of `later`. REQUIRES: one member at each node that has any.
///
/// Exact for any number of members. Takes time in the messages times the members (512: about a
/// second), and memory in the links times the members beside what it returns.
std::vector<Sync> minimal_syncs(const Phases& phases);

} // namespace ucg::aapc
