#include "ucg_coll/plan/levels/on_host.hpp"

#include <algorithm>
#include <limits>

#include "ucg_coll/plan/boards/pieces.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::Slice;

/// A phase by either way.
struct Prices {
    double messages_ns = 0;
    double boards_ns = std::numeric_limits<double>::infinity(); ///< They do not take it.

    bool by_boards() const { return boards_ns < messages_ns; }
    double least_ns() const { return std::min(messages_ns, boards_ns); }
};

/// All ranks take a turn of the boards, and who has peers uses it.
bool takes_boards(Builder& builder, const TwoLevels& levels, const Prices& prices) {
    if (prices.by_boards()) {
        builder.boards();
    }
    return prices.by_boards() && levels.host().size() > 1;
}

Prices barrier_prices(const Facts& facts) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    Prices prices{2 * barrier_tree_ns(link, count, barrier_tree_radix(link, count))};
    if (boards_take(facts, 0)) {
        prices.boards_ns =
            to_root_by_boards_ns(facts, count, 0) + from_root_by_boards_ns(facts, count, 0, 0);
    }
    return prices;
}

Prices bcast_prices(const Facts& facts, std::uint64_t bytes) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    Prices prices{bcast_best_ns(link, count, bytes)};
    if (boards_take(facts, bytes)) {
        prices.boards_ns = from_root_by_boards_ns(facts, count, bytes, bytes) + link.copy_ns(bytes);
    }
    return prices;
}

Prices reduce_prices(const Facts& facts, Rank leader, std::uint64_t bytes, Operator op) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    Prices prices{reduce_best_ns(link, count, leader, bytes, op)};
    if (boards_take(facts, bytes)) {
        prices.boards_ns = to_root_by_boards_ns(facts, count, bytes) +
                           link.reduce_ns(static_cast<unsigned>(count), bytes);
    }
    return prices;
}

/// Of all ranks of the fullest host.
std::uint64_t all_blocks_on_host(const Facts& facts, std::uint64_t block_bytes) {
    return checked_multiply(static_cast<std::uint64_t>(facts.placement.ranks_per_host_max()),
                            block_bytes);
}

Prices gather_prices(const Facts& facts, std::uint64_t block_bytes) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    Prices prices{gather_best_ns(link, count, block_bytes)};
    if (boards_take(facts, block_bytes)) {
        prices.boards_ns = to_root_by_boards_ns(facts, count, block_bytes) +
                           link.copy_ns(all_blocks_on_host(facts, block_bytes));
    }
    return prices;
}

Prices scatter_prices(const Facts& facts, std::uint64_t block_bytes) {
    const Link link = host_link(facts);
    const Rank count = facts.placement.ranks_per_host_max();
    const std::uint64_t all = all_blocks_on_host(facts, block_bytes);
    Prices prices{scatter_best_ns(link, count, block_bytes)};
    if (boards_take(facts, all)) {
        prices.boards_ns =
            from_root_by_boards_ns(facts, count, all, block_bytes) + link.copy_ns(block_bytes);
    }
    return prices;
}

unsigned tree_radix(const Facts& facts, const TwoLevels& levels) {
    return barrier_tree_radix(host_link(facts), levels.host().size());
}

} // namespace

void arrive_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, OpIds& last) {
    UCG_ASSERT(levels.host_leader() == 0);
    if (takes_boards(builder, levels, barrier_prices(facts))) {
        arrive_by_boards(builder, levels.host(), last);
    } else {
        barrier_arrive(builder, levels.host(), tree_radix(facts, levels), last);
    }
}

void release_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, OpIds& last) {
    if (takes_boards(builder, levels, barrier_prices(facts))) {
        release_by_boards(builder, levels.host(), last);
    } else {
        barrier_release(builder, levels.host(), tree_radix(facts, levels), last);
    }
}

double barrier_on_host_ns(const Facts& facts) {
    return barrier_prices(facts).least_ns();
}

void bcast_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, Slice data) {
    if (takes_boards(builder, levels, bcast_prices(facts, data.length))) {
        bcast_by_boards(builder, levels.host(), levels.host_leader(), data);
    } else {
        bcast_best(builder, levels.host(), host_link(facts), levels.host_leader(), data);
    }
}

double bcast_on_host_ns(const Facts& facts, std::uint64_t bytes) {
    return bcast_prices(facts, bytes).least_ns();
}

/// Who leads differs between hosts; by which way it goes does not.
Slice reduce_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, Slice source,
                     Operator op) {
    const bool boards = takes_boards(builder, levels, reduce_prices(facts, 0, source.length, op));
    if (levels.host().size() == 1) {
        return source;
    }
    const Slice target = levels.leads() ? builder.scratch(source.length) : Slice{};
    if (boards) {
        reduce_by_boards(builder, levels.host(), levels.host_leader(), source, target);
    } else {
        reduce_best(builder, levels.host(), host_link(facts), levels.host_leader(), source, target,
                    op);
    }
    return target;
}

double reduce_on_host_ns(const Facts& facts, Rank leader, std::uint64_t bytes, Operator op) {
    const Prices prices = reduce_prices(facts, 0, bytes, op);
    return prices.by_boards() ? prices.boards_ns
                              : reduce_prices(facts, leader, bytes, op).messages_ns;
}

void gather_on_host(Builder& builder, const Facts& facts, const TwoLevels& levels, Slice own,
                    const BlockMap& target, std::uint64_t block_bytes) {
    if (takes_boards(builder, levels, gather_prices(facts, block_bytes))) {
        gather_by_boards(builder, levels.host(), levels.host_leader(), own, target);
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
    if (takes_boards(builder, levels, scatter_prices(facts, block_bytes))) {
        scatter_by_boards(builder, levels.host(), levels.host_leader(), source, own);
    } else {
        scatter_best(builder, levels.host(), host_link(facts), levels.host_leader(), source, own,
                     block_bytes);
    }
}

double scatter_on_host_ns(const Facts& facts, std::uint64_t block_bytes) {
    return scatter_prices(facts, block_bytes).least_ns();
}

} // namespace ucg::plan
