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
/// is the part by which a chosen row may take longer than the best one. kRival is how many times
/// the chosen row's time or price another row may have that a wrong price could put in its place.
inline constexpr double kClose = 0.10;
inline constexpr double kNear = 0.25;
inline constexpr double kRegret = 0.03;
inline constexpr double kRival = 1.5;

/// The comparison of one row for one length.
struct AgreementCell {
    const plan::Algorithm* row = nullptr;
    std::uint64_t bytes = 0; ///< Length of the vector, or of all blocks together.
    double planned_ns = 0;
    double simulated_ns = 0;
    bool chosen = false;   ///< Whether the planner chooses it for a blocking call.
    bool rival = false;    ///< Whether it is the chosen row, or close to it (kRival).
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
    std::size_t good_choices = 0; ///< Choices with a regret of at most 3 per cent.
    double worst_regret = 0;
    double log_regrets = 0; ///< Sum of log(1 + regret) of the choices.
    double worst_rival = 0; ///< The largest deviation of a rival.

    double within_10_part() const { return part(within_10, cells); }
    double within_25_part() const { return part(within_25, cells); }
    double good_choices_part() const { return part(good_choices, choices); }
    /// Returns by how much choices are slower than the best rows, in the geometric mean.
    double mean_regret() const;

    void add(const std::vector<AgreementCell>& cells);

  private:
    static double part(std::size_t some, std::size_t all) {
        return all > 0 ? static_cast<double>(some) / static_cast<double>(all) : 1;
    }
};

} // namespace ucg::tools
