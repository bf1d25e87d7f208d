// Collectives whose ranks help one another (graph/helped.hpp): a program that computes between the
// beginning and the end of a nonblocking call finds its part done by ranks that had nothing else to
// do. Each rank's input and the place of its result are there from the beginning, so everything is
// one stage: a unit reads inputs, combines them in the order of ranks, and writes results.
#include <algorithm>
#include <array>
#include <numeric>

#include "ucg_coll/plan/messages/block_pieces.hpp"
#include "ucg_coll/plan/parts/oversubscription.hpp"
#include "ucg_coll/plan/peer_memory/pieces.hpp"

namespace ucg::plan {
namespace {

using graph::advance;
using graph::Builder;
using graph::OpId;
using graph::Slice;

/// The most bytes of a unit. A rank that comes back while a peer does one of its units waits for
/// that peer.
constexpr std::uint64_t kUnitBytesMax = 64 << 10;
/// The most bytes of all operands and the result of a unit, so that they stay in the cache of a
/// core.
constexpr std::uint64_t kUnitOperandsMax = 256 << 10;

/// Returns the bytes of which units are multiples: whole elements and cache lines.
std::uint64_t grain(const graph::Request& request) {
    return std::lcm(request.element_bytes, std::uint64_t{kCacheLine});
}

/// Returns the bytes of a unit of a part of `part_bytes` with `operands` operands. A part has at
/// least two units if it is long enough.
std::uint64_t unit_bytes(const graph::Request& request, std::uint64_t part_bytes,
                         std::uint64_t operands) {
    const std::uint64_t most = std::min(kUnitBytesMax, kUnitOperandsMax / (operands + 1));
    const std::uint64_t half = divide_up(part_bytes, 2);
    const std::uint64_t least = divide_up(part_bytes, graph::kHelpedUnitsMax);
    return round_up(std::max(std::min(most, half), least), grain(request));
}

std::uint64_t count_of(const graph::Request& request) {
    return static_cast<std::uint64_t>(request.rank_count);
}

/// Returns all ranks but `rank`, beginning with the next one.
std::vector<Rank> all_but(const graph::Request& request, Rank rank) {
    std::vector<Rank> others;
    for (Rank step = 1; step < request.rank_count; ++step) {
        others.push_back((rank + step) % request.rank_count);
    }
    return others;
}

/// Adds a rank's whole schedule. parts(known) adds the rank's own parts, which name the ranks
/// `read` and come after the ops `known`, by which these ranks are known to have begun; it returns
/// the ops that end the parts. `readers` are the ranks whose parts name this rank.
template <typename Parts>
graph::Schedule build(Builder& builder, const std::vector<Rank>& read,
                      const std::vector<Rank>& readers, Parts&& parts) {
    builder.help();
    for (const Rank reader : readers) {
        builder.signal(reader);
    }
    std::vector<OpId> known;
    known.reserve(read.size());
    for (const Rank peer : read) {
        known.push_back(builder.await(peer));
    }
    const std::vector<OpId> ended = parts(known);
    for (const Rank peer : read) {
        builder.signal(peer, ended);
    }
    for (const Rank reader : readers) {
        builder.await(reader);
    }
    return builder.finish();
}

struct CopiedBlock {
    Slice source;
    Slice target;
};

/// Adds a part that copies blocks of equal length; a unit has a piece of each block. Returns the
/// copies.
std::vector<OpId> copy_part(Builder& builder, const graph::Request& request,
                            std::span<const CopiedBlock> blocks, std::span<const OpId> known) {
    const std::uint64_t length = blocks.front().target.length;
    const auto [count, unit] =
        builder.begin_repeat(length, unit_bytes(request, length, blocks.size()));
    std::vector<OpId> copies;
    for (const CopiedBlock& block : blocks) {
        copies.push_back(builder.copy(advance(part(block.source, 0, unit)),
                                      advance(part(block.target, 0, unit)), known));
    }
    builder.end_repeat();
    return copies;
}

/// Adds a part that combines the vectors of all ranks, `own` of this rank and `others` of each
/// other rank, and copies the result to `targets`. Returns the copies.
std::vector<OpId> reduce_part(Builder& builder, const graph::Request& request, const Slice& own,
                              const Slice& others, std::span<const Slice> targets,
                              std::span<const OpId> known) {
    const std::uint64_t bytes = unit_bytes(request, own.length, count_of(request));
    const Slice result = builder.scratch(std::min(bytes, own.length));
    const auto [count, unit] = builder.begin_repeat(own.length, bytes);
    std::vector<Slice> operands;
    for (Rank rank = 0; rank < request.rank_count; ++rank) {
        const Slice vector = rank == builder.rank() ? own : at_rank(rank, others);
        operands.push_back(advance(part(vector, 0, unit)));
    }
    builder.reduce(operands, result, known);
    std::vector<OpId> copies;
    for (const Slice& target : targets) {
        copies.push_back(builder.copy(result, advance(part(target, 0, unit))));
    }
    builder.end_repeat();
    return copies;
}

// Prices, where all ranks are there, each does as many units as any other, and works in its own
// cache.

/// Returns the time to copy a unit of a vector of `vector_bytes` from rank to rank: by an ordinary
/// copy if the vector lies in memory that all have mapped, else by the kernel.
double copy_unit_ns(const Facts& facts, std::uint64_t unit, std::uint64_t vector_bytes) {
    const double copy_ns = price::copy_ns(facts.profile, unit, rates_for(facts, 2 * vector_bytes));
    return facts.shared.buffers_mapped
               ? copy_ns + widest_level(facts).latency_ns
               : std::max(copy_ns, cost::cma_ns(facts.profile.memory.cma, unit));
}

/// Returns the time to combine a unit of all vectors and write the result to `targets` ranks.
/// Vectors in mapped memory are combined where they lie. Of other vectors, the rank that does the
/// unit has one in its own memory, and maybe the place of one result; the kernel copies the rest.
double reduce_unit_ns(const Facts& facts, const graph::Request& request, std::uint64_t unit,
                      double targets) {
    const auto operands = static_cast<unsigned>(request.rank_count);
    const std::uint64_t touched = request.bytes + operands * unit;
    const double reduce_ns =
        price::reduce_ns(facts.profile, operands, unit, rates_for(facts, touched));
    if (facts.shared.buffers_mapped) {
        return reduce_ns + targets * copy_unit_ns(facts, unit, request.bytes);
    }
    const double own_ns = price::copy_ns(facts.profile, unit, rates_for(facts, 2 * request.bytes));
    return (operands - 1) * cost::cma_ns(facts.profile.memory.cma, unit) + reduce_ns + own_ns +
           (targets - 1) * copy_unit_ns(facts, unit, request.bytes);
}

/// The units of a part.
struct Units {
    std::uint64_t count = 1; ///< Units of each part.
    std::uint64_t bytes = 0; ///< Average length of a unit; the last one is shorter.
};

Units units_of(const graph::Request& request, std::uint64_t part_bytes, std::uint64_t operands) {
    if (part_bytes == 0) {
        return {.count = 0};
    }
    const std::uint64_t count = divide_up(part_bytes, unit_bytes(request, part_bytes, operands));
    return {count, divide_up(part_bytes, count)};
}

/// Returns the time in which all ranks do equally many of the units of `parts` parts and tell one
/// another. A processor that ranks share does the work of all of them.
double shared_ns(const Facts& facts, const graph::Request& request, std::uint64_t parts,
                 const Units& units, double unit_ns) {
    const Link link = host_link(facts);
    const auto each = static_cast<double>(divide_up(parts * units.count, count_of(request)));
    return 2 * link.message_ns(0) +
           link.to_all_ns(std::max(request.rank_count - 2, 0), request.rank_count,
                          [](const Link& way) { return way.gap_ns(0) + way.take_overhead_ns(); }) +
           each * unit_ns * std::max(1.0, facts.ranks_per_cpu);
}

/// If all ranks did only their own parts, the root would have nothing to do; here it does as much
/// as any other.
double bcast_ns(const Facts& facts, const graph::Request& request) {
    const Units units = units_of(request, request.bytes, 1);
    return shared_ns(facts, request, count_of(request) - 1, units,
                     copy_unit_ns(facts, units.bytes, request.bytes));
}

double reduce_ns(const Facts& facts, const graph::Request& request) {
    const Units units = units_of(request, request.bytes, count_of(request));
    return shared_ns(facts, request, 1, units, reduce_unit_ns(facts, request, units.bytes, 1));
}

double allreduce_ns(const Facts& facts, const graph::Request& request) {
    const Tiles tiles = tiles_of(request.bytes, request.rank_count, request.element_bytes);
    const Units units = units_of(request, tiles.bytes, count_of(request));
    return shared_ns(facts, request, static_cast<std::uint64_t>(tiles.count), units,
                     reduce_unit_ns(facts, request, units.bytes, request.rank_count));
}

double exchange_ns(const Facts& facts, const graph::Request& request) {
    const Units units = units_of(request, request.bytes, 1);
    const std::uint64_t parts = count_of(request) * (count_of(request) - 1);
    const std::uint64_t all_bytes = count_of(request) * request.bytes;
    return shared_ns(facts, request, parts, units, copy_unit_ns(facts, units.bytes, all_bytes)) +
           price::copy_ns(facts.profile, request.bytes, rates_for(facts, 2 * all_bytes));
}

// The schedules.

graph::Schedule build_bcast(const Facts& /*facts*/, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kBcastHelped.name);
    if (rank == request.root) {
        return build(builder, {}, all_but(request, rank),
                     [](const auto&) { return std::vector<OpId>(); });
    }
    return build(builder, {request.root}, {}, [&](const std::vector<OpId>& known) {
        const Slice source = at_rank(request.root, builder.input(0, request.bytes));
        const CopiedBlock vector = {source, builder.output(0, request.bytes)};
        return copy_part(builder, request, {&vector, 1}, known);
    });
}

/// Only the root knows whether it is in place. The others take its input for the place of its
/// contribution, and the root tells them where that really is.
graph::Schedule build_reduce(const Facts& /*facts*/, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kReduceHelped.name);
    if (rank != request.root) {
        return build(builder, {}, {request.root}, [](const auto&) { return std::vector<OpId>(); });
    }
    const std::vector<Rank> others = all_but(request, rank);
    return build(builder, others, {}, [&](const std::vector<OpId>& known) {
        const Slice result = builder.output(0, request.bytes);
        return reduce_part(builder, request, contribution(builder, request),
                           builder.input(0, request.bytes), {&result, 1}, known);
    });
}

