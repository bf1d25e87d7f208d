// Every row of the planner's table, with facts and requests that it serves: on one host and on
// several, with staging memory, staging buffers and flag slots and without. For tests that say
// "every algorithm": a row that nothing here serves fails the test.
#pragma once

#include <functional>
#include <vector>

#include "test/unit/plan/proof.hpp"

namespace ucg::plan::test {

/// What a test tries rows with; each combination that a row serves is one trial.
struct Trials {
    std::vector<Rank> counts = {4, 6};
    std::vector<std::uint64_t> bytes = {8, 88, 4104}; ///< Whole elements of 8.
    std::vector<std::uint64_t> stagings = {0, 1024, 64 << 10};
    bool roots = true;    ///< The first and the last rank, where there is one; else the first.
    bool in_place = true; ///< As well.
    double ranks_per_cpu = 1;
};

struct Trial {
    const Algorithm& row;
    const Facts& facts;
    const Case& sample;

    /// "allreduce flag_slots: allreduce of 8 bytes, ..., staging 1024".
    std::string describe() const;
    /// The schedules of all ranks; fails the test if the row does not plan what it serves.
    std::vector<graph::Schedule> schedules() const;
};

/// Calls visit(trial) for all rows. Fails the test, by their names, for rows without a trial.
void for_every_row(const Trials& trials, const std::function<void(const Trial&)>& visit);

} // namespace ucg::plan::test
