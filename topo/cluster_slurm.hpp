// Reads and writes clusters as Slurm's topology.conf describes trees (plugin topology/tree).
#pragma once

#include <string>
#include <string_view>

#include "topo/cluster.hpp"

namespace ucg::topo {

/// Reads
///
///   # A comment, to the end of the line.
///   SwitchName=core Switches=leaf[0-1]
///   SwitchName=leaf0 Nodes=n[0-3,8],login LinkSpeed=1gbit
///   SwitchName=leaf1 Nodes=rack[0-1]node[00-15]
///
/// A line that ends with a backslash goes on in the next one, from its first character. Keys may be
/// in any case and order, values in quotes, and there may be blanks around '='. A switch may have
/// machines, switches, both (Slurm itself refuses that) or neither. LinkSpeed is the rate of the
/// links to what hangs below the switch, with a unit as parse_rate() reads it (Slurm itself refuses
/// that, too). Slurm leaves the unit of a number alone open: it is the one that a comment such as
///
///   # UCG: LinkSpeed is in Mbit/s
///
/// on a line of its own names for the whole file (kbit/s, Mbit/s or Gbit/s), else `bare_unit`,
/// which is the bytes per second that 1 stands for; without either (0) the rate is unknown. Include
/// is refused, and, unless `trees` allows it, a forest, which Slurm takes for fabrics that are not
/// connected. Fails with invalid_argument and "line L: what is wrong", where L is the first of the
/// lines that are joined by backslashes; with unsupported where a line is of the plugin
/// topology/block.
Result<Cluster> parse_slurm_topology(std::string_view text, std::uint64_t bare_unit = 0,
                                     Trees trees = Trees::one);

/// Returns the text of a file that Slurm accepts and parse_slurm_topology() reads back to an equal
/// value: rates are whole numbers, and a comment names their unit. Fails with unsupported if links
/// below one switch differ in their rates, if rates are not whole numbers of one unit, and if a
/// switch has both machines and switches, or neither. REQUIRES: !cluster.is_forest().
Result<std::string> to_slurm_topology(const Cluster& cluster);

} // namespace ucg::topo
