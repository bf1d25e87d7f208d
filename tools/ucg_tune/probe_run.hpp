// What all measurements of `ucg_tune memory` share: phases that each last a part of the time,
// rounds of which unsteady ones are left out, and figures with the errors of their fits.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/ucg_tune/memory_probe.hpp"

namespace ucg::tools {

/// Returns the nanoseconds that a byte takes beyond `fixed_ns`. On a machine so busy that a line
/// took longer than what is measured, it is the time per byte of the longest point as a whole.
/// REQUIRES: points is not empty.
double per_byte_ns(std::span<const FitPoint> points, double fixed_ns);

class ProbeRun {
  public:
    /// The run has `phases` phases, each of which has an equal part of the time.
    ProbeRun(const ProbeOptions& options, std::size_t phases)
        : options_(options), phases_(phases) {}

    ProbeResult& result() { return result_; }
    const ProbeResult& result() const { return result_; }
    cost::MemoryModel& model() { return result_.model; }
    const ProbeOptions& options() const { return options_; }

    using RoundFn = std::function<Status(Driver&, std::uint32_t)>;

    /// Runs the next phase: a crew that executes `round` again and again. Adds the resulting points
    /// under the name `where`, or, for messages, under the lane's name. Sets the crew's deadline to
    /// that of the phase.
    Status rounds(const std::string& where, CrewOptions crew, const RoundFn& round,
                  std::span<const std::string> lane_names = {});
    /// Returns whether enough rounds of that phase ran in the state in which its CPUs were first
    /// seen.
    bool steady(const std::string& where) const { return !disturbed_.contains(where); }
    using Pair = std::pair<std::uint32_t, std::uint32_t>;
    /// Returns the best time of a line between the two CPUs before their first phase.
    Result<double> line_between(const Pair& cpus);
    /// Skips this number of phases, which have nothing to do.
    void skip(std::size_t phases = 1) { phase_ += phases; }
    /// Skips the next phase, called `where`, because it would not be steady.
    void skip_disturbed(const std::string& where) {
        disturbed_.insert(where);
        skip();
    }

    void fitted(std::string_view table, std::string_view key, double error) {
        result_.figures[fmt::format("{}.{}", table, key)] = {Origin::fitted, error};
    }
    void told(std::string_view table, std::string_view key) {
        result_.figures[fmt::format("{}.{}", table, key)] = {Origin::told, 0};
    }
    void derived(std::string_view table, std::string_view key) {
        result_.figures[fmt::format("{}.{}", table, key)] = {Origin::derived, 0};
    }
    template <typename... Args>
    void note(fmt::format_string<Args...> format, Args&&... args) {
        result_.notes.push_back(fmt::format(format, std::forward<Args>(args)...));
    }

    /// Returns the points of one series of the phase `where`, x in bytes.
    std::vector<FitPoint> points(std::string_view where, Series series,
                                 std::uint32_t count = 1) const;
    /// Returns the shortest point of one series of the phase `where`.
    const Quartiles& shortest(std::string_view where, Series series, std::uint32_t count = 1) const;

    /// Returns the median of shortest() and records it as a fitted figure of the profile.
    double learn(std::string_view where, Series series, std::string_view table,
                 std::string_view key, std::uint32_t count = 1);
    /// Returns the time of a byte beyond `fixed_ns`, divided by `shared_by`, and records it as a
    /// fitted figure.
    double learn_slope(std::span<const FitPoint> points, double fixed_ns, std::string_view table,
                       std::string_view key, unsigned shared_by = 1);

    /// Returns the longest length to measure where `bytes` is wanted; --quick limits it.
    std::uint64_t longest(std::uint64_t bytes) const {
        return options_.quick ? std::min<std::uint64_t>(bytes, 64 << 10) : bytes;
    }

  private:
    Clock::time_point next_deadline() const;
    void add_points(const std::string& where, const std::vector<Sample>& samples,
                    std::span<const std::string> lane_names, double line_ns);

    const ProbeOptions& options_;
    ProbeResult result_;
    std::map<Pair, double> lines_ns_; ///< The best one before the first phase of two CPUs.
    std::set<std::string> disturbed_; ///< Names of the disturbed phases.
    std::size_t phases_;
    std::size_t phase_ = 0; ///< The number of the one that runs, from 1.
    Clock::time_point start_ = Clock::now();
};

} // namespace ucg::tools
