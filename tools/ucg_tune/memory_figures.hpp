// Tells for every figure of a profile how `ucg_tune memory` obtained it, or why it did not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ucg_tune/memory_probe.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

/// Returns `base` with the results of the probe in it.
cost::Profile tuned_profile(const ProbeResult& result, cost::Profile base);

struct FigureReport {
    cost::NamedFigure figure;
    std::optional<Figure> known; ///< Empty: it was not measured, nor known before.
    std::string_view reason;     ///< Why it is not known; empty if it is.

    /// Returns whether the figure is a length at which something is decided.
    bool is_threshold() const { return figure.unit == cost::Unit::bytes; }
};

/// Reports each key that `tuned` has, in the order of the file. Figures for which the result has
/// nothing are reported as not measured.
std::vector<FigureReport> report_figures(const ProbeResult& result, const cost::Profile& tuned);

/// Returns a table of the known figures, with errors in per cent.
std::string known_text(const std::vector<FigureReport>& figures);
/// Returns the figures that are not known: each threshold, then the rates by table. Each line
/// begins with `prefix`.
std::string unknown_text(const std::vector<FigureReport>& figures, std::string_view prefix);
/// Returns the errors by table, as comments of the profile.
std::string errors_toml(const std::vector<FigureReport>& figures);

/// Returns the name of an origin, such as "fitted".
std::string_view name(Origin origin);
double per_cent(const Figure& figure);

} // namespace ucg::tools
