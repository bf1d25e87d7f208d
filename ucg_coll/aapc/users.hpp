// Which messages use a link, and when: those that pass it in one direction, one after another. At
// most one of them travels in a phase.
#pragma once

#include <optional>

#include "ucg_coll/aapc/phases.hpp"

namespace ucg::aapc {

enum class TreeDirection : std::uint8_t {
    up,  ///< Towards the root.
    down ///< Away from it.
};

/// A message and its phase.
struct Use {
    std::uint64_t phase = 0;
    PhaseMessage message;

    bool operator==(const Use&) const = default;
};

/// Return the last message before `phase`, and the first one after it, that passes a link in a
/// direction; nothing if there is none. Like Phases, they do so by arithmetic, in O(log k).
std::optional<Use> previous_use(const Phases& phases, const TreeLink& link, TreeDirection direction,
                                std::uint64_t phase);
std::optional<Use> next_use(const Phases& phases, const TreeLink& link, TreeDirection direction,
                            std::uint64_t phase);

/// Returns whether a message passes a link in a direction.
inline bool uses(const TreeLink& link, TreeDirection direction, PhaseMessage message) {
    const bool up = direction == TreeDirection::up;
    return link.below.contains(up ? message.source : message.target) &&
           !link.below.contains(up ? message.target : message.source);
}

} // namespace ucg::aapc
