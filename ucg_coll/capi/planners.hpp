// The planners of a process: groups that would plan alike share one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ucg_coll/capi/config.hpp"
#include "ucg_coll/capi/phases_file.hpp"
#include "ucg_coll/capi/planner.hpp"
#include "ucg_coll/capi/remarks.hpp"

namespace ucg::capi {

class Planners {
  public:
    /// All arguments must outlive the object and its planners.
    Planners(const Config& config, const LoadedPhases& phases, Remarks& remarks, bool threaded)
        : config_(config), phases_(phases), remarks_(remarks), threaded_(threaded) {}

    /// Returns the planner for groups of these facts: that of another group, or of one of the
    /// latest groups that are no more, or a new one. REQUIRES: the caller holds the context's
    /// maker().
    std::shared_ptr<Planner> of(PlanningFacts facts);
    /// What the plans of all groups hold together. Read and written under any lock.
    std::atomic<std::uint64_t>& plan_bytes() { return plan_bytes_; }

  private:
    static constexpr std::size_t kLatestMax = 8;

    const Config& config_;
    const LoadedPhases& phases_;
    Remarks& remarks_;
    const bool threaded_;
    std::vector<std::weak_ptr<Planner>> all_;
    std::vector<std::shared_ptr<Planner>> latest_; ///< Kept alive; the latest comes first.
    std::atomic<std::uint64_t> plan_bytes_ = 0;
};

} // namespace ucg::capi
