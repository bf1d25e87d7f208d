#include "perf/perftest/breakdown/options.hpp"

#include "tools/cli.hpp"

namespace ucg::perftest::breakdown {

namespace {

/// The least number of samples: figures of fewer say little (section 3 of the paper).
constexpr std::uint64_t kSamplesMin = 100;
constexpr std::uint64_t kSamplesMax = 1000000;

} // namespace

void BreakdownOptions::add_to(CLI::App& app) {
    app.add_option("-x", transport, "UCT transport, as ucx_info -d has it")
        ->type_name("TRANSPORT")
        ->capture_default_str();
    app.add_option("-d", device, "Its device (default: memory, or lo where the transport is tcp)")
        ->type_name("DEVICE");
    app.add_option("-n", samples, "Samples of each component in each round")
        ->transform(tools::whole_number(1, kSamplesMax))
        ->type_name("COUNT")
        ->capture_default_str();
    app.add_option("--rounds", rounds, "Rounds, over which all components alternate")
        ->transform(tools::whole_number(1, 10000))
        ->type_name("COUNT")
        ->capture_default_str();
    app.add_option("-c", cpus, "The CPUs of the two processes (default: the first two usable)")
        ->delimiter(',')
        ->expected(2)
        ->type_name("CPU,CPU");
    app.add_flag("--ucp", with_ucp, "Also what UCP's tagged messages cost above UCT");
    app.add_option("--mpi", mpi_file,
                   "Also what MPI costs above UCP: figures that mpi_breakdown has printed")
        ->type_name("FILE");
    app.add_option("--collective", collectives,
                   "Collectives of UCG whose stages are timed, too (8 bytes, two ranks)")
        ->delimiter(',')
        ->type_name("NAME,...");
    app.add_flag("--check-what-if", checks_what_if,
                 "Compares the what-if curve of a collective with a real change of its posts");
    app.add_option("--profile-file", profile_file,
                   "Records -n round trips as UCX's profiling does, for ucx_read_profile")
        ->type_name("FILE");
    app.add_option("--json", json_file, "Writes everything as JSON; -: standard output")
        ->type_name("FILE");
    app.add_option("--svg", svg_file, "Draws the models as stacked bars; -: standard output")
        ->type_name("FILE");
}

void BreakdownOptions::complete() {
    with_ucp = with_ucp || !mpi_file.empty();
    if (samples * rounds < kSamplesMin) {
        throw CLI::ValidationError("-n",
                                   fmt::format("{} samples in {} rounds; figures take {} at least",
                                               samples, rounds, kSamplesMin));
    }
    if (device.empty()) {
        if (transport == "tcp") {
            device = "lo";
        } else if (transport == "posix" || transport == "sysv" || transport == "self") {
            device = "memory";
        } else {
            throw CLI::RequiredError("-d (which device of the transport)");
        }
    }
}

} // namespace ucg::perftest::breakdown
