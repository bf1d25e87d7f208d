// Folds a team to a power of two: in each of the first pairs of neighbours one member acts for
// both. The acting members are numbered by position and stand for contiguous ranks in rising order,
// so that combining neighbouring positions as (lower, upper) keeps rank order. Thakur,
// Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005,
// section 4.5.
#pragma once

#include "ucg_coll/plan/messages/pieces.hpp"

namespace ucg::plan {

/// Who acts, seen from one member. Members are named by their index in the team.
class Fold {
  public:
    /// The upper member of each pair acts, except in the pair of `kept`, who acts in any case.
    explicit Fold(const Team& team, Rank kept = kNoRank);

    /// How many members act: the largest power of two that is not above the team's size.
    Rank size() const { return size_; }
    /// Does this member act?
    bool acts() const { return position_ != kNoRank; }
    /// This member's position among those that act; kNoRank if it does not act.
    Rank position() const { return position_; }
    /// Returns the member that acts at `position`.
    Rank member(Rank position) const;
    /// Returns the position of the member at `index`, or of the one that acts for it.
    Rank position_of(Rank index) const;
    /// The other member of this member's pair; kNoRank if it is in none.
    Rank partner() const { return partner_; }

  private:
    Rank size_;
    Rank pairs_;
    Rank kept_;
    Rank position_ = kNoRank;
    Rank partner_ = kNoRank;
};

/// Combines the vectors of each pair at its acting member. Returns this member's partial result:
/// `source` if it is in no pair, and an empty slice if it does not act.
graph::Slice fold_in(graph::Builder& builder, const Team& team, const Fold& fold,
                     graph::Slice source);
/// Sends the result, in `target`, from the acting members to those that they act for.
void fold_out(graph::Builder& builder, const Team& team, const Fold& fold, graph::Slice target);

/// Is there anything to fold, that is, is `count` no power of two?
bool folds(Rank count);

} // namespace ucg::plan
