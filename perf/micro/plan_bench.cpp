// Times how long one rank takes to plan by each logarithmic algorithm among a million ranks, and to
// choose among the rows. The target is 1 ms at a million ranks.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "perf/micro/benchmark_run.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace {

using namespace ucg;

constexpr Rank kMillion = 1'000'000;

const topo::Placement& million() {
    static const topo::Placement kPlacement = topo::Placement::regular(kMillion / 50, 50);
    return kPlacement;
}

graph::Request request_for(graph::Collective collective, std::uint64_t bytes) {
    graph::Request request;
    request.collective = collective;
    request.rank_count = kMillion;
    request.root = kMillion / 3;
    request.bytes = collective == graph::Collective::barrier ? 0 : bytes;
    request.element_bytes = 8;
    return request;
}

void plan_one_rank(benchmark::State& state, const plan::Algorithm* row) {
    const plan::Facts facts{million(), cost::default_profile()};
    const graph::Request request = request_for(row->collective, 64);
    std::size_t ops = 0;
    for (auto _ : state) {
        const graph::Schedule schedule = row->build(facts, request, kMillion / 3);
        ops = schedule.ops.size();
        benchmark::DoNotOptimize(schedule.ops.data());
    }
    state.counters["ops"] = static_cast<double>(ops);
}

void choose_row(benchmark::State& state, graph::Collective collective) {
    const plan::Facts facts{million(), cost::default_profile()};
    const graph::Request request = request_for(collective, 4096);
    for (auto _ : state) {
        benchmark::DoNotOptimize(&plan::choose(facts, request));
    }
}

/// Returns the request of the second rank, with blocks of equal length. `bytes` is the length of
/// the vector or of a block.
graph::Request host_request(graph::Collective collective, Rank ranks, std::uint64_t bytes) {
    graph::Request request = request_for(collective, bytes);
    request.rank_count = ranks;
    request.root = 0;
    graph::Blocks blocks;
    for (Rank rank = 0; rank < ranks; ++rank) {
        blocks.bytes.push_back(bytes);
        blocks.offsets.push_back(static_cast<std::uint64_t>(rank) * bytes);
    }
    if (collective == graph::Collective::reduce_scatter) {
        blocks.offsets.clear();
    }
    if (!graph::rooted(collective) && graph::has_block_vectors(collective)) {
        request.receive = blocks;
        request.bytes = 0;
    }
    if (collective == graph::Collective::alltoallv) {
        request.send = std::move(blocks);
    }
    return request;
}

/// Times what a call of a new length costs a rank of a host before it begins.
void plan_on_host(benchmark::State& state, graph::Collective collective, Rank ranks,
                  double ranks_per_cpu, std::uint64_t bytes) {
    const topo::Placement placement = topo::Placement::one_host(ranks);
    const cost::Profile& profile = cost::default_profile();
    const plan::Facts facts{placement, profile,
                            plan::shared_memory(placement, profile, 1 << 20, false), ranks_per_cpu};
    const graph::Request request = host_request(collective, ranks, bytes);
    if (const auto schedule = plan::plan(facts, request, 1); !schedule.ok()) {
        state.SkipWithError(std::string(schedule.status().message()).c_str());
        return;
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(plan::plan(facts, request, 1));
    }
}

/// Times planning for a length that flag slots take, on packages with caches of eight cores.
void plan_on_levels(benchmark::State& state, graph::Collective collective, Rank ranks) {
    std::vector<topo::Core> cores;
    for (std::uint32_t core = 0; core < static_cast<std::uint32_t>(ranks); ++core) {
        const std::uint32_t package = 2 * core / static_cast<std::uint32_t>(ranks);
        cores.push_back({.package = package, .numa = package, .l3 = core / 8, .l2 = core});
    }
    const topo::Placement placement =
        topo::Placement::packed(topo::Machine(std::move(cores)), 1, ranks);
    const cost::Profile& profile = cost::default_profile();
    const plan::Facts facts{placement, profile,
                            plan::shared_memory(placement, profile, 1 << 20, false, 8 << 10)};
    graph::Request request = request_for(collective, 64);
    request.rank_count = ranks;
    request.root = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(plan::plan(facts, request, 1));
    }
}

void register_hosts() {
    for (const graph::Collective collective : graph::kCollectives) {
        if (collective == graph::Collective::neighbor_alltoallv) {
            continue; // It has a single row.
        }
        const bool empty = collective == graph::Collective::barrier;
        const std::vector<std::uint64_t> lengths =
            empty ? std::vector<std::uint64_t>{0}
                  : std::vector<std::uint64_t>{8, 4 << 10, 64 << 10, 1 << 20};
        for (const Rank ranks : {2, 8, 16}) {
            for (const double ranks_per_cpu : {1.0, 4.0}) {
                for (const std::uint64_t bytes : lengths) {
                    const std::string host =
                        fmt::format("host/{}/{}_ranks/{:g}_per_cpu/{}", graph::name(collective),
                                    ranks, ranks_per_cpu, bytes);
                    benchmark::RegisterBenchmark(host.c_str(), plan_on_host, collective, ranks,
                                                 ranks_per_cpu, bytes)
                        ->Unit(benchmark::kMicrosecond);
                }
            }
        }
    }
}

/// Returns whether the row is logarithmic. Where steps or blocks grow with the number of ranks,
/// planning would take long and prove nothing.
bool is_logarithmic(const plan::Algorithm& row) {
    if (graph::has_block_vectors(row.collective) ||
        row.collective == graph::Collective::allgather ||
        row.collective == graph::Collective::reduce_scatter_block) {
        return false;
    }
    for (const std::string_view name :
         {"dissemination", "n_way_dissemination", "kary_tree", "knomial", "binomial",
          "recursive_doubling", "recursive_multiplying", "elimination", "rabenseifner", "chain"}) {
        if (row.name == name) {
            return true;
        }
    }
    return false;
}

} // namespace

int main(int argc, char** argv) {
    for (const plan::Algorithm& row : plan::algorithms()) {
        if (is_logarithmic(row)) {
            const std::string name =
                "plan/" + std::string(graph::name(row.collective)) + "/" + std::string(row.name);
            benchmark::RegisterBenchmark(name.c_str(), plan_one_rank, &row)
                ->Unit(benchmark::kMicrosecond);
        }
    }
    for (const graph::Collective collective :
         {graph::Collective::barrier, graph::Collective::bcast, graph::Collective::reduce,
          graph::Collective::allreduce}) {
        const std::string name = "choose/" + std::string(graph::name(collective));
        benchmark::RegisterBenchmark(name.c_str(), choose_row, collective);
        for (const Rank ranks : {16, 128}) {
            const std::string levels =
                fmt::format("levels/{}/{}_ranks", graph::name(collective), ranks);
            benchmark::RegisterBenchmark(levels.c_str(), plan_on_levels, collective, ranks)
                ->Unit(benchmark::kMicrosecond);
        }
    }
    register_hosts();
    return perf::run_benchmarks(argc, argv);
}
