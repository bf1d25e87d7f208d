// Prints what `ucg_tune network` found, for people and programs.
#pragma once

#include <string>

#include "tools/ucg_tune/network_probe.hpp"

namespace ucg::tools {

/// Returns the parameters from minimum and median, then the distribution of the one-way times of
/// each multicast.
std::string to_text(const NetworkResult& result);
/// Returns the same content with every sample.
std::string to_json(const NetworkResult& result);

/// Returns the profile with the measured network: its postal form, and LogGP from the median, with
/// the gap per byte of the stream where that is larger, since messages in a row come no faster.
/// `command` is one line.
std::string to_profile_toml(const NetworkResult& result, cost::Profile profile,
                            const std::string& command);

/// Returns a gnuplot program that draws a box plot of the shortest messages, blocking and
/// nonblocking, over the number of messages, with the fitted lines, to an SVG file. `path` has no
/// quotes or backslashes.
std::string to_gnuplot(const NetworkResult& result, const std::string& path);

} // namespace ucg::tools
