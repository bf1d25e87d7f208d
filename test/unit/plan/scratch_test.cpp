// Scratch of the plans that are chosen, against the bound that the planner promises (README.md):
// memory is a host's, and a leader has scratch for all ranks of its host, so it is counted by host.
#include <algorithm>

#include "test/support/catch.hpp"
#include "test/unit/plan/proof.hpp"
#include "tools/ucg_plan/usual_placements.hpp"
#include "ucg_coll/plan/parts/needs.hpp"

namespace ucg::plan::test {
namespace {

/// What the ranks of a host have together, in bytes.
struct HostMemory {
    std::uint64_t scratch = 0;
    std::uint64_t buffers = 0; ///< Input and output.
};

HostMemory memory_of(const Facts& facts, const Case& sample, std::uint32_t host) {
    HostMemory memory;
    for (const Rank rank : facts.placement.ranks_on(host)) {
        const Result<graph::Schedule> schedule = plan(facts, request_of(sample, rank), rank);
        REQUIRE(schedule.ok());
        memory.scratch += schedule->scratch_bytes;
        memory.buffers += schedule->input_bytes + schedule->output_bytes;
    }
    return memory;
}

/// Returns the length of the root's buffer that has blocks for all ranks; 0 if there is none.
std::uint64_t blocks_at_root(const Case& sample) {
    const bool gathers_or_scatters = sample.collective == graph::Collective::gather ||
                                     sample.collective == graph::Collective::scatter;
    return gathers_or_scatters ? static_cast<std::uint64_t>(sample.rank_count) * sample.bytes : 0;
}

void check_host(const Facts& facts, const Case& sample) {
    const std::uint32_t host = static_cast<std::uint32_t>(facts.placement.host_count()) / 2;
    const HostMemory memory = memory_of(facts, sample, host);
    const std::uint64_t ranks = facts.placement.ranks_on(host).size();
    INFO(describe(sample) << " by " << choose(facts, request_of(sample, 0)).name << ": "
                          << memory.scratch << " bytes of scratch, " << memory.buffers
                          << " bytes of buffers");
    CHECK(memory.scratch <=
          std::max({ranks * kScratchBytesMax, 2 * memory.buffers, blocks_at_root(sample) / 2}));
}

/// Does a rank have a block of the length for each rank?
bool has_equal_blocks(graph::Collective collective) {
    using graph::Collective;
    switch (collective) {
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::gather:
    case Collective::scatter:
    case Collective::reduce_scatter_block: return true;
    default: return false;
    }
}

void check_collective(const Facts& facts, graph::Collective collective) {
    constexpr std::uint64_t kMostOfARank = std::uint64_t{1} << 32;
    const Rank count = facts.placement.rank_count();
    for (const std::uint64_t bytes :
         {8ULL, 1ULL << 10, 8ULL << 10, 64ULL << 10, 1ULL << 20, 64ULL << 20}) {
        if (has_equal_blocks(collective) &&
            bytes * static_cast<std::uint64_t>(count) > kMostOfARank) {
            continue;
        }
        for (const bool in_place : {false, true}) {
            for (const bool commutative : {true, false}) {
                if ((in_place && !graph::has_in_place(collective)) ||
                    (!commutative && !graph::reduces(collective))) {
                    continue;
                }
                check_host(facts, {collective, count, 0, bytes, 8, in_place, commutative});
            }
        }
    }
}

void check_placement(const topo::Placement& placement) {
    const cost::Profile& profile = cost::default_profile();
    const Facts facts{placement, profile,
                      shared_memory(placement, profile, 1 << 20, false, 4 << 10, true)};
    for (const graph::Collective collective : graph::kCollectives) {
        if (!graph::has_block_vectors(collective)) {
            check_collective(facts, collective);
        }
    }
}

} // namespace

TEST_CASE("plan: no chosen plan's scratch exceeds the bound", "[plan]") {
    const auto placements = tools::usual_placements();
    REQUIRE(placements.ok());
    for (const tools::NamedPlacement& named : *placements) {
        INFO(named.name);
        check_placement(named.placement);
    }
    check_placement(topo::Placement::regular(1000, 1));
    check_placement(topo::Placement::regular(64, 64));
}

} // namespace ucg::plan::test
