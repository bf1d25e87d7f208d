// Every figure of a profile: how `ucg_tune memory` came to it, or why it did not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ucg_tune/memory_probe.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

/// `base` with these results in it.
cost::Profile tuned_profile(const ProbeResult& result, cost::Profile base);

struct FigureReport {
    cost::NamedFigure figure;
    std::optional<Figure> known; ///< Empty: it was not measured, nor known before.
    std::string_view reason;     ///< Why it is not known; empty if it is.

    /// Lengths at which something is decided.
    bool is_threshold() const { return figure.unit == cost::Unit::bytes; }
};

/// Of each key that `tuned` has, in the order of the file: what nobody took care of is reported as
/// not measured.
std::vector<FigureReport> report_figures(const ProbeResult& result, const cost::Profile& tuned);

/// A table of what is known, with errors in per cent.
std::string known_text(const std::vector<FigureReport>& figures);
/// What is not known: each threshold, then the rates by table. Each line begins with `prefix`.
std::string unknown_text(const std::vector<FigureReport>& figures, std::string_view prefix);
/// The errors by table, as comments of the profile.
std::string errors_toml(const std::vector<FigureReport>& figures);

/// "fitted".
std::string_view name(Origin origin);
double per_cent(const Figure& figure);

} // namespace ucg::tools