graph::Schedule build_allreduce(const Facts& /*facts*/, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllreduceHelped.name);
    const std::vector<Rank> others = all_but(request, rank);
    return build(builder, others, others, [&](const std::vector<OpId>& known) {
        const auto tile = [&](const Slice& vector) {
            return tile_of(vector, rank, request.rank_count, request.element_bytes);
        };
        const Slice result = tile(builder.output(0, request.bytes));
        std::vector<Slice> targets = {result};
        for (const Rank peer : others) {
            targets.push_back(at_rank(peer, result));
        }
        const Slice vector = tile(contribution(builder, request));
        return reduce_part(builder, request, vector, vector, targets, known);
    });
}

/// Adds a part for each block that comes from another rank, which has it at source(peer). The own
/// block goes along with the first of them: a part with nothing else would name no other rank, and
/// nobody could help with it.
template <typename Source>
graph::Schedule build_blocks(Builder& builder, const graph::Request& request, const Slice& own,
                             Source&& source) {
    const Rank rank = builder.rank();
    const BlockMap target = output_blocks(builder, request);
    const std::vector<Rank> others = all_but(request, rank);
    return build(builder, others, others, [&](const std::vector<OpId>& known) {
        std::vector<OpId> copies;
        for (const Rank peer : others) {
            std::vector<CopiedBlock> blocks = {{source(peer), target.block(peer)}};
            if (peer == others.front() && own != target.block(rank)) {
                blocks.push_back({own, target.block(rank)});
            }
            const std::vector<OpId> of_part = copy_part(builder, request, blocks, known);
            copies.insert(copies.end(), of_part.begin(), of_part.end());
        }
        return copies;
    });
}

