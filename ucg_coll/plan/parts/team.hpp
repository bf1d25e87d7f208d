// A team: the ranks that one piece of an algorithm runs among, numbered anew from 0. The whole
// group, the ranks of one host and the hosts' leaders are teams, so that two-level algorithms are
// composed of the same pieces as flat ones.
#pragma once

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/base/ranks.hpp"

namespace ucg::plan {

class Team {
  public:
    /// Returns the team of all ranks 0 .. rank_count - 1, seen from `rank`.
    static Team whole(Rank rank_count, Rank rank) { return Team({}, rank_count, rank); }

    /// Returns the team of all ranks with `first` at index 0 and the others in order after it,
    /// starting over after the last.
    static Team rotated(Rank rank_count, Rank rank, Rank first) {
        return whole(rank_count, rank).starting_at(first);
    }

    /// Returns the team of the ranks listed, in that order, seen from the one at `index`. `members`
    /// must outlive the team. REQUIRES: members[index] is the rank that builds the schedule, or
    /// with() puts that rank in its place.
    static Team of(Ranks members, Rank index) {
        return Team(members, static_cast<Rank>(members.size()), index);
    }

    /// Returns this team with `rank` in place of the member at `index`: a root that stands in for
    /// its host's leader.
    Team with(Rank index, Rank rank) const {
        Team team = *this;
        team.substitute_index_ = listed(index);
        team.substitute_ = rank;
        return team;
    }

    /// Returns the team of these members in this order, but starting with the one at index `first`;
    /// those before it come after the last.
    Team starting_at(Rank first) const {
        Team team = *this;
        team.index_ = index_ < first ? index_ - first + size_ : index_ - first;
        team.first_ = listed(first);
        return team;
    }

    Rank size() const { return size_; }
    Rank index() const { return index_; }
    Rank rank(Rank index) const {
        const Rank place = listed(index);
        if (place == substitute_index_) {
            return substitute_;
        }
        return members_.empty() ? place : members_[static_cast<std::size_t>(place)];
    }

  private:
    Team(Ranks members, Rank size, Rank index) : members_(members), size_(size), index_(index) {}

    /// Returns where the member at `index` is among the members that were listed, or among all
    /// ranks.
    Rank listed(Rank index) const {
        return index < size_ - first_ ? index + first_ : index - (size_ - first_);
    }

    Ranks members_;
    Rank size_;
    Rank index_;
    Rank first_ = 0; ///< Where the member at index 0 is among those listed.
    Rank substitute_index_ = kNoRank;
    Rank substitute_ = kNoRank;
};

} // namespace ucg::plan
