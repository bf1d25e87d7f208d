// What trees over the levels of a host cost, and which levels they have.
#include "ucg_coll/plan/flag_slots/tree.hpp"

namespace ucg::plan {
namespace {

/// One level of a tree, on the fullest host.
struct TreeLevel {
    topo::Distance distance = topo::Distance::core; ///< The widest between members of a group.
    Rank members = 1;                               ///< Members of the largest group.
    Rank groups = 1;                                ///< Groups on the host.
};

/// Returns the level of the host that has the groups of ranks closer than `limit`.
const HostLevel& inside(const HostLevels& host, topo::Distance limit) {
    std::size_t i = 0;
    while (i + 2 < host.count && host.level[i + 1].distance < limit) {
        ++i;
    }
    return host.level[i];
}

/// Returns a level of the tree. `index` counts from the innermost level on; limits.count is the
/// top.
TreeLevel level_of(const Facts& facts, const TreeLimits& limits, std::size_t index) {
    const HostLevels& host = facts.shared.levels;
    const HostLevel& all = host.level[host.count - 1];
    const HostLevel& own = index < limits.count ? inside(host, limits.limit[index]) : all;
    const Rank below = index > 0 ? inside(host, limits.limit[index - 1]).ranks : 1;
    const auto up = [](Rank a, Rank b) { return static_cast<Rank>((a + b - 1) / b); };
    return {own.distance, up(own.ranks, below), up(all.ranks, own.ranks)};
}

/// Returns the time from a share until it can be read over `link`.
double sharing_ns(const Facts& facts, const Link& link, std::uint64_t bytes) {
    return link.message_ns(0) - link.take_overhead_ns() +
           cost::copy_ns(facts.profile.memory, bytes);
}

/// Returns the time from a share until each of `readers` ranks at `distance` has taken in
/// `flag_slots` flag slots.
double reading_ns(const Facts& facts, topo::Distance distance, Rank readers, Rank flag_slots,
                  std::uint64_t bytes) {
    const Link link(facts, distance);
    const std::uint64_t lines =
        static_cast<std::uint64_t>(flag_slots) * cost::flag_slot_line_bytes(bytes);
    return sharing_ns(facts, link, bytes) +
           cost::flag_slot_lines_ns(facts.profile.memory.level(distance),
                                    static_cast<std::uint64_t>(readers), lines);
}

double combining_ns(const Facts& facts, const TreeLevel& level, std::uint64_t bytes) {
    return bytes == 0 || level.members < 2
               ? 0
               : price::combine_flag_slots_ns(facts.profile,
                                              facts.profile.memory.level(level.distance),
                                              static_cast<unsigned>(level.members), bytes);
}

} // namespace

double up_tree_ns(const Facts& facts, const TreeLimits& limits, TreeEnd end, std::uint64_t bytes) {
    double ns = 0;
    for (std::size_t i = 0; i < limits.count + (end == TreeEnd::root ? 1 : 0); ++i) {
        const TreeLevel level = level_of(facts, limits, i);
        const bool delivered =
            i == 0; // The deliverer sends a message; flag slots are read after it.
        if (level.members > 1) {
            const Link link(facts, level.distance);
            const double message_ns = link.message_ns(bytes) - sharing_ns(facts, link, bytes);
            ns += reading_ns(facts, level.distance, 1, level.members - (delivered ? 2 : 1), bytes) +
                  combining_ns(facts, level, bytes) + (delivered ? std::max(0.0, message_ns) : 0);
        }
    }
    return ns;
}

/// Returns the time in which the members of an innermost group read the deliverer's flag slot.
static double delivering_ns(const Facts& facts, const TreeLevel& near, std::uint64_t bytes) {
    return near.members < 2 ? 0
                            : reading_ns(facts, near.distance, near.members - 1, 1, bytes) +
                                  Link(facts, near.distance).copy_ns(bytes);
}

double down_tree_ns(const Facts& facts, const TreeLimits& limits, std::uint64_t bytes) {
    const TreeLevel near = level_of(facts, limits, 0);
    const TreeLevel top = level_of(facts, limits, limits.count);
    return reading_ns(facts, top.distance, near.groups + near.members - 1, 1, bytes) +
           Link(facts, top.distance).copy_ns(bytes) + delivering_ns(facts, near, bytes);
}

double from_tops_ns(const Facts& facts, const TreeLimits& limits, std::uint64_t bytes) {
    const TreeLevel near = level_of(facts, limits, 0);
    const TreeLevel top = level_of(facts, limits, limits.count);
    return reading_ns(facts, top.distance, near.groups, top.members, bytes) +
           combining_ns(facts, top, bytes) + delivering_ns(facts, near, bytes);
}

unsigned up_tree_waits(const TreeLimits& limits, TreeEnd end) {
    return static_cast<unsigned>(limits.count) + (end == TreeEnd::root ? 1 : 0);
}

/// Each bit of `index` + 1 says whether there is a limit between a level and the next.
TreeLimits tree_limits(const Facts& facts, unsigned index) {
    const HostLevels& host = facts.shared.levels;
    TreeLimits limits;
    if (index + 1 < 1U << (host.count - 1)) {
        for (std::size_t i = 0; i + 1 < host.count; ++i) {
            if (((index + 1) >> i & 1U) != 0) {
                limits.limit[limits.count++] = host.level[i + 1].distance;
            }
        }
    }
    return limits;
}

} // namespace ucg::plan
