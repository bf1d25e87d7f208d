#include "ucg_coll/plan/messages/fold.hpp"

#include <array>

namespace ucg::plan {

using graph::Builder;
using graph::Slice;

Fold::Fold(const Team& team, Rank kept)
    : size_(static_cast<Rank>(floor_power_of_two(static_cast<std::uint32_t>(team.size())))),
      pairs_(team.size() - size_), kept_(kept) {
    const Rank index = team.index();
    if (index < 2 * pairs_) {
        partner_ = index ^ 1;
    }
    const Rank position = position_of(index);
    position_ = member(position) == index ? position : kNoRank;
}

Rank Fold::member(Rank position) const {
    if (position >= pairs_) {
        return position + pairs_;
    }
    return kept_ == 2 * position ? kept_ : 2 * position + 1;
}

Rank Fold::position_of(Rank index) const {
    return index < 2 * pairs_ ? index / 2 : index - pairs_;
}

Slice fold_in(Builder& builder, const Team& team, const Fold& fold, Slice source) {
    if (fold.partner() == kNoRank) {
        return source;
    }
    if (!fold.acts()) {
        builder.send(team.rank(fold.partner()), source);
        return part(source, 0, 0);
    }
    const Slice received = builder.scratch(source.length);
    builder.recv(team.rank(fold.partner()), received);
    return fold.partner() < team.index() ? reduce_to_scratch(builder, std::array{received, source})
                                         : reduce_to_scratch(builder, std::array{source, received});
}

void fold_out(Builder& builder, const Team& team, const Fold& fold, Slice target) {
    if (fold.partner() == kNoRank) {
        return;
    }
    if (fold.acts()) {
        builder.send(team.rank(fold.partner()), target);
    } else {
        builder.recv(team.rank(fold.partner()), target);
    }
}

bool folds(Rank count) {
    return static_cast<Rank>(floor_power_of_two(static_cast<std::uint32_t>(count))) != count;
}

} // namespace ucg::plan
