// How the programs that use Google Benchmark run, and with which status they end.
#pragma once

#include <benchmark/benchmark.h>

namespace ucg::perf {

/// 2 for an option that is none, or a filter that matches no benchmark: Google Benchmark says
/// which.
inline int run_benchmarks(int argc, char** argv, benchmark::BenchmarkReporter* reporter = nullptr) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    return benchmark::RunSpecifiedBenchmarks(reporter) == 0 ? 2 : 0;
}

} // namespace ucg::perf
