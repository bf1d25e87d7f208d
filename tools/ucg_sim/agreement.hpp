// Planner against simulator: what the one predicts of a row and what the other says of that row's
// schedules, under the same profile. They have the same prices of ops; what differs is how they add
// them up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

/// Deviations up to which prices agree well, and at all; how much longer than the best a choice may
/// take.
inline constexpr double kClose = 0.10;
inline constexpr double kNear = 0.25;
inline constexpr double kRegret = 0.03;

/// One row, for one length.
struct AgreementCell {
    const plan::Algorithm* row = nullptr;
    std::uint64_t bytes = 0; ///< Of the vector, of all blocks together where there are blocks.
    double planned_ns = 0;
    double simulated_ns = 0;
    bool chosen = false;   ///< By the planner, for a blocking call.
    double regret = 0;     ///< Of a chosen one: how much longer than the best row it is simulated.
    std::string best = {}; ///< That row.

    double ratio() const { return simulated_ns > 0 ? planned_ns / simulated_ns : 1; }
    /// By how much the larger of the two is more than the other.
    double deviation() const;
};

/// All cells of these ranks, whose links to other hosts are those of the profile's network. Rows
/// that need the links between the hosts, or what somebody wrote down, are served only where
/// `facts` has them. Fails where the simulator does.
Result<std::vector<AgreementCell>> agreement(const plan::Facts& facts,
                                             const std::vector<std::uint64_t>& bytes);

struct AgreementSummary {
    std::size_t cells = 0;
    std::size_t within_10 = 0; ///< Per cent.
    std::size_t within_25 = 0;
    std::size_t choices = 0;
    std::size_t choices_within_3 = 0;

    void add(const std::vector<AgreementCell>& cells);
};

} // namespace ucg::tools
