#include "ucg_coll/plan/levels/on_host.hpp"

#include <algorithm>
#include <limits>

#include "ucg_coll/plan/flag_slots/flag_slots.hpp"
#include "ucg_coll/plan/flag_slots/pieces.hpp"
#include "ucg_coll/plan/flag_slots/tree.hpp"
#include "ucg_coll/plan/peer_memory/stages.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// The ways by which a stage may go.
enum class Way : std::uint8_t { messages, flag_slots, tree, memory };

/// The prices of a stage by each way, with a processor for each rank. A way that cannot serve the
/// stage has an infinite price, for the reasons given.
struct Prices {
    double messages_ns = 0;
    double flag_slots_ns = std::numeric_limits<double>::infinity(); ///< None, or too short.
    double tree_ns = std::numeric_limits<double>::infinity();       ///< The host has one level.
    double memory_ns = std::numeric_limits<double>::infinity();     ///< Peers do not reach it.

    double least_ns() const { return std::min({messages_ns, flag_slots_ns, tree_ns, memory_ns}); }
    Way way() const {
        const double least = least_ns();
        if (messages_ns <= least) {
            return Way::messages;
        }
        if (flag_slots_ns <= least) {
            return Way::flag_slots;
        }
        return tree_ns <= least ? Way::tree : Way::memory;
    }
};

/// Can flag slots over the levels of the host serve vectors of that length?
bool tree_takes(const Facts& facts, std::uint64_t bytes) {
    return facts.shared.levels.count > 1 && flag_slots_take(facts, bytes);
}

/// Returns the limits of the cheapest tree. A way up and a way down that may follow it use the same
/// tree, so both are priced together.
TreeLimits tree_limits_for(const Facts& facts, std::uint64_t bytes) {
    return cheapest_limits(facts, [&](const TreeLimits& limits) {
        return up_tree_ns(facts, limits, TreeEnd::root, bytes) + down_tree_ns(facts, limits, bytes);
    });
}

// Places of a staging buffer: while one segment is read the next is made.
constexpr std::uint32_t kRotation = 2;
// Places of the staging buffers of input and output, and of partial results: all stages of a
// collective have segments of one length, whichever of them read peers' memory.
constexpr std::uint32_t kPlaces = 3 * kRotation;

/// Returns the segments of a vector that is published; none if it is not (element_bytes is 0).
Segments segments_of(const Facts& facts, std::uint64_t bytes, std::uint64_t element_bytes) {
    return element_bytes > 0 ? segments_for(facts.shared, bytes, element_bytes, kRotation, kPlaces)
                             : Segments{};
}

bool memory_takes(const Segments& segments) {
    return segments.segment_bytes > 0 && segments.total_bytes > 0;
}

/// Declares the flag slots or staging buffers that the cheapest way uses, which all ranks must do.
/// Returns the way that this rank takes: messages, of which it has none, if it is alone on its
/// host.
Way prepare(Builder& builder, const TwoLevels& levels, const Prices& prices,
            const Segments& segments = {}) {
    const Way way = prices.way();
    switch (way) {
    case Way::messages: break;
    case Way::flag_slots:
    case Way::tree: builder.flag_slots(); break;
    case Way::memory: builder.staging_buffer(segments.staging_buffer_bytes()); break;
    }
    return levels.host().size() > 1 ? way : Way::messages;
}

Prices barrier_prices(const Facts& facts) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    Prices prices{2 * barrier_tree_ns(link, count, barrier_tree_radix(link, count))};
    if (flag_slots_take(facts, 0)) {
        prices.flag_slots_ns = to_root_by_flag_slots_ns(facts, count, 0) +
                               from_root_by_flag_slots_ns(facts, count, 0, 0);
    }
    if (tree_takes(facts, 0)) {
        const TreeLimits limits = tree_limits_for(facts, 0);
        prices.tree_ns =
            up_tree_ns(facts, limits, TreeEnd::root, 0) + down_tree_ns(facts, limits, 0);
    }
    return prices;
}

Prices bcast_prices(const Facts& facts, std::uint64_t bytes, const Segments& segments,
                    FlagSlotState flag_slots) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    Prices prices{bcast_best_ns(link, count, bytes)};
    if (flag_slots_take(facts, bytes)) {
        prices.flag_slots_ns =
            from_root_by_flag_slots_ns(facts, count, bytes, bytes) + link.copy_ns(bytes);
    }
    if (flag_slots == FlagSlotState::unused && tree_takes(facts, bytes)) {
        prices.tree_ns = down_tree_ns(facts, tree_limits_for(facts, bytes), bytes);
    }
    if (memory_takes(segments)) {
        prices.memory_ns = read_by_segments_ns(facts, segments);
    }
    return prices;
}

