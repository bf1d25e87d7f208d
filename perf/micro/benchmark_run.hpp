// Runs the programs that use Google Benchmark, and determines their exit status.
#pragma once

#include <benchmark/benchmark.h>

namespace ucg::perf {

/// Runs the benchmarks and returns the exit status: 2 for an unknown option, which Google Benchmark
/// reports, or a filter that matches no benchmark; else 0.
inline int run_benchmarks(int argc, char** argv, benchmark::BenchmarkReporter* reporter = nullptr) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    return benchmark::RunSpecifiedBenchmarks(reporter) == 0 ? 2 : 0;
}

} // namespace ucg::perf
