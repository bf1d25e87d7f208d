// The bytes that cross between packages, counted in the schedules of all ranks: the bytes that one
// rank sends to another, and those that it reads of the other's memory. The expected figures are
// those of Li, Hoefler and Snir, "NUMA-Aware Shared-Memory Collective Communication for MPI" (HPDC
// 2013), for their algorithms; for the others they follow from the algorithm and the collective.
//
// Notation of the paper: s sockets of q ranks each, p = q s ranks in all, m bytes of a vector or
// block.
#include <array>
#include <functional>
#include <map>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"

namespace ucg::plan::test {
namespace {

using graph::Collective;
using graph::Op;
using graph::OpKind;
using graph::Schedule;
using graph::Slice;

/// Bytes, by the distance that they cross.
using Traffic = std::array<std::uint64_t, topo::kDistanceCount>;

void add(Traffic& traffic, topo::Distance distance, std::uint64_t bytes) {
    traffic[static_cast<std::size_t>(distance)] += bytes;
}

std::uint64_t across(const Traffic& traffic, topo::Distance distance) {
    return traffic[static_cast<std::size_t>(distance)];
}

void add_read(Traffic& traffic, const topo::Placement& placement, Rank reader, const Slice& slice) {
    if (slice.owner != kNoRank && slice.owner != reader) {
        add(traffic, placement.distance(reader, slice.owner), slice.length);
    }
}

void add_schedule(Traffic& traffic, const topo::Placement& placement, const Schedule& schedule) {
    for (const Op& op : schedule.ops) {
        if (op.kind == OpKind::send) {
            add(traffic, placement.distance(schedule.rank, op.peer), op.source.length);
        }
        // Publishing writes a rank's own memory; no rank writes another's.
        if (op.target.owner != kNoRank && op.target.owner != schedule.rank) {
            FAIL("rank " << schedule.rank << " writes memory of rank " << op.target.owner);
        }
        if (op.kind == OpKind::copy) {
            add_read(traffic, placement, schedule.rank, op.source);
        }
        for (std::uint32_t i = 0; i < op.operand_count; ++i) {
            add_read(traffic, placement, schedule.rank, schedule.operands[op.first_operand + i]);
        }
    }
}

Traffic traffic_of(const Facts& facts, const Algorithm& row, const Case& sample) {
    Traffic traffic{};
    for (Rank rank = 0; rank < sample.rank_count; ++rank) {
        const auto schedule = plan(facts, request_of(sample, rank), rank, row.name);
        REQUIRE(schedule.ok());
        add_schedule(traffic, facts.placement, graph::unroll(*schedule));
    }
    return traffic;
}

/// A machine with a rank on every core.
struct Node {
    const char* description;
    double s;
    double q;