/// Trees by which ranks read one another's memory combine by place, not by rank, so that they serve
/// commutative operators only.
Prices reduce_prices(const Facts& facts, Rank leader, std::uint64_t bytes, Operator op,
                     const Segments& segments) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    Prices prices{reduce_best_ns(link, count, leader, bytes, op)};
    if (flag_slots_take(facts, bytes)) {
        prices.flag_slots_ns = to_root_by_flag_slots_ns(facts, count, bytes) +
                               combining_flag_slots_ns(facts, count, bytes);
    }
    if (tree_takes(facts, bytes) && tree_combines(facts, op.commutative)) {
        prices.tree_ns = up_tree_ns(facts, tree_limits_for(facts, bytes), TreeEnd::root, bytes);
    }
    if (op.commutative && memory_takes(segments)) {
        prices.memory_ns = climb_by_segments_ns(facts, segments);
    }
    return prices;
}

/// Returns the length of the blocks of all ranks of the fullest host.
std::uint64_t all_blocks_on_host(const Facts& facts, std::uint64_t block_bytes) {
    return checked_multiply(static_cast<std::uint64_t>(facts.placement.ranks_per_host_max()),
                            block_bytes);
}

Prices gather_prices(const Facts& facts, std::uint64_t block_bytes) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    Prices prices{gather_best_ns(link, count, block_bytes)};
    if (flag_slots_take(facts, block_bytes)) {
        prices.flag_slots_ns = to_root_by_flag_slots_ns(facts, count, block_bytes) +
                               link.copy_ns(all_blocks_on_host(facts, block_bytes));
    }
    return prices;
}

Prices scatter_prices(const Facts& facts, std::uint64_t block_bytes) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    const std::uint64_t all = all_blocks_on_host(facts, block_bytes);
    Prices prices{scatter_best_ns(link, count, block_bytes)};
    if (flag_slots_take(facts, all)) {
        prices.flag_slots_ns =
            from_root_by_flag_slots_ns(facts, count, all, block_bytes) + link.copy_ns(block_bytes);
    }
    return prices;
}

Rank leader_of(const TwoLevels& levels) {
    return levels.host().rank(levels.host_leader());
}

/// Combines the ranks' vectors up a tree by place. Returns the result, which is in scratch that
/// peers do not name, at the leader.
Slice climb(Builder& builder, const Facts& facts, const TwoLevels& levels, const Segments& segments,
            Slice source, Slice others) {
    const Sockets sockets(facts.placement, builder.rank(), MemberOrder::by_place,
                          leader_of(levels));
    const Climb climb(builder, sockets, segments, climb_radix(facts, segments));
    const Slice target = levels.leads() ? builder.scratch(source.length) : Slice{};
    climb_by_segments(builder, climb, segments, source, others, target);
    return target;
}

/// Copies the leader's vector to `data` by reading the leader's memory, in one stage or two.
/// `leaders` names that vector as if it were this rank's own.
void read_leader(Builder& builder, const Facts& facts, const TwoLevels& levels,
                 const Segments& segments, Slice leaders, Slice data) {
    const Rank leader = leader_of(levels);
    const Sockets sockets(facts.placement, builder.rank(), MemberOrder::by_place, leader);
    const Team& host = levels.host();
    std::vector<Rank> members;
    members.reserve(static_cast<std::size_t>(host.size()));
    for (Rank step = 0; step < host.size(); ++step) {
        members.push_back(host.rank((levels.host_leader() + step) % host.size()));
    }
    Stages stages(builder, facts);
    if (read_in_two_stages(facts, segments.total_bytes)) {
        stages.add_two_stages(sockets);
    } else {
        stages.add(
            Team::of(members, (host.index() - levels.host_leader() + host.size()) % host.size()));
    }
    read_by_segments(builder, stages, segments, at_rank(leader, leaders), data);
}

FlagSlotTree flag_slot_tree(const Facts& facts, const Builder& builder, const TwoLevels& levels,
                            std::uint64_t bytes) {
    return FlagSlotTree(facts.placement, tree_limits_for(facts, bytes), builder.rank(),
                        leader_of(levels));
}

unsigned tree_radix(const Facts& facts, const TwoLevels& levels) {
    return barrier_tree_radix(host_link(facts), levels.host().size());
}

} // namespace

void arrive_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, OpIds& last) {
    UCG_ASSERT(levels.host_leader() == 0);
    switch (prepare(builder, levels, barrier_prices(facts))) {
    case Way::flag_slots: arrive_by_flag_slots(builder, levels.host(), last); break;
    case Way::tree:
        arrive_by_tree(builder, flag_slot_tree(facts, builder, levels, 0), TreeEnd::root, last);
        break;
    case Way::messages:
    case Way::memory:
        barrier_arrive(builder, levels.host(), tree_radix(facts, levels), last);
        break;
    }
}

