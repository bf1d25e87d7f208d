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

/// What a process has read.
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

/// What a rank tells of it.
TopologyEnd phases_end(const LoadedPhases& loaded);

/// By machine of the list its rank, or why all ranks do without; a pure function of what they told
/// one another. Empty without a reason: nobody names a file. REQUIRES: `own` is any rank's, which
/// counts where all have the same.
struct PhasesVerdict {
    std::vector<Rank> ranks;
    std::string reason; ///< What `speaker` says.
    Rank speaker = kNoRank;
};
PhasesVerdict agree_on_phases(const LoadedPhases& own, std::span<const TopologyEnd> ends);

} // namespace ucg::capi
