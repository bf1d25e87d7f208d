// Measures the parameters of cost::MemoryModel on the machine at hand.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/ucg_tune/crew.hpp"
#include "tools/ucg_tune/neighbours.hpp"
#include "tools/ucg_tune/statistics.hpp"
#include "topo/topo.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

struct ProbeOptions {
    double seconds = capi::kTuneSeconds; ///< About the time of all measurements together.
    bool quick = false; ///< Short vectors only: rates of outer caches and memory are kept.
    std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// The summary of one measurement over all its rounds.
struct Point {
    std::string where; ///< The level, the cache, or the way by which messages were sent.
    Series series = Series::line;
    std::uint32_t count = 1; ///< Readers or operands.
    std::uint64_t bytes = 0;
    Quartiles ns;
};

/// Where a figure of the profile comes from.
enum class Origin : std::uint8_t {
    fitted,  ///< Fitted to measured times.
    told,    ///< Told by the system.
    derived, ///< Derived from fitted figures.
    kept,    ///< Measured before, and not by `ucg_tune memory`.
};

struct Figure {
    Origin origin = Origin::fitted;
    double error = 0; ///< Relative: fit_error of a line, or spread of a median; 0: none.
};

struct ProbeResult {
    cost::MemoryModel model; ///< Figures that were not measured are as they were given.
    /// LogGP of messages, by topo::Distance; empty where none were timed.
    std::array<std::optional<cost::LogGp>, cost::kMemoryLevelCount> levels;
    std::map<std::string, Figure, std::less<>>
        figures; ///< By cost::NamedFigure::path; only the known ones.
    std::vector<Point> points;
    std::vector<std::string> notes; ///< What was not measured and why; what disturbed measurements.
};

/// Returns the longest set of bytes in which a byte takes at most twice as long as in the first
/// set, provided that the same holds for all sets before it. Each of `copies` belongs to a set at
/// least as long as the one before: x is the bytes of a set that a core copies within, y the
/// nanoseconds for copying one half of it to the other. REQUIRES: copies is not empty.
std::uint64_t usable_part(std::span<const FitPoint> copies);

/// Measures on the CPUs that this process may use. A figure that cannot be measured keeps its value
/// in `model`, is not marked as measured, and has a note. Fails when processes cannot be started or
/// cannot share memory.
Result<ProbeResult> probe_memory(const topo::Machine& machine,
                                 const std::vector<std::uint32_t>& cpus,
                                 const cost::MemoryModel& model, const ProbeOptions& options);

} // namespace ucg::tools
