// One row of the planner's table.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
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

/// A level of a host: how many ranks the largest group has of those that are no farther apart.
struct HostLevel {
    topo::Distance distance = topo::Distance::core;
    Rank ranks = 1;
};

/// The levels that ranks differ by, of the fullest host, the first of several; from the innermost
/// on, the last of which has all its ranks.
struct HostLevels {
    std::array<HostLevel, topo::kDistanceCount - 1> level = {};
    std::size_t count = 0;
};

/// What ranks of a host see of one another's memory, as all ranks of a group have agreed: no rank
/// has less, on whichever host. Nothing is shared between hosts.
struct SharedMemory {
    /// That each rank has for scratch and windows which its peers reach; 0: no rank is reached.
    std::uint64_t staging_bytes = 0;
    /// Do callers' buffers mostly lie where peers reach them? Only prices depend on it.
    bool in_place = false;
    /// Do ranks that are closer to one another than to others follow one another, on all hosts?
    bool sockets_are_contiguous = true;
    cost::NodeModel node; ///< Of the fullest host, the first of several.
    /// The longest share on a board; 0: there are none.
    std::uint64_t board_bytes = 0;
    HostLevels levels = {};
    /// Each rank of a host reads and writes the memory of every other by the kernel: both were
    /// tried.
    bool kernel_copies = false;
};

/// For a group whose ranks share `staging_bytes` each with those of their host, and have boards for
/// `board_bytes`. Where no host has two ranks everything is as without. Takes time in the ranks
/// times the sockets of a host.
SharedMemory shared_memory(const topo::Placement& placement, const cost::Profile& profile,
                           std::uint64_t staging_bytes, bool in_place,
                           std::uint64_t board_bytes = 0, bool kernel_copies = false);

/// The uniform facts that a plan is a pure function of, beside the request. All of it
/// is borrowed.
struct Facts {
    const topo::Placement& placement;
    const cost::Profile& profile;
    SharedMemory shared = {};
    double ranks_per_cpu =
        1; ///< On the fullest host. Above 1, who waits for a rank waits its turn.
    /// If not null, reductions do not depend on anything above: they are planned as if the ranks
    /// were placed so, without shared memory, at the built-in costs. What is combined in which
    /// order then follows from the request alone. See reproducible_placement().
    const topo::Placement* reproducible = nullptr;
    /// If not null, the links between the hosts, of these very ranks.
    const Network* network = nullptr;
    /// If not null, an alltoall's phases that somebody has written down for these hosts.
    const LoadedSchedule* loaded = nullptr;
};

/// What the facts say of the ranks around a message, for its price; `link_sharers` ranks use the
/// same way out of a host at a time.
price::Surroundings surroundings(const Facts& facts, Rank link_sharers = 1);

/// For Facts::reproducible: each rank on a host of its own. Takes memory in the ranks.
topo::Placement reproducible_placement(Rank rank_count);

/// The facts that a request is planned by: those given, or what they say of reproducibility.
Facts facts_for(const Facts& facts, const graph::Request& request);

/// The bytes of a request that all ranks know alike: `bytes`, for alltoallv what they have agreed
/// that a block has in the mean, the sum of receive.bytes for allgatherv and reduce_scatter, 0
/// where only some ranks know (gatherv, scatterv, neighbor_alltoallv). Eligibility and cost may use
/// nothing else of the request's lengths.
std::uint64_t uniform_bytes(const graph::Request& request);

/// For how many calls that follow one another rows are priced. Across hosts who only sends goes on
/// before its messages have arrived, so that what ranks do between two calls, not the way from the
/// first to the last of them, is what most calls take: two from a root, three to one, else one.
unsigned calls_in_a_row(const Facts& facts, graph::Collective collective);

/// One thing that an algorithm asks for.
struct Need {
    std::string_view what; ///< To complete "needs ...": "one host".
    /// Is it there? Where it means nothing since another need is not met, it is. Uniform facts
    /// only.
    bool (*met)(const Facts& facts, const graph::Request& request);
};

struct Algorithm {
    /// The name in the literature: "recursive_doubling".
    std::string_view name;
    graph::Collective collective;
    /// One line for people, with the source.
    std::string_view summary;
    /// Predicted time of the slowest rank, in nanoseconds, for calls_in_a_row() calls. Uniform
    /// facts only.
    double (*cost_ns)(const Facts& facts, const graph::Request& request);
    /// The program of `rank`. REQUIRES: eligible(facts, request).
    graph::Schedule (*build)(const Facts& facts, const graph::Request& request, Rank rank);
    /// All that it asks for; nothing if it serves all.
    std::span<const Need> needs = {};
    /// The program that the argument of "name:argument" describes; null if the row takes none.
    /// Fails with invalid_argument if it is malformed or does not suit the request; uniform facts
    /// decide. REQUIRES: eligible(facts, request).
    Result<graph::Schedule> (*build_with)(const Facts& facts, const graph::Request& request,
                                          Rank rank, std::string_view argument) = nullptr;
    /// What the argument is, for people: "the phases, such as a4,a2".
    std::string_view argument = {};
    /// Ranks do what others still owe (graph/helped.hpp). The planner takes such a row by itself
    /// for nonblocking calls alone: of a blocking one no rank is elsewhere.
    bool helped = false;

    /// May it serve this request?
    bool eligible(const Facts& facts, const graph::Request& request) const {
        return std::all_of(needs.begin(), needs.end(),
                           [&](const Need& need) { return need.met(facts, request); });
    }
    /// For people: "one host, several ranks, and boards"; empty if it serves all.
    std::string needs_text() const;
    /// The same of what is not met, where it is not eligible.
    std::string unmet_text(const Facts& facts, const graph::Request& request) const;
};

/// An algorithm as users write it: "name" or "name:argument". The argument, which may have commas
/// and colons, goes to the row's build_with. Parts of the text, which must outlive this.
struct AlgorithmText {
    std::string_view name;
    std::string_view argument;
    bool has_argument = false;
};
AlgorithmText split_algorithm(std::string_view text);

/// The rows of a mechanism.
using Rows = std::span<const Algorithm* const>;
/// A mechanism lists its rows once, as a macro that is given one of these for each.
#define UCG_DECLARE_ROW(row) extern const Algorithm row;
#define UCG_POINT_TO_ROW(row) &row,

} // namespace ucg::plan