graph::Schedule build_allgather(const Facts& /*facts*/, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAllgatherHelped.name);
    return build_blocks(builder, request, own_contribution(builder, request), [&](Rank peer) {
        return at_rank(peer, request.in_place ? output_blocks(builder, request).block(peer)
                                              : builder.input(0, request.bytes));
    });
}

graph::Schedule build_alltoall(const Facts& /*facts*/, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kAlltoallHelped.name);
    const Slice block = input_blocks(builder, request).block(rank);
    return build_blocks(builder, request, block, [&](Rank peer) { return at_rank(peer, block); });
}

constexpr Need kKernelCopies = {
    "copies by the kernel between all ranks of the host, both ways",
    [](const Facts& facts, const graph::Request&) { return facts.shared.kernel_copies; }};
constexpr Need kFewRanks = {"at most 16 ranks", [](const Facts&, const graph::Request& request) {
                                return request.rank_count <= graph::kHelpedRanksMax;
                            }};
constexpr Need kOwnOperator = {
    "an operator of the library's own",
    [](const Facts&, const graph::Request& request) { return !request.foreign_operator; }};
/// At least two units; where a vector is divided among the ranks, at least two of each rank's part.
constexpr Need kLong = {"several cache lines, and elements, for each rank",
                        [](const Facts& /*facts*/, const graph::Request& request) {
                            const bool divided = request.collective == graph::Collective::allreduce;
                            return request.bytes / grain(request) >=
                                   2 * (divided ? count_of(request) : 1);
                        }};

