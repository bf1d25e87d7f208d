// Reads and writes Slurm's host list expressions: "n[0-3,8],login", "rack[0-1]node[00-15]". Private
// to topo.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::topo {

/// The most names of a list; a longer one is a mistake. It is Slurm's own limit for a range.
inline constexpr std::size_t kHostListMax = 65536;

/// Returns all names of the list, in the order written. Names are separated by commas; in brackets
/// are numbers and ranges of numbers, whose leading zeros give the width; several brackets stand
/// for each combination, the last bracket varying fastest. Fails with invalid_argument.
Result<std::vector<std::string>> expand_host_list(std::string_view text);

/// Returns the shortest host list that names these in this order, with at most one bracket in a
/// name.
std::string host_list(std::span<const std::string_view> names);

} // namespace ucg::topo
