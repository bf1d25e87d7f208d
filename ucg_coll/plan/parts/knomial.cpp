#include "ucg_coll/plan/parts/knomial.hpp"

namespace ucg::plan {

KnomialNode::KnomialNode(Rank count, Rank root, Rank index, unsigned radix) {
    const auto member = [&](std::int64_t number) {
        return static_cast<Rank>((number + root) % count);
    };
    const std::int64_t number = (std::int64_t{index} - root + count) % count;
    for (std::int64_t span = 1; span < count; span *= radix) {
        if (const std::int64_t digit = number / span % radix; digit != 0) {
            parent_ = member(number - digit * span);
            return;
        }
        for (std::int64_t child = number + span; child < count && child < number + span * radix;
             child += span) {
            children_.push_back(member(child));
        }
        level_begin_.push_back(static_cast<std::uint32_t>(children_.size()));
    }
}

std::span<const Rank> KnomialNode::children(unsigned level) const& {
    return children().subspan(level_begin_[level], level_begin_[level + 1] - level_begin_[level]);
}

} // namespace ucg::plan
