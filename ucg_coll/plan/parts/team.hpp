// A team: the ranks that one piece of an algorithm runs among, numbered anew from 0. The whole
// group, the ranks of one host and the hosts' leaders are teams, so that two-level algorithms are
// composed of the same pieces as flat ones.
#pragma once

#include <span>

#include "ucg_coll/base/base.hpp"

namespace ucg::plan {

class Team {
  public:
    /// All ranks 0 .. rank_count - 1, seen from `rank`.
    static Team whole(Rank rank_count, Rank rank) { return Team({}, rank_count, rank); }

    /// All ranks, `first` at index 0, the others in order after it, starting over after the last.
    static Team rotated(Rank rank_count, Rank rank, Rank first) {
        Team team({}, rank_count, (rank - first + rank_count) % rank_count);
        team.first_ = first;
        return team;
    }

    /// The ranks listed, in that order. `members` must outlive the team.
    /// REQUIRES: members[index] is the rank that builds, or becomes so by with().
    static Team of(std::span<const Rank> members, Rank index) {
        return Team(members, static_cast<Rank>(members.size()), index);
    }

    /// The same team with `rank` in place of the member at `index`: a root that stands in for its
    /// host's leader.
    Team with(Rank index, Rank rank) const {
        Team team = *this;
        team.substitute_index_ = index;
        team.substitute_ = rank;
        return team;
    }

    Rank size() const { return size_; }
    Rank index() const { return index_; }
    Rank rank(Rank index) const {
        if (index == substitute_index_) {
            return substitute_;
        }
        if (!members_.empty()) {
            return members_[static_cast<std::size_t>(index)];
        }
        return index < size_ - first_ ? index + first_ : index - (size_ - first_);
    }

  private:
    Team(std::span<const Rank> members, Rank size, Rank index)
        : members_(members), size_(size), index_(index) {}

    std::span<const Rank> members_;
    Rank size_;
    Rank index_;
    Rank first_ = 0; ///< The rank at index 0, where no members are listed.
    Rank substitute_index_ = kNoRank;
    Rank substitute_ = kNoRank;
};

} // namespace ucg::plan
