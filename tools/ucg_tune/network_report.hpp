// What `ucg_tune network` found, for people and programs.
#pragma once

#include <string>

#include "tools/ucg_tune/network_probe.hpp"

namespace ucg::tools {

/// The parameters from minimum and median, then the distribution of each multicast, one way.
std::string to_text(const NetworkResult& result);
/// The same with every sample.
std::string to_json(const NetworkResult& result);

/// The profile with the network as measured: its postal form, and LogGP from the median, with the
/// gap per byte of the stream where that is larger: messages in a row come no faster. `command`:
/// one line.
std::string to_profile_toml(const NetworkResult& result, cost::Profile profile,
                            const std::string& command);

/// A gnuplot program for a box plot of the shortest messages, blocking and nonblocking, over the
/// number of messages, with the fitted lines, to an SVG file. `path` has no quotes or backslashes.
std::string to_gnuplot(const NetworkResult& result, const std::string& path);

} // namespace ucg::tools
