// Times how long it takes to price an allreduce of all ranks, planning included. The targets are 50
// ms for 1,024 ranks and 5 s for 65,536.
#include <benchmark/benchmark.h>

#include "perf/micro/benchmark_run.hpp"
#include "ucg_coll/plan/plan.hpp"
#include "ucg_coll/sim/sim.hpp"

namespace {

using namespace ucg;

void simulate(benchmark::State& state, const sim::Options& options) {
    constexpr Rank kRanksPerHost = 32;
    const auto placement =
        topo::Placement::regular(static_cast<Rank>(state.range(0)) / kRanksPerHost, kRanksPerHost);
    const plan::Facts facts{placement, cost::default_profile()};
    graph::Request request;
    request.collective = graph::Collective::allreduce;
    request.rank_count = placement.rank_count();
    request.bytes = 8;
    request.element_bytes = 8;
    std::uint64_t messages = 0;
    for (auto _ : state) {
        sim::Simulator simulator(placement, options);
        for (Rank rank = 0; rank < placement.rank_count(); ++rank) {
            simulator.add(*plan::plan(facts, request, rank, "recursive_doubling"));
        }
        messages = simulator.run(1)->message_count;
    }
    state.counters["messages"] = static_cast<double>(messages);
}

void quiet(benchmark::State& state) {
    sim::Options options;
    options.network = cost::PipeliningPostal{.alpha_p_ns = 400, .alpha_r_ns = 100};
    simulate(state, options);
}

void noise_and_host_links(benchmark::State& state) {
    sim::Options options;
    options.network = sim::PerLevel(cost::default_profile());
    options.message_noise = {sim::Distribution::Kind::exponential, 100, 0};
    options.host_link = sim::HostLink{.per_message_ns = 0, .per_byte_ns = 0.4};
    simulate(state, options);
}

BENCHMARK(quiet)->Arg(1024)->Arg(65'536)->Unit(benchmark::kMillisecond);
BENCHMARK(noise_and_host_links)->Arg(1024)->Arg(65'536)->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char** argv) {
    return perf::run_benchmarks(argc, argv);
}
