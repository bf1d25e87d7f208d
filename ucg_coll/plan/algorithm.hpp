// One row of the planner's table, and the facts that a row may look at.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "topo/topo.hpp"
#include "ucg_coll/cost/cost.hpp"
#include "ucg_coll/graph/graph.hpp"
#include "ucg_coll/price/price.hpp"

namespace ucg::plan {

class Network;         // network.hpp
struct LoadedSchedule; // network.hpp

/// A level of a host, whose ranks form groups of those that are no farther apart than `distance`.
struct HostLevel {
    topo::Distance distance = topo::Distance::core;
    Rank ranks = 1;     ///< Of the largest group.
    Rank ranks_min = 1; ///< Of the smallest group.
    Rank groups = 1;
};

/// The levels of the host with most ranks (the first of several such hosts) at which ranks differ,
/// from the innermost on. The last level has all ranks of the host.
struct HostLevels {
    std::array<HostLevel, topo::kDistanceCount - 1> level = {};
    std::size_t count = 0;
};

/// What the partners in a round of an exchange are to one another.
struct ExchangeRound {
    Rank leaving = 0; ///< Most ranks of a host that have their partner on another host.
    /// How far apart partners on one host are at most.
    topo::Distance farthest = topo::Distance::core;
};

/// Where partners are that take turns among all ranks, folded to a power of two
/// (messages/fold.hpp).
struct Exchanges {
    /// Partners at distance 2^i; beyond the ranks that are left by the fold, its pairs.
    std::array<ExchangeRound, std::numeric_limits<Rank>::digits> at = {};
    ExchangeRound pairs = {}; ///< The pairs of the fold.
    /// Rank r is on host r modulo `period`; 0: it is not so.
    Rank period = 0;
};

/// What ranks of a host see of one another's memory, as all ranks of a group have agreed: no rank
/// of any host has less. Hosts share no memory.
struct SharedMemory {
    /// Bytes that each rank has for scratch and staging buffers which its peers reach; 0: peers
    /// reach no rank's memory.
    std::uint64_t staging_bytes = 0;
    /// Do callers' buffers mostly lie where peers reach them? Only prices depend on it, and whether
    /// the planner takes rows whose ranks help one another.
    bool buffers_mapped = false;
    /// Are the ranks of each socket consecutive among those of their host, on all hosts? A socket
    /// is a group of ranks that are closer to one another than to others.
    bool sockets_are_contiguous = true;
    cost::NodeModel node; ///< Memory model of the host with most ranks, the first of several.
    /// Most bytes that a rank can share on a flag slot; 0: there are no flag slots.
    std::uint64_t flag_slot_bytes = 0;
    HostLevels levels = {};
    Exchanges exchanges = {};
    /// Can each rank of a host read and write the memory of every other through the kernel? Both
    /// were tried.
    bool kernel_copies = false;
};

/// Returns the facts for a group whose ranks each share `staging_bytes` with those of their host,
/// and have flag slots for `flag_slot_bytes`. If no host has two ranks, the result is that without
/// shared memory. Takes time in proportion to the ranks times the sockets of a host and the
/// logarithm of the ranks.
SharedMemory shared_memory(const topo::Placement& placement, const cost::Profile& profile,
                           std::uint64_t staging_bytes, bool buffers_mapped,
                           std::uint64_t flag_slot_bytes = 0, bool kernel_copies = false);

/// The uniform facts: a plan is a pure function of these and the request. All references and
/// pointers are borrowed.
struct Facts {
    const topo::Placement& placement;
    const cost::Profile& profile;
    SharedMemory shared = {};
    /// Ranks for each processor, on the host with most. Above 1, ranks take turns on processors, so
    /// that a rank that waits also waits for others' turns.
    double ranks_per_cpu = 1;
    /// If not null, plans of reductions do not depend on anything above: they are made as if the
    /// ranks had this placement, without shared memory, at the built-in costs. The order in which
    /// operands are combined then follows from the request alone. See reproducible_placement().
    const topo::Placement* reproducible = nullptr;
    /// If not null, the links between the hosts of these ranks.
    const Network* network = nullptr;
    /// If not null, the phases of an alltoall on these hosts, loaded from a file.
    const LoadedSchedule* loaded = nullptr;
    /// Of the collective that is planned; set by facts_for().
    MessageUse message_use = MessageUse::exchanged;
};

/// Returns what the facts say about the surroundings of a message, on which its price depends.
/// `link_sharers` ranks use the same way out of a host at a time.
price::Surroundings surroundings(const Facts& facts, Rank link_sharers = 1);

/// Returns the placement for Facts::reproducible: each rank is on a host of its own. Takes
/// memory in proportion to the ranks.
topo::Placement reproducible_placement(Rank rank_count);

/// Returns the facts by which a request is planned: the given ones, or, for a reduction that has to
/// be reproducible, those that Facts::reproducible describes.
Facts facts_for(const Facts& facts, const graph::Request& request);
/// Like the above, for any request for the collective that need not be reproducible.
Facts facts_for(const Facts& facts, graph::Collective collective);

/// Returns the length of a request that all ranks know alike, in bytes: `bytes`; for alltoallv the
/// mean block on which ranks have agreed; for allgatherv and reduce_scatter the sum of
/// receive.bytes; 0 where only some ranks know lengths (gatherv, scatterv, neighbor_alltoallv).
/// Eligibility and cost may use nothing else of the request's lengths.
std::uint64_t uniform_bytes(const graph::Request& request);

/// Returns for how many consecutive calls rows are priced. Across hosts a rank that only sends
/// goes on before its messages have arrived, so most calls of a loop take as long as the busiest
/// rank works for one call, and not as long as the path from the first rank to the last. There it
/// is two for collectives from a root and for scans, three for those to a root, and else one.
unsigned calls_in_a_row(const Facts& facts, graph::Collective collective);

/// One thing that an algorithm asks for.
struct Need {
    std::string_view what; ///< To complete "needs ...": "one host".
    /// Is the need met? Returns true also where the need has no meaning because another one is not
    /// met. Looks at uniform facts only.
    bool (*met)(const Facts& facts, const graph::Request& request);
};

/// One row of the planner's table.
struct Algorithm {
    /// The name in the literature: "recursive_doubling".
    std::string_view name;
    graph::Collective collective;
    /// One line for people, with the source in the literature.
    std::string_view summary;
    /// Returns the predicted time of the slowest rank, in nanoseconds, for calls_in_a_row() calls.
    /// Looks at uniform facts only.
    double (*cost_ns)(const Facts& facts, const graph::Request& request);
    /// Returns the program of `rank`. REQUIRES: eligible(facts, request).
    graph::Schedule (*build)(const Facts& facts, const graph::Request& request, Rank rank);
    /// All that the algorithm asks for; empty if it serves all requests.
    std::span<const Need> needs = {};
    /// Returns the program that the argument of "name:argument" describes; null if the row takes no
    /// argument. Fails with invalid_argument if the argument is malformed or does not suit the
    /// request, which uniform facts decide. REQUIRES: eligible(facts, request).
    Result<graph::Schedule> (*build_with)(const Facts& facts, const graph::Request& request,
                                          Rank rank, std::string_view argument) = nullptr;
    /// What the argument is, for people: "the phases, such as a4,a2".
    std::string_view argument = {};
    /// Ranks that wait do the work of others (graph/helped.hpp). Unless it is asked for by name,
    /// the planner takes such a row only for nonblocking calls, since in a blocking call all ranks
    /// wait, and only where buffers are mapped.
    bool helped = false;

