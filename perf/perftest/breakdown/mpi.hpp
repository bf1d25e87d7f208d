// The costs of MPI above UCP, from the figures that the program mpi_breakdown has printed.
#pragma once

#include <string>
#include <string_view>

#include "perf/perftest/breakdown/findings.hpp"
#include "perf/perftest/breakdown/lower.hpp"
#include "perf/perftest/breakdown/sample.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::perftest::breakdown {

/// The figures as mpi_breakdown prints them.
struct MpiFigures {
    std::string library;
    std::uint64_t samples = 0;
    double isend_ns = 0;
    double wait_ns = 0; ///< For an MPI_Irecv whose message has already arrived.
    double window_isend_ns = 0;
    double window_waitall_ns = 0;
    double window_ns = 0; ///< Both of these.
    double latency_ns = 0;
};

/// Parses the figures. Fails with invalid_argument and what is missing.
ucg::Result<MpiFigures> parse_mpi_figures(std::string_view json);

/// Returns the section of MPI. `rounds` has the times of UCP over the same transport.
Section mpi_section(const MpiFigures& figures, const LowerKind& kind, const Rounds& rounds);

} // namespace ucg::perftest::breakdown
