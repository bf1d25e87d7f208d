// Every row of the planner's table, with facts and requests that it serves: on one host and on
// several, with and without staging memory, staging buffers and flag slots. These are for tests
// that claim something of every algorithm: a row that no trial serves fails the test.
#pragma once

#include <functional>
#include <vector>

#include "test/unit/plan/proof.hpp"

namespace ucg::plan::test {

/// The values that a test tries rows with; each combination that a row serves is one trial.
struct Trials {
    std::vector<Rank> counts = {4, 6};
    /// They are multiples of an element of 8 bytes.
    std::vector<std::uint64_t> bytes = {8, 88, 4104};
    std::vector<std::uint64_t> stagings = {0, 1024, 64 << 10};
    bool roots = true;    ///< Tries the first and the last rank as root; else the first only.
    bool in_place = true; ///< Tries in place as well.
    double ranks_per_cpu = 1;
};

struct Trial {
    const Algorithm& row;
    const Facts& facts;
    const Case& sample;

    /// For example "allreduce flag_slots: allreduce of 8 bytes, ..., staging 1024".
    std::string describe() const;
    /// The schedules of all ranks; fails the test if the row does not plan a request that it claims
    /// to serve.
    std::vector<graph::Schedule> schedules() const;
};

/// Calls visit(trial) for all rows. Fails the test and names the rows that have no trial.
void for_every_row(const Trials& trials, const std::function<void(const Trial&)>& visit);

} // namespace ucg::plan::test
