// From results of ucx_perftest to what messages cost: LogGP of one level of the machine, and of the
// network its postal form. Pure functions.
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

/// What some results say of messages, with how far they lie from it (fit_error).
struct ImportedCosts {
    cost::NetworkPostal postal;
    cost::LogGp loggp;        ///< The same times.
    double latency_error = 0; ///< Of the line through short messages.
    double gap_error = 0;     ///< Of the line through long ones.
    std::string short_test;   ///< "am_lat": which rows each came from.
    std::string rate_test;
    std::string long_test;
};

/// Of rows with this percentile. Short messages: those of UCT, by which UCG sends what is short
/// enough, else of UCP. The time of the first byte is a line's through two sizes or more, each
/// further message costs what a stream of the shortest takes, and each byte what the slope of long
/// streams says. Fails with invalid_argument and names the rows that lack.
Result<ImportedCosts> fit_perftest(std::span<const PerftestRow> rows, double percentile);

/// What was imported: the median always, the best times where results of -R 0 were given.
struct Import {
    topo::Distance level = topo::Distance::network;
    ImportedCosts median;
    std::optional<ImportedCosts> minimum;
};

/// Of all rows; needs the 50th percentile.
Result<Import> import_perftest(std::span<const PerftestRow> rows, topo::Distance level);

/// `base` with it; of the network, its postal form too.
cost::Profile imported_profile(const Import& import, cost::Profile base);

/// Every figure of `profile`: from ucx_perftest, or what measures it.
std::vector<FigureReport> report_import(const Import& import, const cost::Profile& profile);

/// From which rows each came.
std::string sources_text(const Import& import, std::string_view prefix);

} // namespace ucg::tools