    /// May it serve this request?
    bool eligible(const Facts& facts, const graph::Request& request) const {
        return std::all_of(needs.begin(), needs.end(),
                           [&](const Need& need) { return need.met(facts, request); });
    }
    /// Returns the needs for people: "one host, several ranks, and flag slots"; empty if the row
    /// serves all requests.
    std::string needs_text() const;
    /// Returns those needs that are not met, in the same form.
    std::string unmet_text(const Facts& facts, const graph::Request& request) const;
};

/// Returns the row for another collective that it serves by the same functions.
constexpr Algorithm for_collective(Algorithm row, graph::Collective collective) {
    row.collective = collective;
    return row;
}

/// An algorithm as users write it: "name" or "name:argument". The argument, which may have commas
/// and colons, goes to the row's build_with. Both are views of the text, which must outlive them.
struct AlgorithmText {
    std::string_view name;
    std::string_view argument;
    bool has_argument = false;
};
AlgorithmText split_algorithm(std::string_view text);

/// The rows of a mechanism (a folder of ucg_coll/plan).
using Rows = std::span<const Algorithm* const>;
/// A mechanism lists its rows once, in a macro that applies one of these to each row.
#define UCG_DECLARE_ROW(row) extern const Algorithm row;
#define UCG_POINT_TO_ROW(row) &row,

} // namespace ucg::plan