    double p() const { return s * q; }
    bool powers_of_two() const {
        const auto power = [](double x) {
            const auto n = static_cast<unsigned>(x);
            return (n & (n - 1)) == 0;
        };
        return power(s) && power(q);
    }
};

constexpr Node kNodes[] = {
    {"package:2 l3:1 core:6 pu:1", 2, 6}, // The paper's Westmere machine.
    {"package:4 l3:1 core:8 pu:1", 4, 8}, // The paper's Magny-Cours machine.
    {"package:2 l3:8 core:8 pu:1", 2, 64},
};

/// The next ranks are dealt to the packages in turn, or each package gets its share of consecutive
/// ranks.
enum class Mapping { consecutive, dealt };

topo::Placement placement_on(const Node& node, Mapping mapping) {
    const auto machine = topo::machine_from_synthetic(node.description);
    REQUIRE(machine.ok());
    const auto map_by = mapping == Mapping::dealt ? topo::MapBy::package : topo::MapBy::core;
    return topo::map_ranks(*machine, 1, static_cast<Rank>(node.p()), map_by);
}

unsigned log2_below(double x) {
    unsigned log = 0;
    while ((2U << log) <= static_cast<unsigned>(x)) {
        ++log;
    }
    return log;
}

using Key = std::pair<Collective, std::string_view>;
/// Bytes in units of m.
using Formula = std::function<double(const Node&)>;

/// The bytes that cross between sockets wherever the ranks are: these algorithms follow the
/// placement, or it does not matter to them.
const std::map<Key, Formula>& paper() {
    const auto one_tree = [](const Node& n) { return n.s - 1; };
    const auto two_trees = [](const Node& n) { return 2 * (n.s - 1); };
    const auto far = [](const Node& n) { return n.p() - n.q; };
    static const std::map<Key, Formula> formulas = {
        // Equation 4: in one stage the q ranks of each other socket read the vector; in two stages
        // one of them does.
        {{Collective::bcast, "one_stage"}, far},
        {{Collective::bcast, "two_stage"}, one_tree},
        // Equation 2: the tree over the sockets has an edge for each socket but the root's.
        {{Collective::reduce, "numa_tree"}, one_tree},
        // Section 3.2: each rank combines a tile, m / p, of all vectors; the root collects the
        // tiles.
        {{Collective::reduce, "tiled"}, [=](const Node& n) { return far(n) + far(n) / n.p(); }},
        {{Collective::allreduce, "all_read"}, [=](const Node& n) { return n.p() * far(n); }},
        // Tiles go to the ranks that combine them, and results to all ranks.
        {{Collective::allreduce, "tiled_naive"}, [=](const Node& n) { return 2 * far(n); }},
        {{Collective::allreduce, "tiled_cyclic"}, [=](const Node& n) { return 2 * far(n); }},
        {{Collective::allreduce, "tiled_exchange"}, [=](const Node& n) { return 2 * far(n); }},
        // Equations 9 and 11: q tiles of m / q go up a tree over the sockets, and down again.
        {{Collective::allreduce, "tiled_hierarchical"}, two_trees},
        // Equations 2 and 4. Which of the two broadcasts is used: see below.
        {{Collective::allreduce, "numa_tree"}, two_trees},
        // Equations 6 and 7: in each of the last log2 s steps, the q' ranks of each socket that are
        // not in excess read a vector.
        {{Collective::allreduce, "numa_dissemination"},
         [](const Node& n) { return n.s * (1U << log2_below(n.q)) * log2_below(n.s); }},
        // Section 2.6, without an operator: each block crosses once, from its owner to the rank
        // that needs it.
        {{Collective::gather, "peer_read"}, far},
        {{Collective::scatter, "peer_read"}, far},
        {{Collective::allgather, "peer_read"}, [=](const Node& n) { return n.p() * far(n); }},
        {{Collective::alltoall, "peer_read"}, [=](const Node& n) { return n.p() * far(n); }},
        {{Collective::reduce_scatter_block, "peer_read"},
         [=](const Node& n) { return n.p() * far(n); }},
    };
    return formulas;
}

/// The bytes that cross if sockets have consecutive ranks, and powers of two of them where the flag
/// says so. These algorithms know only the numbers of ranks.
struct Flat {
    Formula formula;
    bool powers_of_two = false;
};

const std::map<Key, Flat>& flat() {
    const auto far = [](const Node& n) { return n.p() - n.q; };
    const auto pairs = [=](const Node& n) { return n.p() * far(n); };
    const auto borders = [](const Node& n) { return n.s - 1; };
    // Each of the s borders between sockets, that from the last rank to the first among them, is
    // crossed by what a rank passes on in p - 1 steps.
    const auto ring = [](const Node& n) { return n.s * (n.p() - 1); };
    // Subtrees and halves of powers of two consist of whole sockets.
    const auto doubling = [](const Node& n) { return n.p() * log2_below(n.s); };
    static const std::map<Key, Flat> formulas = {
        {{Collective::bcast, "knomial"}, {borders, true}},
        {{Collective::bcast, "chain"}, {borders}},
        {{Collective::reduce, "knomial"}, {borders, true}},
        {{Collective::reduce, "chain"}, {borders}},
        {{Collective::allreduce, "recursive_doubling"}, {doubling, true}},
        {{Collective::allreduce, "elimination"}, {doubling, true}},
        {{Collective::allreduce, "reduce_bcast"},
         {[=](const Node& n) { return 2 * borders(n); }, true}},
        {{Collective::allreduce, "ring"}, {[=](const Node& n) { return 2 * ring(n) / n.p(); }}},
        // In the last rounds each of the p ranks exchanges m / q, m / 2q, ..., twice.
        {{Collective::allreduce, "rabenseifner"},
         {[=](const Node& n) { return 2 * borders(n); }, true}},
        {{Collective::allgather, "ring"}, {ring}},
        {{Collective::allgather, "recursive_doubling"}, {pairs, true}},
        {{Collective::alltoall, "pairwise"}, {pairs}},
        {{Collective::alltoall, "linear"}, {pairs}},
        {{Collective::scan, "chain"}, {borders}},
        {{Collective::exscan, "chain"}, {borders}},
        {{Collective::gather, "linear"}, {far}},
        {{Collective::scatter, "linear"}, {far}},
        // A block crosses once for each bit that is set in the distance, counted in sockets.
        {{Collective::gather, "binomial"},
         {[](const Node& n) { return n.p() * log2_below(n.s) / 2; }, true}},
        {{Collective::scatter, "binomial"},
         {[](const Node& n) { return n.p() * log2_below(n.s) / 2; }, true}},
        {{Collective::reduce_scatter_block, "pairwise"}, {pairs}},
        {{Collective::reduce_scatter_block, "ring"}, {ring}},
        {{Collective::reduce_scatter_block, "recursive_halving"}, {pairs, true}},
    };
    return formulas;
}

/// The least number of bytes that must cross, whatever the algorithm: what a socket needs of the
/// others, or the others of it. If the p blocks of p ranks are combined before they cross, only one
/// for each other socket remains.
double least(Collective collective, const Node& n) {
    switch (collective) {
    case Collective::bcast:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan: return n.s - 1;
    case Collective::allreduce: return n.s;
    case Collective::gather:
    case Collective::scatter: return n.p() - n.q;
    case Collective::allgather: return n.s * (n.p() - n.q);
    case Collective::alltoall: return n.p() * (n.p() - n.q);
    case Collective::reduce_scatter_block: return n.s * (n.p() - n.q);
    default: return 0; // These have blocks of their own lengths.
    }
}

/// m is a multiple of cache lines for each rank, so that all tiles and segments are equal.
Case sample_for(Collective collective, Rank count) {
    const std::uint64_t bytes = std::uint64_t{kCacheLine} * static_cast<std::uint64_t>(count);
    return {collective, count, 0, graph::has_block_vectors(collective) ? 64 : bytes, 8};
}

double crossing(const Facts& facts, const Algorithm& row) {
    const Case sample = sample_for(row.collective, facts.placement.rank_count());
    const Traffic traffic = traffic_of(facts, row, sample);
    CHECK(across(traffic, topo::Distance::network) == 0);
    return static_cast<double>(across(traffic, topo::Distance::host)) /
           static_cast<double>(sample.bytes);
}

bool serves(const Facts& facts, const Algorithm& row) {
    const Case sample = sample_for(row.collective, facts.placement.rank_count());
    return row.collective != Collective::barrier && row.eligible(facts, request_of(sample, 0));
}

/// The tree's broadcast takes one stage where the model says that this is faster: then all ranks of
/// the other sockets read.
double expected_of_paper(const Facts& facts, const Algorithm& row, const Node& node) {
    const auto& [key, formula] = *paper().find({row.collective, row.name});
    const std::uint64_t bytes = sample_for(row.collective, facts.placement.rank_count()).bytes;
    const cost::NodeModel& model = facts.shared.node;
    const bool tree = key == Key{Collective::allreduce, "numa_tree"};
    const bool one_stage = tree && cost::one_stage_broadcast_ns(model, bytes) <=
                                       cost::two_stage_broadcast_ns(model, bytes);
    return one_stage ? node.s - 1 + node.p() - node.q : formula(node);
}

constexpr std::uint64_t kStaging = 1 << 20;
constexpr std::uint64_t kFlagSlots = 8 << 10;

} // namespace

TEST_CASE("plan: between sockets goes what the paper says, wherever ranks are", "[plan][traffic]") {
    for (const Node& node : kNodes) {
        for (const Mapping mapping : {Mapping::consecutive, Mapping::dealt}) {
            const topo::Placement placement = placement_on(node, mapping);
            const cost::Profile profile = cost::default_profile();
            const Facts facts{placement, profile,
                              shared_memory(placement, profile, kStaging, false, kFlagSlots)};
            for (const auto& [key, formula] : paper()) {
                const Algorithm* row = find_algorithm(key.first, key.second);
                REQUIRE(row != nullptr);
                REQUIRE(serves(facts, *row));
                INFO(node.description << (mapping == Mapping::dealt ? ", dealt: " : ": ")
                                      << graph::name(key.first) << " " << key.second);
                CHECK_THAT(crossing(facts, *row),
                           Catch::Matchers::WithinRel(expected_of_paper(facts, *row, node), 1e-9));
            }
        }
    }
}

TEST_CASE("plan: what flat algorithms move between sockets of consecutive ranks",
          "[plan][traffic]") {
    for (const Node& node : kNodes) {
        const topo::Placement placement = placement_on(node, Mapping::consecutive);
        const cost::Profile profile = cost::default_profile();
        const Facts facts{placement, profile, shared_memory(placement, profile, 0, false)};
        for (const auto& [key, known] : flat()) {
            const Algorithm* row = find_algorithm(key.first, key.second);
            REQUIRE(row != nullptr);
            if (known.powers_of_two && !node.powers_of_two()) {
                continue;
            }
            REQUIRE(serves(facts, *row));
            INFO(node.description << ": " << graph::name(key.first) << " " << key.second);
            CHECK_THAT(crossing(facts, *row),
                       Catch::Matchers::WithinRel(known.formula(node), 1e-9));
        }
    }
}

TEST_CASE("plan: nothing moves less between sockets than the collective asks for",
          "[plan][traffic]") {
    for (const Node& node : kNodes) {
        const topo::Placement placement = placement_on(node, Mapping::dealt);
        const cost::Profile profile = cost::default_profile();
        const Facts facts{placement, profile,
                          shared_memory(placement, profile, kStaging, false, kFlagSlots)};
        for (const Algorithm& row : algorithms()) {
            if (serves(facts, row)) {
                INFO(node.description << ": " << graph::name(row.collective) << " " << row.name);
                CHECK(crossing(facts, row) + 1e-9 >= least(row.collective, node));
            }
        }
    }
}

TEST_CASE("plan: within sockets, subtrees are whole caches", "[plan][traffic]") {
    // Two packages have eight last-level caches of eight ranks each; the ranks are next to one
    // another, or dealt to the caches. Combining crosses once for each further cache of a package.
    // The broadcast crosses once for each reader, since the paper knows only two levels.
    const Node& node = kNodes[2];
    const auto machine = topo::machine_from_synthetic(node.description);
    REQUIRE(machine.ok());
    for (const topo::MapBy map_by : {topo::MapBy::core, topo::MapBy::cache}) {
        const topo::Placement placement = topo::map_ranks(*machine, 1, 128, map_by);
        const cost::Profile profile = cost::default_profile();
        const Facts facts{placement, profile,
                          shared_memory(placement, profile, kStaging, false, kFlagSlots)};
        const auto between_caches = [&](Collective collective, std::string_view name, Rank root) {
            Case sample = sample_for(collective, placement.rank_count());
            sample.root = root;
            const Traffic traffic = traffic_of(facts, *find_algorithm(collective, name), sample);
            return (across(traffic, topo::Distance::numa) +
                    across(traffic, topo::Distance::package)) /
                   sample.bytes;
        };
        INFO("mapped by " << topo::name(map_by));
        for (const Rank root : {0, 5, 27, 127}) {
            CHECK(between_caches(Collective::reduce, "numa_tree", root) == 2 * 7);
            CHECK(between_caches(Collective::bcast, "two_stage", root) == 2 * 7 * 8);
        }
        CHECK(between_caches(Collective::allreduce, "numa_tree", 0) == 2 * 7 + 2 * 7 * 8);
        CHECK(between_caches(Collective::allreduce, "numa_dissemination", 0) == 3 * 128);
    }
}

} // namespace ucg::plan::test
