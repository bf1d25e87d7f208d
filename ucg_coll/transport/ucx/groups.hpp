// The groups of a worker, by this process's number for each; what has come for groups that do not
// exist here yet; and what is left of groups that were abandoned and have ended.
//
// GroupTable owns the latter two, and of a group its links. The groups themselves are owned by
// their transports.
//
// Invariants: an id is that of a group, or of arrivals that wait, or of neither, never of both. An
// arrival for a group that was abandoned and has ended does not wait.
//
// Called by UcxCore, which makes and ends groups, and by whoever takes arrivals. What takes
// arrivals may be called within UCX's callbacks: add() and discard_orphans() may not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "ucg_coll/transport/ucx/early.hpp"
#include "ucg_coll/transport/ucx/matching.hpp"

namespace ucg::transport::ucx {

/// Returns the group's link to the rank, which it makes at first use.
RankLink& link_to(GroupState& group, Rank rank);

/// Returns the link of the rank that sent the envelope. Null when the group takes nothing any more,
/// or when the envelope fits no link of it; that is a peer's mistake, not ours.
RankLink* receiver_of(GroupState& group, const Envelope& envelope);

class GroupTable {
  public:
    explicit GroupTable(UcxEarlyPool& early) : early_(early) {}
    GroupTable(const GroupTable&) = delete;
    GroupTable& operator=(const GroupTable&) = delete;

    bool empty() const { return groups_.empty(); }
    bool contains(std::uint32_t id) const { return groups_.contains(id); }

    /// Adds a group, and gives it what has come for it. REQUIRES: contains() does not have its id.
    void add(GroupState& group);
    /// Removes a group, if it was added.
    void remove(const GroupState& group);

    /// Returns null if there is no such group.
    GroupState* find(std::uint32_t id) {
        return last_ != nullptr && last_->id == id ? last_ : look_up(id);
    }

    template <typename Visit>
    void visit(Visit visit) const {
        for (const auto& [id, group] : groups_) {
            visit(*group);
        }
    }

    /// Keeps an arrival until there is a group with the envelope's id.
    void keep(Early& early) { orphans_[early.envelope.group].push(early); }
    /// Releases what has waited in vain.
    void discard_orphans();

    /// Notes that the group was abandoned: once it has ended, nothing waits for it.
    void note_abandoned(const GroupState& group) { abandoned_.try_emplace(group.id); }
    /// To be called when such a group ends: what comes for it is answered for as long as there may
    /// be peers that have not heard of its end.
    void keep_peers(GroupState& group);
    /// Calls `has_left` with each peer of groups that were abandoned and have ended. They forget
    /// those for which it is true, and are forgotten when they have no others: nothing comes then.
    template <typename HasLeft>
    void forget_abandoned(HasLeft has_left) {
        for (auto next = abandoned_.begin(); next != abandoned_.end();) {
            std::vector<Member>& members = next->second.members;
            std::size_t peers = members.empty() ? 1 : 0; // It has not ended.
            for (Member& member : members) {
                Peer* const peer = member.peer();
                if (peer != nullptr && has_left(*peer)) {
                    member = Member();
                } else {
                    peers += peer != nullptr ? 1 : 0;
                }
            }
            next = peers == 0 ? abandoned_.erase(next) : std::next(next);
        }
    }
    /// Returns what is left of a group that was abandoned and has ended: its `self`, `ids` and
    /// `members`. Null if there is no such group. REQUIRES: find() does not have the id.
    const GroupState* find_abandoned(std::uint32_t id) const;

  private:
    GroupState* look_up(std::uint32_t id);
    void adopt_orphans(GroupState& group);
    void adopt(RankLink& from, Early& early);

    UcxEarlyPool& early_;
    std::unordered_map<std::uint32_t, GroupState*> groups_; ///< By id, as the next two maps.
    GroupState* last_ = nullptr; ///< That of the last arrival: the next is likely to be for it.
    std::unordered_map<std::uint32_t, Fifo<Early>> orphans_;
    std::unordered_map<std::uint32_t, GroupState> abandoned_;
};

} // namespace ucg::transport::ucx
