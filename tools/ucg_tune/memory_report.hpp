// What `ucg_tune memory` found, for people and programs.
#pragma once

#include <string>

#include "tools/ucg_tune/memory_probe.hpp"

namespace ucg::tools {

// `tuned`: the profile with these results in it, tuned_profile().

/// A table of the model's parameters, with a mark at those that were not measured, then of what
/// was measured, with medians and quartiles; each figure with its error; the notes; at the end what
/// was not measured.
std::string to_text(const ProbeResult& result, const cost::Profile& tuned);
std::string to_json(const ProbeResult& result, const cost::Profile& tuned);

/// The profile as TOML; comments say how it came about, and the errors. `command` and `machine`:
/// one line each.
std::string to_profile_toml(const ProbeResult& result, const cost::Profile& tuned,
                            const std::string& command, const std::string& machine);

/// A gnuplot program that draws what was measured over the lengths, and the fitted lines, to an SVG
/// file. `path` has no quotes or backslashes in it.
std::string to_gnuplot(const ProbeResult& result, const std::string& path);

} // namespace ucg::tools
