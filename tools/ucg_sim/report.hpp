// What `ucg_sim run` prints: text for people, JSON for tools.
#pragma once

#include <string>
#include <vector>

#include "ucg_coll/sim/sim.hpp"

namespace ucg::tools {

/// What was simulated, in words.
struct Subject {
    std::string collective;
    std::string algorithm;
    std::string title;          ///< "allreduce of 8 bytes among 8 ranks (8 ranks on 1 host): ring"
    std::string prices;         ///< "postal: alpha 500 ns"
    std::uint32_t in_a_row = 1; ///< How many calls the times are of.
    std::uint64_t seed = 0;
};

/// The outcome of the first repetition, and the completion times of all of them.
struct Runs {
    sim::Outcome first;
    std::vector<sim::Picoseconds> completions; ///< At least one.
};

std::string text_report(const Subject& subject, const Runs& runs);

/// Returns one object on one line: completion_ns, ranks, messages, flag slots, repetitions. With
/// `trace` it also has what each rank did when, each message, each flag slot that was read, and
/// when each op was issued.
std::string json_report(const Subject& subject, const Runs& runs, const sim::Trace* trace);

} // namespace ucg::tools
