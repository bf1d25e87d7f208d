// Prints what `ucg_tune memory` found, for people and programs.
#pragma once

#include <string>

#include "tools/ucg_tune/memory_probe.hpp"

namespace ucg::tools {

// In these functions `tuned` is the profile with the results in it, as tuned_profile() returns it.

/// Returns a table of the model's parameters, with a mark at those that were not measured; then
/// what was measured, with medians and quartiles; each figure with its error; the notes; and at the
/// end what was not measured.
std::string to_text(const ProbeResult& result, const cost::Profile& tuned);
std::string to_json(const ProbeResult& result, const cost::Profile& tuned);

/// Returns the profile as TOML, with comments that say how it was measured and list the errors.
/// `command` and `machine` are one line each.
std::string to_profile_toml(const ProbeResult& result, const cost::Profile& tuned,
                            const std::string& command, const std::string& machine);

/// Returns a gnuplot program that draws the measured times over the lengths, and the fitted lines,
/// to an SVG file. `path` has no quotes or backslashes in it.
std::string to_gnuplot(const ProbeResult& result, const std::string& path);

} // namespace ucg::tools
