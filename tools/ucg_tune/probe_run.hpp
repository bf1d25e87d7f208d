// What all measurements of `ucg_tune memory` share: phases that last their part of the time, rounds
// of which the unsteady ones are left out, and figures with the error of what they were fitted to.
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

/// What a byte takes beyond `fixed_ns`. On a machine so busy that a line took longer than what is
/// measured, the longest as a whole says it. REQUIRES: points.
double per_byte_ns(std::span<const FitPoint> points, double fixed_ns);

class ProbeRun {
  public:
    /// Of so many phases; each has an equal part of the time.
    ProbeRun(const ProbeOptions& options, std::size_t phases)
        : options_(options), phases_(phases) {}

    ProbeResult& result() { return result_; }
    const ProbeResult& result() const { return result_; }
    cost::MemoryModel& model() { return result_.model; }
    const ProbeOptions& options() const { return options_; }

    using RoundFn = std::function<Status(Driver&, std::uint32_t)>;

    /// A crew that does `round` again and again, in the next phase; adds the points of `where`, or,
    /// of messages, of the lane's name. The crew's deadline is the phase's.
    Status rounds(const std::string& where, CrewOptions crew, const RoundFn& round,
                  std::span<const std::string> lane_names = {});
    /// Were enough rounds of that phase of the state in which its CPUs were seen first?
    bool steady(const std::string& where) const { return !disturbed_.contains(where); }
    using Pair = std::pair<std::uint32_t, std::uint32_t>;
    /// What a line between the two took at best before their first phase.
    Result<double> line_between(const Pair& cpus);
    /// So many phases have nothing to do.
    void skip(std::size_t phases = 1) { phase_ += phases; }
    /// The next phase, of that name, would not be steady.
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

    /// Those of one series of the phase that `where` names, by bytes.
    std::vector<FitPoint> points(std::string_view where, Series series,
                                 std::uint32_t count = 1) const;
    /// The shortest of one series of the phase that `where` names.
    const Summary& shortest(std::string_view where, Series series, std::uint32_t count = 1) const;

    /// The median of shortest(), as a figure of the profile.
    double learn(std::string_view where, Series series, std::string_view table,
                 std::string_view key, std::uint32_t count = 1);
    /// What a byte takes beyond `fixed_ns`, as a figure of the profile. `shared_by`: so many times.
    double learn_slope(std::span<const FitPoint> points, double fixed_ns, std::string_view table,
                       std::string_view key, unsigned shared_by = 1);

    /// What --quick makes of a length.
    std::uint64_t longest(std::uint64_t bytes) const {
        return options_.quick ? std::min<std::uint64_t>(bytes, 64 << 10) : bytes;
    }

  private:
    Clock::time_point next_deadline() const;
    void add_points(const std::string& where, const std::vector<Sample>& samples,
                    std::span<const std::string> lane_names, double line_ns);

    const ProbeOptions& options_;
    ProbeResult result_;
    std::map<Pair, double> lines_ns_; ///< At best, before the first phase of two CPUs.
    std::set<std::string> disturbed_; ///< Phases, by their names.
    std::size_t phases_;
    std::size_t phase_ = 0;
};

} // namespace ucg::tools
