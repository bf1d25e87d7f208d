// A context and a group of UCG for the processes of a run: what every collective test opens.
#pragma once

#include <memory>
#include <string>

#include "perf/perftest/runtime.hpp"
#include "ucg/ucg.h"

namespace ucg::perftest {

/// Returns ok for UCG_OK, else a failure with `what` and the status in words.
Status status_of(ucg_status_t status, std::string_view what);

/// A context and a group, both owned. Used by the thread that made it.
class CollectiveGroup {
  public:
    /// Makes both. If `variable` of the configuration, such as "ALLREDUCE", is not empty, it has
    /// `value` instead of what the environment says. Collective over all ranks of the run.
    static Result<std::unique_ptr<CollectiveGroup>>
    create(Runtime& runtime, const std::string& variable, const std::string& value);
    ~CollectiveGroup();
    CollectiveGroup(const CollectiveGroup&) = delete;
    CollectiveGroup& operator=(const CollectiveGroup&) = delete;

    ucg_context_h context() const { return context_; }
    ucg_group_h group() const { return group_; }
    void progress() { ucg_context_progress(context_); }

    /// Returns the algorithm that serves a call: `wanted`, if it is not empty and is eligible, else
    /// the one that a variable asks for, or the planner's cheapest. Fails with unsupported and the
    /// names of the eligible ones when `wanted` is not eligible.
    Result<std::string> algorithm_of(const ucg_coll_params_t& call, std::string_view wanted) const;

  private:
    CollectiveGroup() = default;

    ucg_context_h context_ = nullptr;
    ucg_group_h group_ = nullptr;
};

} // namespace ucg::perftest
