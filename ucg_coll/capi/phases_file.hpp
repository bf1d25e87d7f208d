// The schedule of phases that UCG_ALLTOALL=file:PATH and UCG_ALLTOALLV=file:PATH name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/aapc/aapc.hpp"
#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/topology_agreement.hpp"

namespace ucg::capi {

/// The schedule that a process has read.
struct LoadedPhases {
    std::string path;                           ///< Empty: no file is named.
    std::shared_ptr<const aapc::Listed> listed; ///< Null: none.
    std::uint64_t hash = 0;                     ///< Of the list; 0: none.
    std::string complaint;                      ///< Why the file does not count, or empty.
    std::optional<std::uint32_t> machine;       ///< The number of `host` in the list.
};

/// Reads the one file that the settings name. A file that cannot be read or is wrong is a
/// complaint, not a failure: nothing but speed depends on it.
LoadedPhases load_phases(const Config& config, std::string_view host);

/// Returns what a rank tells the others of its schedule.
TopologyEnd phases_end(const LoadedPhases& loaded);

/// What all ranks do about the schedule; a pure function of what they told one another.
struct PhasesVerdict {
    std::vector<Rank> ranks; ///< Index: machine of the list. Empty: all ranks do without.
    std::string reason;      ///< Why, as `speaker` says it. Empty where nobody names a file.
    Rank speaker = kNoRank;
};
/// Decides whether the schedule counts, and where its machines are. `own` is any rank's schedule,
/// which counts only where all ranks have the same.
PhasesVerdict agree_on_phases(const LoadedPhases& own, std::span<const TopologyEnd> ends);

} // namespace ucg::capi
