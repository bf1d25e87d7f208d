// Folds a team to a power of two: of the first pairs of neighbours one member acts for both. The
// acting members, by position, stand for contiguous ranks in rising order, so that combining
// neighbouring positions as (lower, upper) keeps rank order. Thakur, Rabenseifner, Gropp,
// "Optimization of collective communication operations in MPICH", 2005, section 4.5.
#pragma once

#include "ucg_coll/plan/messages/pieces.hpp"

namespace ucg::plan {

class Fold {
  public:
    /// The upper member of each pair acts, but for `kept`, who acts in any case.
    explicit Fold(const Team& team, Rank kept = kNoRank);

    /// How many members act: the largest power of two in the team's size.
    Rank size() const { return size_; }
    bool acts() const { return position_ != kNoRank; }
    /// This member's place among those that act; kNoRank if it does not.
    Rank position() const { return position_; }
    /// The index in the team of who acts at `position`.
    Rank member(Rank position) const;
    /// Where the member at `index` acts, or the one who acts for it.
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

/// Pairs combine their vectors. Returns the acting member's partial result, `source` if it is
/// alone; an empty slice for members who do not act.
graph::Slice fold_in(graph::Builder& builder, const Team& team, const Fold& fold,
                     graph::Slice source);
/// Acting members pass the result, in `target`, to those they acted for.
void fold_out(graph::Builder& builder, const Team& team, const Fold& fold, graph::Slice target);

/// Is there anything to fold: is `count` no power of two?
bool folds(Rank count);

} // namespace ucg::plan
