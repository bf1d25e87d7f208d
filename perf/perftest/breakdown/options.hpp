// The options of a breakdown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ucg::perftest::breakdown {

struct BreakdownOptions {
    std::string transport = "posix";      ///< -x
    std::string device;                   ///< -d; empty: the transport's usual one.
    std::uint64_t samples = 1000;         ///< -n, of each component in each round
    std::uint64_t rounds = 21;            ///< Rounds, in each of which all components are timed.
    std::vector<std::uint32_t> cpus;      ///< -c; empty: the first two that may be used.
    std::vector<std::string> collectives; ///< Collectives whose stages are timed, too.
    bool with_ucp = false;                ///< Whether to time what UCP costs above UCT, too.
    std::string mpi_file;                 ///< A file with the output of mpi_breakdown.
    std::string profile_file;             ///< A file to write for ucx_read_profile.
    bool checks_what_if = false;          ///< Whether to check a what-if curve by a real change.
    std::string json_file;
    std::string svg_file;

    void add_to(CLI::App& app);
    /// Sets the usual device if none was given: "memory" for shared memory, "lo" for tcp. Throws
    /// CLI::ParseError where a device must be given.
    void complete();
};

} // namespace ucg::perftest::breakdown
