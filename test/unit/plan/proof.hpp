// Requests, placements and profiles for trying algorithms, and the proof that an algorithm serves
// them: all ranks plan, then graph::verify checks the schedules together.
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
    bool agreed = true; ///< For neighbor_alltoallv: the ranks have agreed on rooms.
};
std::string describe(const Case& sample);

/// The request of `rank`: its local facts differ between ranks as far as MPI allows.
graph::Request request_of(const Case& sample, Rank rank);

/// Plans all ranks by the algorithm of that name, which may have an argument, and proves the plans.
/// For aapc it also proves that messages do not meet. A failure's message names the case.
Status prove(const Facts& facts, std::string_view algorithm, const Case& sample);

/// How `count` ranks are placed. In this order: on one host; on hosts of 2; on hosts of 1, 2, 3,
/// ...; on hosts of up to 4, dealt round robin; on a host for each; on one host with sockets of 4;
/// on one host with three sockets, dealt round robin; on one host with packages of two NUMA domains
/// of caches of three, the last ones of which are not full.
enum class RankLayout { one_host, pairs, uneven, cyclic, single, sockets, dealt_sockets, levels };
inline constexpr RankLayout kLayouts[] = {
    RankLayout::one_host, RankLayout::pairs,   RankLayout::uneven,        RankLayout::cyclic,
    RankLayout::single,   RankLayout::sockets, RankLayout::dealt_sockets, RankLayout::levels};
topo::Placement place(RankLayout layout, Rank count);

/// Three switches in a row, of which the second has links of half the rate, with the hosts of the
/// placement dealt to them; null for one host.
std::unique_ptr<const Network> network_for(const topo::Placement& placement);

/// The network's own schedule as a list, if there is one rank on each host; else null.
std::unique_ptr<const LoadedSchedule> loaded_for(const topo::Placement& placement,
                                                 const Network* network);

/// How much staging memory the ranks of one host share: none, so little that vectors go in several
/// segments, or enough for one segment.
inline constexpr std::uint64_t kStagings[] = {0, 1024, 64 << 10};

/// Profiles that lead to different parameters of the algorithms.
enum class Prices {
    usual,
    wide_trees,     ///< Only latency costs anything: trees and rounds of radix 8.
    short_segments, ///< A message costs next to nothing: pipelines of one cache line a segment.
};
inline constexpr Prices kPrices[] = {Prices::usual, Prices::wide_trees, Prices::short_segments};
cost::Profile profile_for(Prices prices);

} // namespace ucg::plan::test
