#include "ucg_coll/plan/flag_slots/pieces.hpp"

namespace ucg::plan {

using graph::Builder;
using graph::Slice;

namespace {

/// Calls visit(index) for all members but this one.
template <typename Visit>
void for_each_other(const Team& team, Visit&& visit) {
    for (Rank index = 0; index < team.size(); ++index) {
        if (index != team.index()) {
            visit(index);
        }
    }
}

} // namespace

void arrive_by_flag_slots(Builder& builder, const Team& team, OpIds& last) {
    if (team.index() != 0) {
        last = {builder.share(builder.input(0, 0), last)};
        return;
    }
    OpIds arrived = last;
    for_each_other(
        team, [&](Rank index) { arrived.push_back(builder.await_share(team.rank(index), last)); });
    last = std::move(arrived);
}

void release_by_flag_slots(Builder& builder, const Team& team, OpIds& last) {
    last = {team.index() == 0 ? builder.share(builder.input(0, 0), last)
                              : builder.await_share(team.rank(0), last)};
}

void bcast_by_flag_slots(Builder& builder, const Team& team, Rank root, Slice data) {
    if (team.index() == root) {
        builder.share(data);
    } else {
        builder.copy(Builder::flag_slot(team.rank(root), 0, data.length), data);
    }
}

void reduce_by_flag_slots(Builder& builder, const Team& team, Rank root, Slice source,
                          Slice target) {
    if (team.index() != root) {
        builder.share(source);
        return;
    }
    std::vector<Slice> operands;
    operands.reserve(static_cast<std::size_t>(team.size()));
    for (Rank index = 0; index < team.size(); ++index) {
        operands.push_back(index == root ? source
                                         : Builder::flag_slot(team.rank(index), 0, source.length));
    }
    reduce_to_result(builder, operands, target);
}

void gather_by_flag_slots(Builder& builder, const Team& team, Rank root, Slice own,
                          const BlockMap& target) {
    if (team.index() != root) {
        builder.share(own);
        return;
    }
    builder.copy(own, target.block(root));
    for_each_other(team, [&](Rank index) {
        const Slice block = target.block(index);
        builder.copy(Builder::flag_slot(team.rank(index), 0, block.length), block);
    });
}

void scatter_by_flag_slots(Builder& builder, const Team& team, Rank root, const BlockMap& source,
                           Slice own) {
    const SharedBlocks shared = shared_blocks(root, team.size());
    if (team.index() != root) {
        const std::uint64_t offset = source.run_bytes(shared.first, team.index() - shared.first);
        builder.copy(Builder::flag_slot(team.rank(root), offset, own.length), own);
        return;
    }
    builder.share(packed(builder, source.runs(shared.first, shared.count)));
    if (own.length > 0) {
        builder.copy(source.block(root), own);
    }
}

double to_root_by_flag_slots_ns(const Facts& facts, Rank count, std::uint64_t bytes, Rank root) {
    return flag_slots_ns(facts, {.flag_slots = count - 1,
                                 .readers = 1,
                                 .shared_bytes = bytes,
                                 .read_bytes = bytes,
                                 .root = root});
}

double from_root_by_flag_slots_ns(const Facts& facts, Rank count, std::uint64_t shared_bytes,
                                  std::uint64_t read_bytes) {
    return flag_slots_ns(facts, {1, count - 1, shared_bytes, read_bytes});
}

} // namespace ucg::plan
