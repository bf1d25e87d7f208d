// Which message travels in which phase: |M_0| (|M| - |M_0|) phases without contention, in which
// each member sends one message to each other. Extended ring scheduling of the messages between
// subtrees, rotate and broadcast patterns, and the six steps of figure 4 of Faraj and Yuan.
//
// Everything is arithmetic: nothing is listed, and both directions, from a message to its phase and
// back, take time O(log k).
#pragma once

#include <cstdint>
#include <optional>

#include "ucg_coll/aapc/layout.hpp"

namespace ucg::aapc {

/// A message from one position to another.
struct PhaseMessage {
    Position source = 0;
    Position target = 0;

    bool operator==(const PhaseMessage&) const = default;
};

class Phases {
  public:
    /// Borrows `layout`, which has at least two members.
    explicit Phases(const Layout& layout);

    const Layout& layout() const { return layout_; }

    /// Returns T = |M_0| (|M| - |M_0|), the number of phases, which is the load of the bottleneck.
    std::uint64_t count() const { return count_; }

    /// Returns the phase of a message. REQUIRES: source != target.
    std::uint64_t of(PhaseMessage message) const;

    /// Return the global message that leaves subtree t_i in a phase, the global one that enters it,
    /// and its local one; nothing if there is none. REQUIRES: phase < count().
    std::optional<PhaseMessage> leaving(std::uint32_t subtree, std::uint64_t phase) const;
    std::optional<PhaseMessage> entering(std::uint32_t subtree, std::uint64_t phase) const;
    std::optional<PhaseMessage> local(std::uint32_t subtree, std::uint64_t phase) const;

    // The functions that the patterns are made of; indices count from 0 within a subtree.

    /// Returns the phase in which the messages t_i -> t_j begin; they take |M_i| |M_j| phases in a
    /// row. Section 4.2.
    std::uint64_t group_begin(std::uint32_t i, std::uint32_t j) const;
    /// Returns the index of a round's first sender in t_0; the others follow in order. A round is
    /// |M_0| phases, in which each member of t_0 sends once and receives once. Step 1.
    std::uint32_t first_sender(std::uint64_t round) const;
    /// Returns by how much the index of the receiver in t_0 exceeds that of the sender, modulo
    /// |M_0|. Step 2, table 3.
    std::uint32_t receiver_shift(std::uint64_t round) const;
    /// Returns the index of the designated receiver in t_j, j > 0: the member that receives in a
    /// phase from t_0 or a smaller subtree, if any does. Steps 1 and 4.
    std::uint32_t designated_receiver(std::uint32_t j, std::uint64_t phase) const;
    /// Returns the last j < i for which t_i -> t_j begins by `phase`; kNone if there is none.
    std::uint32_t late_target(std::uint32_t i, std::uint64_t phase) const;
    /// Returns the lowest i < j for which t_i -> t_j begins by `phase`. REQUIRES: j > 0.
    std::uint32_t early_source(std::uint32_t j, std::uint64_t phase) const;

  private:
    std::uint64_t of_local(std::uint32_t i, std::uint32_t source, std::uint32_t target) const;
    std::uint64_t of_rotated(std::uint32_t j, std::uint32_t source, std::uint32_t target) const;
    /// Returns the phase of a round in which member `sender` of t_0 sends.
    std::uint64_t phase_of_sender(std::uint64_t round, std::uint32_t sender) const;
    PhaseMessage message(std::uint32_t i, std::uint64_t source, std::uint32_t j,
                         std::uint64_t target) const;
    PhaseMessage broadcast(std::uint32_t i, std::uint32_t j, std::uint64_t phase) const;
    PhaseMessage from_first(std::uint64_t phase) const;
    PhaseMessage into_first(std::uint64_t phase) const;

    const Layout& layout_;
    std::uint32_t size_;  ///< |M_0|
    std::uint64_t count_; ///< T
};

} // namespace ucg::aapc
