// Times how long it takes to find a schedule without contention: one rank's part of an alltoall of
// 4,096 machines (target: 100 ms), and all messages of 512 machines with the fewest
// synchronisations (target: 10 s and 2 GiB), each on trees of several shapes.
#include <array>
#include <sys/resource.h>

#include <benchmark/benchmark.h>

#include "perf/micro/benchmark_run.hpp"
#include "ucg_coll/aapc/aapc.hpp"

namespace {

using namespace ucg;

/// A tree of switches: node 0, and levels below it with `branches` switches below each switch. The
/// machines are dealt out to the switches of the last level in rotation; if `uneven`, all machines
/// of the first half are at one of them.
struct Shape {
    const char* name;
    std::uint32_t branches;
    std::uint32_t levels;
    bool uneven;
};
constexpr std::array kShapes = {
    Shape{"one_switch", 1, 0, false},         Shape{"two_switches", 2, 1, false},
    Shape{"sixteen_switches", 16, 1, false},  Shape{"three_levels", 8, 2, false},
    Shape{"three_levels_uneven", 8, 2, true}, Shape{"row_of_switches", 1, 63, false},
};

aapc::Tree tree_of(const Shape& shape, std::uint32_t machines) {
    aapc::Tree tree{{aapc::kNone}, {}};
    std::uint32_t first = 0; // The first switch of the last level.
    std::uint32_t count = 1;
    for (std::uint32_t level = 0; level < shape.levels; ++level) {
        const auto next = static_cast<std::uint32_t>(tree.parents.size());
        for (std::uint32_t i = 0; i < count * shape.branches; ++i) {
            tree.parents.push_back(first + i / shape.branches);
        }
        first = next;
        count *= shape.branches;
    }
    // In a chain of switches, every switch has machines.
    const auto switches = static_cast<std::uint32_t>(tree.parents.size());
    if (shape.branches == 1) {
        first = 0;
        count = switches;
    }
    for (std::uint32_t i = 0; i < machines; ++i) {
        tree.member_nodes.push_back(switches + i);
        tree.parents.push_back(first + (shape.uneven && i < machines / 2 ? 0 : i % count));
    }
    return tree;
}

void one_rank(benchmark::State& state, const Shape& shape, aapc::Signaller signaller) {
    constexpr std::uint32_t kMachines = 4096;
    const aapc::Tree tree = tree_of(shape, kMachines);
    std::size_t steps = 0;
    for (auto _ : state) {
        const aapc::Layout layout(tree);
        const aapc::Phases phases(layout);
        steps = aapc::steps_of(phases, kMachines / 3, signaller).size();
    }
    state.counters["steps"] = static_cast<double>(steps);
}

void all_ranks(benchmark::State& state, const Shape& shape) {
    constexpr std::uint32_t kMachines = 512;
    const aapc::Layout layout(tree_of(shape, kMachines));
    const aapc::Phases phases(layout);
    std::size_t syncs = 0;
    for (auto _ : state) {
        syncs = aapc::minimal_syncs(phases).size();
    }
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    state.counters["syncs"] = static_cast<double>(syncs);
    state.counters["phases"] = static_cast<double>(phases.count());
    state.counters["process_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

} // namespace

int main(int argc, char** argv) {
    for (const Shape& shape : kShapes) {
        const std::string name = shape.name;
        benchmark::RegisterBenchmark(("one_rank/source/" + name).c_str(), one_rank, shape,
                                     aapc::Signaller::source)
            ->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(("one_rank/destination/" + name).c_str(), one_rank, shape,
                                     aapc::Signaller::destination)
            ->Unit(benchmark::kMillisecond);
    }
    for (const Shape& shape : kShapes) {
        benchmark::RegisterBenchmark((std::string("all_ranks/") + shape.name).c_str(), all_ranks,
                                     shape)
            ->Unit(benchmark::kMillisecond);
    }
    return perf::run_benchmarks(argc, argv);
}
