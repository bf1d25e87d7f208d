// Requests, placements and profiles to try algorithms with, and the proof that an algorithm serves
// them: all ranks plan, then graph::verify looks at the schedules together.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ucg_coll/plan/network/network.hpp"
#include "ucg_coll/plan/plan.hpp"

namespace ucg::plan::test {

/// What a test varies. Block vectors have lengths of 0 to 2 times `bytes`, some with gaps between.
struct Case {
    graph::Collective collective = graph::Collective::barrier;
    Rank rank_count = 1;
    Rank root = 0;
    std::uint64_t bytes = 0;
    std::uint64_t element_bytes = 1;
    bool in_place = false;
    bool commutative = true;
    bool agreed = true; ///< neighbor_alltoallv: on rooms.
};
std::string describe(const Case& sample);

/// What `rank` asks for: local facts differ between ranks as MPI allows.
graph::Request request_of(const Case& sample, Rank rank);

/// Plans all ranks by the algorithm of that name, maybe with an argument, and proves them; of aapc
/// also that messages do not meet. The message names the case.
Status prove(const Facts& facts, std::string_view algorithm, const Case& sample);

/// `count` ranks on: one host; hosts of 2 in turn; hosts of 1, 2, 3, ...; hosts of up to 4, dealt
/// round robin; a host for each; one host with sockets of 4; one host with three sockets, dealt
/// round robin; one host with packages of two NUMA domains of caches of three, the last ones short.
enum class Layout { one_host, pairs, uneven, cyclic, single, sockets, dealt_sockets, levels };
inline constexpr Layout kLayouts[] = {Layout::one_host,      Layout::pairs,  Layout::uneven,
                                      Layout::cyclic,        Layout::single, Layout::sockets,
                                      Layout::dealt_sockets, Layout::levels};
topo::Placement place(Layout layout, Rank count);

/// Three switches in a row, the second one between links of half the rate, with the hosts of the
/// placement dealt to them; null for one host.
std::unique_ptr<const Network> network_for(const topo::Placement& placement);

/// The list of the network's own schedule, if there is one rank on each host; else null.
std::unique_ptr<const LoadedSchedule> loaded_for(const topo::Placement& placement,
                                                 const Network* network);

/// How much memory ranks of one host share: none; so little that vectors go in several segments;
/// enough for one.
inline constexpr std::uint64_t kStagings[] = {0, 1024, 64 << 10};

/// Which algorithms' parameters a profile brings about.
enum class Prices {
    usual,
    wide_trees,     ///< Latency is all: trees and rounds of radix 8.
    short_segments, ///< A message costs next to nothing: pipelines of one cache line a segment.
};
inline constexpr Prices kPrices[] = {Prices::usual, Prices::wide_trees, Prices::short_segments};
cost::Profile profile_for(Prices prices);

} // namespace ucg::plan::test
