// Derives costs of messages from results of ucx_perftest: LogGP for one level of the machine, and
// for the network its postal form, too. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/ucg_tune/import_results.hpp"
#include "tools/ucg_tune/memory_figures.hpp"
#include "topo/topo.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

/// The costs of messages that some results show, with the errors of the fits (fit_error).
struct ImportedCosts {
    cost::NetworkPostal postal;
    cost::LogGp loggp;        ///< The same costs as LogGP.
    double latency_error = 0; ///< Error of the line through short messages.
    double gap_error = 0;     ///< Error of the line through long messages.
    std::string short_test;   ///< "am_lat": the test whose rows were used.
    std::string rate_test;
    std::string long_test;
};

/// Fits costs to the rows of this percentile. Short messages come from tests of UCT, by which UCG
/// sends messages that are short enough, else from tests of UCP. The time of the first byte comes
/// from a line through two sizes or more, the time of each further message from a stream of the
/// shortest messages, and the time of each byte from the slope of long streams. Fails with
/// invalid_argument and names the rows that are missing.
Result<ImportedCosts> fit_perftest(std::span<const PerftestRow> rows, double percentile);

/// The imported costs: the median always, the minimum where results of -R 0 were given.
struct Import {
    topo::Distance level = topo::Distance::network;
    ImportedCosts median;
    std::optional<ImportedCosts> minimum;
};

/// Fits costs to all rows. Rows of the 50th percentile are needed.
Result<Import> import_perftest(std::span<const PerftestRow> rows, topo::Distance level);

/// Returns `base` with the imported costs; if they are those of the network, with its postal form,
/// too.
cost::Profile imported_profile(const Import& import, cost::Profile base);

/// Reports every figure of `profile`: that it comes from ucx_perftest, or else what would measure
/// it.
std::vector<FigureReport> report_import(const Import& import, const cost::Profile& profile);

/// Returns lines that begin with `prefix` and name the rows from which each figure came.
std::string sources_text(const Import& import, std::string_view prefix);

} // namespace ucg::tools
