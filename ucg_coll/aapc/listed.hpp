// A schedule as a list: machines, phases and synchronisations, in the text form that a vendor ships
// with a cluster. Loading one needs no topology.
//
//   # Written by ucg_aapc.
//   aapc 1
//   machines 3
//   n0
//   n1
//   n2
//   phases 2
//   0>1 1>2 2>0
//   0>2 1>0 2>1
//   syncs 3
//   0>1 2>1
//   1>2 0>2
//   2>0 1>0
//
// Machines are numbered from 0 in the order given. A line for each phase has the messages of the
// phase. Each line of the synchronisations has two messages, the first of which must have ended
// before the second begins. Lines that begin with '#' are skipped, and so are empty lines except
// among the phases.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/aapc/order.hpp"

namespace ucg::aapc {

/// The most machines that a list may have: it has a message for each ordered pair of them.
inline constexpr std::uint32_t kListedMachinesMax = 4096;

/// A schedule as a list. Positions in it are numbers of machines.
struct Listed {
    std::vector<std::string> machines;
    std::uint64_t phase_count = 0;
    std::vector<Use> messages; ///< One for each ordered pair, by phase.
    std::vector<Sync> syncs;

    bool operator==(const Listed&) const = default;
};

/// Returns the schedule of `phases` as a list. `names` are the names of the layout's members by
/// their numbers, which are the numbers of the machines in the list.
Listed list_schedule(const Phases& phases, std::vector<std::string> names);

std::string to_text(const Listed& listed);

/// Reads the text form. Accepts what to_text() prints, and any schedule in which each machine sends
/// one message to each other, at most one in a phase, receives at most one in a phase, and waits
/// for messages of earlier phases alone. Does not check whether messages meet on links. Fails with
/// invalid_argument and "line L: what is wrong".
Result<Listed> parse_listed(std::string_view text);

/// Returns the steps of a machine, in the same form as those of a tree (order.hpp), where sources
/// signal.
std::vector<MemberStep> steps_of(const Listed& listed, Position machine);

/// Returns an FNV-1a hash of the whole list, the same on every rank and in every build.
std::uint64_t hash_of(const Listed& listed);

} // namespace ucg::aapc
