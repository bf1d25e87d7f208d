// Compares the planner with the simulator: the planner's price of a row with the simulated time of
// that row's schedules, under the same profile. Both have the same prices of ops and differ only in
// how they add them up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

/// kClose and kNear are the largest deviations at which prices agree closely and roughly. kRegret
/// is the part by which a chosen row may take longer than the best one.
inline constexpr double kClose = 0.10;
inline constexpr double kNear = 0.25;
inline constexpr double kRegret = 0.03;

/// The comparison of one row for one length.
struct AgreementCell {
    const plan::Algorithm* row = nullptr;
    std::uint64_t bytes = 0; ///< Length of the vector, or of all blocks together.
    double planned_ns = 0;
    double simulated_ns = 0;
    bool chosen = false;   ///< Whether the planner chooses it for a blocking call.
    double regret = 0;     ///< How much slower than the best a chosen row is simulated.
    std::string best = {}; ///< The row that is the best.

    double ratio() const { return simulated_ns > 0 ? planned_ns / simulated_ns : 1; }
    /// Returns by how much, relative to the smaller one, the larger of the two times exceeds it.
    double deviation() const;
};

/// Returns all cells of these ranks. The links between hosts are those of the profile's network.
/// Rows that need the links between the hosts, or a schedule from a file, are included only where
/// `facts` has them. Prices are without LinkCosts::contention, which the simulator does not model.
/// Fails where the simulator does.
Result<std::vector<AgreementCell>> agreement(const plan::Facts& facts,
                                             const std::vector<std::uint64_t>& bytes);

struct AgreementSummary {
    std::size_t cells = 0;
    std::size_t within_10 = 0; ///< Cells that deviate by at most 10 per cent.
    std::size_t within_25 = 0;
    std::size_t choices = 0;
    std::size_t choices_within_3 = 0;

    void add(const std::vector<AgreementCell>& cells);
};

} // namespace ucg::tools
