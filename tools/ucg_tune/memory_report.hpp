// What `ucg_tune memory` found, for people and programs.
#pragma once

#include <string>

#include "tools/ucg_tune/memory_probe.hpp"

namespace ucg::tools {

/// A table of the model's parameters, with a mark at those that were not measured, then of what
/// was measured, with medians and quartiles; then the notes.
std::string to_text(const ProbeResult& result);
std::string to_json(const ProbeResult& result);

/// The profile with these results in it, as TOML; comments say how it came about. `command` and
/// `machine`: one line each.
std::string to_profile_toml(const ProbeResult& result, cost::Profile profile,
                            const std::string& command, const std::string& machine);

/// A gnuplot program that draws what was measured over the lengths, and the fitted lines, to an SVG
/// file. `path` has no quotes or backslashes in it.
std::string to_gnuplot(const ProbeResult& result, const std::string& path);

} // namespace ucg::tools