void release_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, OpIds& last) {
    switch (prepare(builder, levels, barrier_prices(facts))) {
    case Way::flag_slots: release_by_flag_slots(builder, levels.host(), last); break;
    case Way::tree:
        release_by_tree(builder, flag_slot_tree(facts, builder, levels, 0), leader_of(levels),
                        last);
        break;
    case Way::messages:
    case Way::memory:
        barrier_release(builder, levels.host(), tree_radix(facts, levels), last);
        break;
    }
}

double barrier_on_host_ns(const Facts& facts) {
    return barrier_prices(facts).least_ns();
}

void bcast_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, Slice data,
                   const Published& published, FlagSlotState flag_slots) {
    const Segments segments = segments_of(facts, data.length, published.element_bytes);
    switch (prepare(builder, levels, bcast_prices(facts, data.length, segments, flag_slots),
                    segments)) {
    case Way::messages:
        bcast_best(builder, levels.host(), host_link(facts), levels.host_leader(), data);
        break;
    case Way::flag_slots:
        bcast_by_flag_slots(builder, levels.host(), levels.host_leader(), data);
        break;
    case Way::tree:
        bcast_by_tree(builder, flag_slot_tree(facts, builder, levels, data.length),
                      leader_of(levels), data);
        break;
    case Way::memory: read_leader(builder, facts, levels, segments, published.vector, data); break;
    }
}

double bcast_on_host_ns(const Facts& facts, std::uint64_t bytes, std::uint64_t element_bytes,
                        FlagSlotState flag_slots) {
    return bcast_prices(facts, bytes, segments_of(facts, bytes, element_bytes), flag_slots)
        .least_ns();
}

/// The leader's index differs between hosts, but all must take the same way: it is chosen as if
/// first ranks led.
Slice reduce_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, Slice source,
                     Operator op, const Published& published) {
    const Segments segments = segments_of(facts, source.length, published.element_bytes);
    const Way way =
        prepare(builder, levels, reduce_prices(facts, 0, source.length, op, segments), segments);
    if (levels.host().size() == 1) {
        return source;
    }
    if (way == Way::memory) {
        return climb(builder, facts, levels, segments, source, published.vector);
    }
    if (way == Way::tree) {
        return reduce_by_tree(builder, flag_slot_tree(facts, builder, levels, source.length),
                              TreeEnd::root, source);
    }
    const Slice target = levels.leads() ? builder.scratch(source.length) : Slice{};
    if (way == Way::flag_slots) {
        reduce_by_flag_slots(builder, levels.host(), levels.host_leader(), source, target);
    } else {
        reduce_best(builder, levels.host(), host_link(facts), levels.host_leader(), source, target,
                    op);
    }
    return target;
}

double reduce_on_host_ns(const Facts& facts, Rank leader, std::uint64_t bytes, Operator op,
                         std::uint64_t element_bytes) {
    const Segments segments = segments_of(facts, bytes, element_bytes);
    const Prices prices = reduce_prices(facts, 0, bytes, op, segments);
    return prices.way() == Way::messages
               ? reduce_prices(facts, leader, bytes, op, segments).messages_ns
               : prices.least_ns();
}

static FlagSlotState used_by(const Prices& prices) {
    return prices.way() == Way::flag_slots ? FlagSlotState::used : FlagSlotState::unused;
}

FlagSlotState used_to_reduce(const Facts& facts, std::uint64_t bytes, Operator op,
                             std::uint64_t element_bytes) {
    const Segments segments = segments_of(facts, bytes, element_bytes);
    return used_by(reduce_prices(facts, 0, bytes, op, segments));
}

FlagSlotState used_to_gather(const Facts& facts, std::uint64_t block_bytes) {
    return used_by(gather_prices(facts, block_bytes));
}

void gather_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, Slice own,
                    const BlockMap& target, std::uint64_t block_bytes) {
    if (prepare(builder, levels, gather_prices(facts, block_bytes)) == Way::flag_slots) {
        gather_by_flag_slots(builder, levels.host(), levels.host_leader(), own, target);
    } else {
        gather_best(builder, levels.host(), host_link(facts), levels.host_leader(), own, target,
                    block_bytes);
    }
}

double gather_on_host_ns(const Facts& facts, std::uint64_t block_bytes) {
    return gather_prices(facts, block_bytes).least_ns();
}

void scatter_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels,
                     const BlockMap& source, Slice own, std::uint64_t block_bytes) {
    if (prepare(builder, levels, scatter_prices(facts, block_bytes)) == Way::flag_slots) {
        scatter_by_flag_slots(builder, levels.host(), levels.host_leader(), source, own);
    } else {
        scatter_best(builder, levels.host(), host_link(facts), levels.host_leader(), source, own,
                     block_bytes);
    }
}

double scatter_on_host_ns(const Facts& facts, std::uint64_t block_bytes) {
    return scatter_prices(facts, block_bytes).least_ns();
}

} // namespace ucg::plan
