// Self-consistent performance guidelines (Traff, Gropp, Thakur, "Self-Consistent MPI Performance
// Guidelines", 2010; Hunold, Carpen-Amarie, "PGMPI", 2016), checked against what the planner
// predicts: a collective is no slower than other collectives that do its work, nor than itself with
// more bytes.
#pragma once

#include <string>
#include <vector>

#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

/// One guideline, checked for one length.
struct GuidelineCheck {
    std::string what;      ///< "allreduce of 8 bytes <= reduce + bcast"
    double left_ns = 0;    ///< Predicted time of the left side,
    double right_ns = 0;   ///< which should not exceed this one.
    std::string rows = {}; ///< "ring <= chain + knomial": the chosen algorithms.

    double ratio() const { return right_ns > 0 ? left_ns / right_ns : 1; }
    bool is_violated(double tolerance) const { return left_ns > right_ns * (1 + tolerance); }
};

/// Checks all guidelines among these ranks for vectors of each of `bytes`, which are in rising
/// order. Where ranks have blocks, a vector is the blocks of all ranks together. Guidelines with
/// reductions are checked for an operator that commutes and for one that does not.
std::vector<GuidelineCheck> check_guidelines(const plan::Facts& facts,
                                             const std::vector<std::uint64_t>& bytes);

} // namespace ucg::tools