constexpr std::array kNeeds = {kOneHost, kSeveralRanks, kKernelCopies, kFewRanks, kLong};
constexpr std::array kReducingNeeds = {kOneHost,  kSeveralRanks, kKernelCopies,
                                       kFewRanks, kLong,         kOwnOperator};
constexpr std::array kAlltoallNeeds = {kOneHost,  kSeveralRanks, kKernelCopies,
                                       kFewRanks, kLong,         kNotInPlace};

} // namespace

const Algorithm kBcastHelped = {
    .name = "helped",
    .collective = graph::Collective::bcast,
    .summary = "whoever has time copies the root's vector, to whomever",
    .cost_ns = bcast_ns,
    .build = build_bcast,
    .needs = kNeeds,
    .helped = true,
};

const Algorithm kReduceHelped = {
    .name = "helped",
    .collective = graph::Collective::reduce,
    .summary = "whoever has time combines all vectors to the root's result",
    .cost_ns = reduce_ns,
    .build = build_reduce,
    .needs = kReducingNeeds,
    .helped = true,
};

const Algorithm kAllreduceHelped = {
    .name = "helped",
    .collective = graph::Collective::allreduce,
    .summary = "whoever has time combines pieces of all vectors for everybody",
    .cost_ns = allreduce_ns,
    .build = build_allreduce,
    .needs = kReducingNeeds,
    .helped = true,
};

const Algorithm kAllgatherHelped = {
    .name = "helped",
    .collective = graph::Collective::allgather,
    .summary = "of two ranks whoever has time copies a block of one to the other",
    .cost_ns = exchange_ns,
    .build = build_allgather,
    .needs = kNeeds,
    .helped = true,
};

const Algorithm kAlltoallHelped = {
    .name = "helped",
    .collective = graph::Collective::alltoall,
    .summary = "of two ranks whoever has time copies a block of one to the other",
    .cost_ns = exchange_ns,
    .build = build_alltoall,
    .needs = kAlltoallNeeds,
    .helped = true,
};

} // namespace ucg::plan
