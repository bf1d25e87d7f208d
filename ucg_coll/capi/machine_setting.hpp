// The machine that UCG_MACHINE names: one that is not there, on whose cores the processes of each
// host are taken to be, so that its levels are executed by real processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topo/topo.hpp"
#include "ucg_coll/base/base.hpp"

namespace ucg::capi {

struct NamedMachine {
    topo::Machine machine;  ///< Has no cores where none is named, or where it cannot be used.
    std::uint64_t hash = 0; ///< Of the machine; 0: none.
    std::string complaint;  ///< Why no group can be made, or empty. Names the variable.
};

/// Reads the machine that `setting` names: hwloc's synthetic description, which has a colon and no
/// slash; else a file with the XML that lstopo exports, or with a machine's text form (ucg_topo
/// convert). Empty: no machine. `local_rank`: which of its host's processes this one is, if the
/// program has told.
NamedMachine load_machine(std::string_view setting, std::optional<std::uint32_t> local_rank);

/// Returns the place of the n-th process of a host, counted from 0: the n-th core, starting over
/// after the last. REQUIRES: machine.core_count() > 0.
topo::Place place_of_process(const topo::Machine& machine, std::uint32_t local_rank);

} // namespace ucg::capi
