// What a breakdown is asked for, as its command line says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ucg::perftest::breakdown {

struct Options {
    std::string transport = "posix";      ///< -x
    std::string device;                   ///< -d; empty: the transport's usual one.
    std::uint64_t samples = 1000;         ///< -n, of each component in each round.
    std::uint64_t rounds = 21;            ///< Over which all components alternate.
    std::vector<std::uint32_t> cpus;      ///< -c; empty: the first two that may be used.
    std::vector<std::string> collectives; ///< Whose stages are timed, too.
    bool with_ucp = false;                ///< Also what UCP costs above UCT.
    std::string mpi_file;                 ///< What mpi_breakdown has printed.
    std::string profile_file;             ///< For ucx_read_profile.
    bool checks_what_if = false;          ///< A curve against a real change.
    std::string json_file;
    std::string svg_file;

    void add_to(CLI::App& app);
    /// "memory" for shared memory, "lo" for tcp. Throws CLI::ParseError where it must be given.
    void complete();
};

} // namespace ucg::perftest::breakdown
