#include "ucg_coll/plan/flag_slots/flag_slots.hpp"

namespace ucg::plan {
namespace {

std::uint64_t lines_of(const FlagSlotUse& use) {
    return static_cast<std::uint64_t>(use.flag_slots) * cost::flag_slot_line_bytes(use.read_bytes);
}

/// Returns the time to take in flag slots [first, end), counted from the nearest, of the
/// `use.flag_slots` that a rank reads. In a prefix reduction, k ranks read the k-th nearest flag
/// slot of the last rank: that rank and all others that come after the owner.
double lines_ns(const cost::MemoryLevel& level, const FlagSlotUse& use, Rank readers, Rank first,
                Rank end) {
    const std::uint64_t lines = cost::flag_slot_line_bytes(use.read_bytes);
    if (!use.prefix || readers < 2) {
        return cost::flag_slot_lines_ns(level, static_cast<std::uint64_t>(readers),
                                        static_cast<std::uint64_t>(end - first) * lines);
    }
    double sum_ns = 0;
    for (Rank flag_slot = first; flag_slot < end; ++flag_slot) {
        sum_ns += cost::flag_slot_lines_ns(level, static_cast<std::uint64_t>(flag_slot), lines);
    }
    return sum_ns;
}

/// Returns the memory level of a distance. Where peers reach buffers in place, it is no slower per
/// byte than copies by the kernel.
cost::MemoryLevel level_at(const Facts& facts, topo::Distance distance) {
    cost::MemoryLevel level = facts.profile.memory.level(distance);
    if (facts.shared.buffers_mapped) {
        level.per_byte_ns = std::min(level.per_byte_ns, facts.profile.memory.cma.per_byte_ns);
    }
    return level;
}

/// Returns how many ranks the group of the slowest reader has at each level of the host, itself
/// among them.
RankLevels::GroupSizes group_sizes(const Facts& facts, const FlagSlotUse& use, Rank readers) {
    const Rank reader = use.prefix ? facts.placement.rank_count() - 1 : use.root;
    const HostLevels& host = facts.shared.levels;
    if (facts.placement.host_count() == 1 && host.count > 1 && reader != kNoRank) {
        return RankLevels(facts).of_rank(reader).group_sizes(RankLevels::End::most);
    }
    RankLevels::GroupSizes sizes = {};
    for (std::size_t i = 0; i < host.count; ++i) {
        sizes[i] = readers > 1 ? host.level[i].ranks_min : host.level[i].ranks;
    }
    return sizes;
}

/// Returns the time to read the flag slots, without the time until the first line has come, which a
/// message takes as well.
double reading_ns(const Facts& facts, const FlagSlotUse& use, Rank readers) {
    const HostLevels& host = facts.shared.levels;
    if (host.count == 0 || use.flag_slots < facts.placement.ranks_per_host_max() - 1) {
        return lines_ns(widest_level(facts), use, readers, 1, use.flag_slots + 1);
    }
    const RankLevels::GroupSizes sizes = group_sizes(facts, use, readers);
    double sum_ns = 0;
    Rank nearer = 1;
    for (std::size_t i = 0; i < host.count; ++i) {
        sum_ns += lines_ns(level_at(facts, host.level[i].distance), use, readers, nearer, sizes[i]);
        nearer = sizes[i];
    }
    return sum_ns;
}

} // namespace

double flag_slots_ns(const Facts& facts, const FlagSlotUse& use) {
    const Link link = host_link(facts);
    return link.message_ns(0) - link.take_overhead_ns() +
           cost::copy_ns(facts.profile.memory, use.shared_bytes) +
           reading_ns(facts, use, use.readers);
}

double flag_slots_work_ns(const Facts& facts, const Work& work, const FlagSlotUse& use) {
    return work.link().message_ns(0) - work.link().take_overhead_ns() +
           work.link().copy_ns(use.shared_bytes) + reading_ns(facts, use, 1);
}

double all_flag_slots_ns(const Facts& facts, const FlagSlotUse& use, double combine_ns) {
    const std::uint64_t touched = use.shared_bytes + lines_of(use);
    const Link link = host_link(facts);
    return oversubscribed_ns(
        facts, link, touched, flag_slots_ns(facts, use) + combine_ns,
        [&](const Work& work) { return flag_slots_work_ns(facts, work, use) + combine_ns; });
}

SharedBlocks shared_blocks(Rank rank, Rank count) {
    if (count > 1 && rank == 0) {
        return {1, count - 1};
    }
    return {0, count > 1 && rank == count - 1 ? count - 1 : count};
}

double landing_ns(const Facts& facts, Rank count, std::uint64_t block_bytes) {
    const Link link = host_link(facts);
    const double copy_ns = link.copy_ns(block_bytes);
    return (count - 1) * copy_ns + link.not_hidden_ns(copy_ns, 0);
}

double combining_flag_slots_ns(const Facts& facts, Rank operands, std::uint64_t bytes) {
    return operands < 2 ? 0
                        : price::combine_flag_slots_ns(facts.profile, widest_level(facts),
                                                       static_cast<unsigned>(operands), bytes);
}

std::vector<graph::Slice> in_rank_order(const graph::Builder& builder, Rank first, Rank last,
                                        std::uint64_t offset, graph::Slice own) {
    std::vector<graph::Slice> slices;
    for (Rank rank = first; rank < last; ++rank) {
        slices.push_back(
            rank == builder.rank() ? own : graph::Builder::flag_slot(rank, offset, own.length));
    }
    return slices;
}

} // namespace ucg::plan
