// What the algorithms share in which ranks of one host read one another's memory: Li, Hoefler and
// Snir, "NUMA-Aware Shared-Memory Collective Communication for MPI" (HPDC 2013). Rows serve groups
// of one host, pieces the ranks of each. Vectors are published segment by segment; whoever does not
// reach a buffer in place reads a copy in a staging buffer.
#pragma once

#include <array>

#include "ucg_coll/plan/messages/pieces.hpp"
#include "ucg_coll/plan/parts/needs.hpp"
#include "ucg_coll/plan/parts/segments.hpp"
#include "ucg_coll/plan/peer_memory/rows.hpp"
#include "ucg_coll/plan/peer_memory/sockets.hpp"

namespace ucg::plan {

inline constexpr Need kData = {
    "data", [](const Facts&, const graph::Request& request) { return uniform_bytes(request) > 0; }};
inline constexpr Need kStaging = {
    "staging memory that ranks share",
    [](const Facts& facts, const graph::Request&) { return facts.shared.staging_bytes > 0; }};

/// Do `places` segments of a cache line's elements each fit the staging memory, if there is some?
bool segments_fit(const Facts& facts, const graph::Request& request, std::uint32_t places);
template <std::uint32_t places>
inline constexpr Need kSegmentsFit = {"segments that fit the staging memory",
                                      [](const Facts& facts, const graph::Request& request) {
                                          return segments_fit(facts, request, places);
                                      }};
inline constexpr Need kSeveralSockets = {
    "several sockets",
    [](const Facts& facts, const graph::Request&) { return facts.shared.node.sockets > 1; }};
inline constexpr Need kSocketsInOrder = {"a commutative operator or sockets of consecutive ranks",
                                         [](const Facts& facts, const graph::Request& request) {
                                             return request.commutative ||
                                                    facts.shared.sockets_are_contiguous;
                                         }};

/// What it takes that ranks read one another's memory, and more.
template <typename... More>
constexpr auto peer_needs(const More&... more) {
    return std::array{kOneHost, kSeveralRanks, kData, kStaging, more...};
}

/// All members know that all have arrived: by signals in as many rounds as are cheapest.
void barrier(graph::Builder& builder, const Facts& facts, const Team& team, OpIds& last);
double barrier_ns(const Facts& facts);
/// The same of the members of a socket.
double socket_barrier_ns(const Facts& facts);
/// Of oversubscribed_ns, a rank's part: while all ranks meet, those of a processor take turns and
/// none has work. Of the meetings of a segment, one at least finds it so.
double barriers_work_ns(const Facts& facts, std::uint64_t count);

/// The node as a rank finds it that knows what is there: reading takes no signal.
cost::NodeModel known_node(const Facts& facts);
/// Its widest level.
inline cost::MemoryLevel known_level(const Facts& facts) {
    const cost::NodeModel node = known_node(facts);
    return node.sockets > 1 ? node.between : node.within;
}
/// Who else reads at the same time.
enum class Readers : std::uint8_t {
    one,     ///< Nobody.
    in_turn, ///< All ranks of the host, one of the others after the other; those of a socket come
             ///< to those of another together.
    at_once, ///< All ranks of the host, all of the others in one pass.
};
/// A rank reads `bytes` of each of the others of its host, in one pass or one after the other, so
/// that each has one reader at a time; those of a socket share the links to the others. It knows
/// that they are there. Of all ranks that `part` reads.
double read_others_ns(const Facts& facts, Readers readers, std::uint64_t bytes, double part = 1);
/// The same of the others of its socket.
double read_socket_ns(const Facts& facts, std::uint64_t bytes);
/// Reading for `read_ns` and combining so many operands in one pass; of the rank's own operand and
/// its target `own_bytes` pass through its caches.
double read_and_combine_ns(const Facts& facts, double read_ns, unsigned operands,
                           std::uint64_t bytes, std::uint64_t own_bytes);
/// The same of copying what is read to a part of a vector of `own_bytes`.
double read_and_copy_ns(const Facts& facts, double read_ns, std::uint64_t bytes,
                        std::uint64_t own_bytes);

/// Copying to a staging buffer, which peers read last.
double copy_to_staging_ns(const Facts& facts, std::uint64_t bytes);
/// What is published is copied there; nothing is where peers reach it.
double publish_ns(const Facts& facts, std::uint64_t bytes);

/// How ranks of a socket combine: in rank order unless another will do.
inline MemberOrder member_order(const graph::Request& request) {
    return request.commutative ? MemberOrder::by_place : MemberOrder::by_rank;
}

/// How many tiles of a segment have bytes, and how long they are.
struct Tiles {
    Rank count = 1;
    std::uint64_t bytes = 0;
};
Tiles tiles_of(std::uint64_t segment_bytes, Rank count);
/// Each rank combines its tile of all ranks' vectors, as read_and_combine_ns().
double combine_tile_ns(const Facts& facts, const Tiles& tiles, unsigned operands,
                       std::uint64_t own_bytes);
/// Tile `index` of `count` of a segment: whole elements, and cache lines where elements fit them.
graph::Slice tile_of(graph::Slice segment, Rank index, Rank count, std::uint64_t element_bytes);

/// The order in which a rank reads the vectors of a team: ranks rising, or, where the operator
/// commutes and `cyclic`, from its own on, so that no vector is everybody's first (Mamidala et
/// al.).
std::vector<Rank> reading_order(const Team& team, bool cyclic);

} // namespace ucg::plan
