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
#include "tools/ucg_tune/statistics.hpp"
#include "topo/topo.hpp"
#include "ucg_coll/capi/profile_file.hpp"
#include "ucg_coll/cost/cost.hpp"

namespace ucg::tools {

struct ProbeOptions {
    double seconds = capi::kTuneSeconds; ///< About, all together.
    bool quick = false; ///< Short vectors only: outer caches and memory are left as they were.
    std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// What the rounds of one measurement came to.
struct Point {
    std::string where; ///< The level or cache, or the way that messages took.
    Series series = Series::line;
    std::uint32_t count = 1; ///< Readers or operands.
    std::uint64_t bytes = 0;
    Summary ns;
};

/// How a figure of the profile came to be.
enum class Origin : std::uint8_t {
    fitted,  ///< To what was measured.
    told,    ///< By the system.
    derived, ///< Of fitted ones.
    kept,    ///< Measured before, and not by `ucg_tune memory`.
};

struct Figure {
    Origin origin = Origin::fitted;
    double error = 0; ///< Relative: of a line fit_error, of one median its spread; 0: none.
};

struct ProbeResult {
    cost::MemoryModel model; ///< Where something was not measured: what the probe was given.
    /// Of messages, by topo::Distance; empty where none were timed.
    std::array<std::optional<cost::LogGp>, cost::kMemoryLevelCount> levels;
    std::map<std::string, Figure, std::less<>>
        figures; ///< By cost::NamedFigure::path. No others are known.
    std::vector<Point> points;
    std::vector<std::string> notes; ///< What was not measured and why; what disturbed the rest.
};

/// CPUs, the operating system's numbers, at one distance from one another.
struct Neighbours {
    topo::Distance distance = topo::Distance::core;
    std::vector<std::uint32_t> cpus; ///< The first is as far from each of the others.
};

/// For each distance that there is between two of `cpus`, the CPU with the most others at exactly
/// this distance, and those. Nearest first.
std::vector<Neighbours> neighbours_of(const topo::Machine& machine,
                                      const std::vector<std::uint32_t>& cpus);

/// Of sets of bytes that a core copies within, each at least as long as the one before, the longest
/// of which a byte takes at most twice as long as of the first, as have all before it. x: the bytes
/// of a set; y: nanoseconds for copying one half of it to the other. REQUIRES: copies.
std::uint64_t usable_part(std::span<const FitPoint> copies);

/// Measures with the CPUs that this process may use. What cannot be measured keeps its value in
/// `model`, not marked as measured, with a note. Fails when processes cannot be started or share no
/// memory.
Result<ProbeResult> probe_memory(const topo::Machine& machine,
                                 const std::vector<std::uint32_t>& cpus,
                                 const cost::MemoryModel& model, const ProbeOptions& options);

} // namespace ucg::tools
