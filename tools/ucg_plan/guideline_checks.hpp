// Self-consistent performance guidelines (Traff, Gropp, Thakur, "Self-Consistent MPI Performance
// Guidelines", 2010; Hunold, Carpen-Amarie, "PGMPI", 2016), held against what the planner predicts:
// a collective is no slower than others that do its work, nor than itself with more bytes.
#pragma once

#include <string>
#include <vector>

#include "ucg_coll/plan/plan.hpp"

namespace ucg::tools {

/// One guideline, for one length.
struct GuidelineCheck {
    std::string what;      ///< "allreduce of 8 bytes <= reduce + bcast"
    double left_ns = 0;    ///< What should be no more
    double right_ns = 0;   ///< than this.
    std::string rows = {}; ///< "ring <= chain + knomial": those that the planner chooses.

    double ratio() const { return right_ns > 0 ? left_ns / right_ns : 1; }
    bool is_violated(double tolerance) const { return left_ns > right_ns * (1 + tolerance); }
};

/// All guidelines among these ranks for vectors (of all ranks together, where there are blocks) of
/// each of `bytes`, which rise.
std::vector<GuidelineCheck> check_guidelines(const plan::Facts& facts,
                                             const std::vector<std::uint64_t>& bytes);

} // namespace ucg::tools
