// The breakdown of a short collective of UCG between two ranks: the stages that ucg_coll_run()
// goes through, each timed from outside by calling it, beside the time of the whole.
//
// The two ranks begin each call together. The time of a stage is the mean of both ranks, since the
// rank that comes first waits longer by as much as the other one waits less.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "perf/perftest/breakdown/findings.hpp"
#include "perf/perftest/breakdown/lines.hpp"
#include "perf/perftest/breakdown/sample.hpp"
#include "perf/perftest/collectives/collective_group.hpp"
#include "perf/perftest/runtime.hpp"
#include "ucg_coll/capi/group.hpp"

namespace ucg::perftest::breakdown {

class CollectiveLevel {
  public:
    /// Opens the measurement of the collective `name`, as graph::name() has it, with elements of 8
    /// bytes. Collectives with vectors of counts are refused. Collective of two.
    static Result<std::unique_ptr<CollectiveLevel>> open(Runtime& runtime, Lines& lines,
                                                         const std::string& name);
    CollectiveLevel(const CollectiveLevel&) = delete;
    CollectiveLevel& operator=(const CollectiveLevel&) = delete;

    /// Times each stage, and the whole, `samples` times. Collective; rank 0 learns the times.
    Status round(std::size_t samples, Stopwatch& stopwatch, Rounds& rounds);

    Section section(const Rounds& rounds) const;

  private:
    enum class Stage { post, post_and_progress };

    CollectiveLevel(Runtime& runtime, Lines& lines) : runtime_(runtime), lines_(lines) {}
    Status name_call(const std::string& name);
    Status open_group();
    Status run_whole(std::size_t samples);
    Status run_stage(Stage timed, std::size_t samples);
    Status run_once(Stage timed);
    void time_repeatable(std::size_t samples);
    void add(const char* name, double ns, std::size_t samples);
    template <typename Call>
    void stage(bool timed, Call call);

    Runtime& runtime_;
    Lines& lines_;
    Stopwatch* stopwatch_ = nullptr;
    Rounds* rounds_ = nullptr;
    std::string name_;
    std::array<double, 16> input_{};
    std::array<double, 16> output_{};
    ucg_coll_params_t call_{};
    std::unique_ptr<CollectiveGroup> whole_; ///< Runs the collective through the C API.
    std::unique_ptr<capi::Context> context_; ///< Runs its stages, with group_.
    std::unique_ptr<capi::Group> group_;
};

} // namespace ucg::perftest::breakdown
