#include "ucg_coll/plan/flag_slots/tree.hpp"

#include <algorithm>

#include "ucg_coll/plan/parts/blocks.hpp"

namespace ucg::plan {

using graph::Builder;
using graph::Slice;

namespace {

bool in_one_group(const topo::Placement& placement, Rank a, Rank b, topo::Distance limit) {
    return a == b || placement.distance(a, b) < limit;
}

/// Returns the leader of each group of the ranks, in the order of the groups' first ranks. The
/// latest groups are tried first, since ranks of a group mostly follow one another.
std::vector<Rank> leaders_of(const topo::Placement& placement, Ranks ranks, topo::Distance limit,
                             Rank root) {
    std::vector<Rank> leaders;
    for (const Rank rank : ranks) {
        const bool known = std::any_of(leaders.rbegin(), leaders.rend(), [&](Rank leader) {
            return in_one_group(placement, leader, rank, limit);
        });
        if (!known) {
            const bool with_root = root != kNoRank && in_one_group(placement, root, rank, limit);
            leaders.push_back(with_root ? root : rank);
        }
    }
    return leaders;
}

} // namespace

FlagSlotTree::FlagSlotTree(const topo::Placement& placement, const TreeLimits& limits, Rank rank,
                           Rank root)
    : rank_(rank), top_(limits.count) {
    std::vector<Rank> members; // All members of the present level on the host.
    const Ranks ranks = placement.ranks_on(placement.host(rank));
    members.assign(ranks.begin(), ranks.end());
    for (std::size_t level = 0; level < limits.count; ++level) {
        const topo::Distance limit = limits.limit[level];
        std::vector<Rank> leaders = leaders_of(placement, members, limit, root);
        if (groups_.size() == level && (level == 0 || groups_.back().leader == rank)) {
            Group own;
            std::copy_if(members.begin(), members.end(), std::back_inserter(own.members),
                         [&](Rank other) { return in_one_group(placement, rank, other, limit); });
            own.leader = *std::find_if(leaders.begin(), leaders.end(), [&](Rank leader) {
                return in_one_group(placement, rank, leader, limit);
            });
            groups_.push_back(std::move(own));
        }
        members = std::move(leaders);
    }
    tops_ = std::move(members);
    if (groups_.size() == top_ && groups_.back().leader == rank) {
        groups_.push_back({tops_, root == kNoRank ? tops_.front() : root});
    }
    const Group& near = innermost();
    const auto last = std::find_if(near.members.rbegin(), near.members.rend(),
                                   [&](Rank member) { return member != near.leader; });
    deliverer_ = last == near.members.rend() ? kNoRank : *last;
}

bool FlagSlotTree::is_near(Rank other) const {
    const std::vector<Rank>& near = innermost().members;
    return std::find(near.begin(), near.end(), other) != near.end();
}

void arrive_by_tree(Builder& builder, const FlagSlotTree& tree, TreeEnd end, OpIds& last) {
    for (std::size_t i = 0; i < tree.groups().size(); ++i) {
        const FlagSlotTree::Group& group = tree.groups()[i];
        if (i == tree.top() && end == TreeEnd::tops) {
            last = {builder.share(builder.input(0, 0), last)};
            return;
        }
        if (group.leader != tree.rank()) {
            last = {i == 0 && tree.delivers() ? builder.signal(group.leader, last)
                                              : builder.share(builder.input(0, 0), last)};
            return;
        }
        OpIds arrived = last;
        for (const Rank member : group.members) {
            if (member != group.leader) {
                arrived.push_back(i == 0 && member == tree.deliverer()
                                      ? builder.await(member, last)
                                      : builder.await_share(member, last));
            }
        }
        last = std::move(arrived);
    }
}

Slice reduce_by_tree(Builder& builder, const FlagSlotTree& tree, TreeEnd end, Slice source) {
    Slice part = source;
    for (std::size_t i = 0; i < tree.groups().size(); ++i) {
        const FlagSlotTree::Group& group = tree.groups()[i];
        if (i == tree.top() && end == TreeEnd::tops) {
            builder.share(part);
            return part;
        }
        if (group.leader != tree.rank()) {
            if (i == 0 && tree.delivers()) {
                builder.send(group.leader, part);
            } else {
                builder.share(part);
            }
            return part;
        }
        if (group.members.size() == 1) {
            continue;
        }
        std::vector<Slice> operands;
        for (const Rank member : group.members) {
            if (member == group.leader) {
                operands.push_back(part);
            } else if (i == 0 && member == tree.deliverer()) {
                operands.push_back(builder.scratch(part.length));
                builder.recv(member, operands.back());
            } else {
                operands.push_back(Builder::flag_slot(member, 0, part.length));
            }
        }
        part = builder.scratch(part.length);
        builder.reduce(operands, part);
    }
    return part;
}

void release_by_tree(Builder& builder, const FlagSlotTree& tree, Rank root, OpIds& last) {
    if (tree.rank() == root) {
        last = {builder.share(builder.input(0, 0), last)};
    } else if (tree.is_near(root)) {
        last = {builder.await_share(root, last)};
    } else if (tree.delivers() || tree.deliverer() == kNoRank) {
        last = {builder.await_share(root, last)};
        if (tree.delivers()) {
            last = {builder.share(builder.input(0, 0), last)};
        }
    } else {
        last = {builder.await_share(tree.deliverer(), last)};
    }
}

void bcast_by_tree(Builder& builder, const FlagSlotTree& tree, Rank root, Slice data) {
    if (tree.rank() == root) {
        builder.share(data);
        return;
    }
    const bool from_root = tree.is_near(root) || tree.delivers() || tree.deliverer() == kNoRank;
    builder.copy(Builder::flag_slot(from_root ? root : tree.deliverer(), 0, data.length), data);
    if (tree.delivers() && !tree.is_near(root)) {
        builder.share(data);
    }
}

void release_by_tops(Builder& builder, const FlagSlotTree& tree, OpIds& last) {
    if (!tree.delivers() && tree.deliverer() != kNoRank) {
        last = {builder.await_share(tree.deliverer(), last)};
        return;
    }
    OpIds arrived = last;
    for (const Rank top : tree.tops()) {
        if (top != tree.rank()) {
            arrived.push_back(builder.await_share(top, last));
        }
    }
    last = std::move(arrived);
    if (tree.delivers()) {
        last = {builder.share(builder.input(0, 0), last)};
    }
}

void combine_by_tops(Builder& builder, const FlagSlotTree& tree, Slice part, Slice target) {
    if (!tree.delivers() && tree.deliverer() != kNoRank) {
        builder.copy(Builder::flag_slot(tree.deliverer(), 0, target.length), target);
        return;
    }
    std::vector<Slice> operands;
    for (const Rank top : tree.tops()) {
        operands.push_back(top == tree.rank() ? part : Builder::flag_slot(top, 0, part.length));
    }
    reduce_to_result(builder, operands, target);
    if (tree.delivers()) {
        builder.share(target);
    }
}

} // namespace ucg::plan
