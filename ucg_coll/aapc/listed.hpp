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
// Machines are numbered from 0 in the order given; a line for each phase has its messages, and each
// line of the synchronisations which message must have ended before which begins. Lines that begin
// with '#', and empty ones but among phases, are skipped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/aapc/order.hpp"

namespace ucg::aapc {

/// The most machines of a list: it has a message for each pair.
inline constexpr std::uint32_t kListedMachinesMax = 4096;

/// Positions are numbers of machines.
struct Listed {
    std::vector<std::string> machines;
    std::uint64_t phase_count = 0;
    std::vector<Use> messages; ///< One for each ordered pair, by phase.
    std::vector<Sync> syncs;

    bool operator==(const Listed&) const = default;
};

/// `names` are those of the layout's members, which is the order of the list.
Listed list_schedule(const Phases& phases, std::vector<std::string> names);

std::string to_text(const Listed& listed);

/// Accepts what to_text() prints, and any schedule in which each machine sends one message to each
/// other, at most one in a phase, receives at most one in a phase, and waits for messages of
/// earlier phases alone. Whether messages meet on links it cannot say. Fails with invalid_argument
/// and "line L: what is wrong".
Result<Listed> parse_listed(std::string_view text);

/// What a machine does, as steps_of() of a tree says it, where sources send word.
std::vector<Step> steps_of(const Listed& listed, Position machine);

/// FNV-1a of all of it: the same on every rank and in every build.
std::uint64_t hash_of(const Listed& listed);

} // namespace ucg::aapc
