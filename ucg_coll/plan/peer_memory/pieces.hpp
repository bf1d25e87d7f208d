// What the algorithms have in common in which ranks of one host read one another's memory, after
// Li, Hoefler and Snir, "NUMA-Aware Shared-Memory Collective Communication for MPI" (HPDC 2013).
// The rows serve groups of one host, the pieces the ranks of each host. Vectors are published
// segment by segment. A rank that does not reach a buffer in place reads a copy of it in a staging
// buffer.
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

/// Returns whether `places` segments fit the staging memory if each has the elements of a cache
/// line. True where there is no staging memory or no data.
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

/// Returns the needs of every algorithm in which ranks read one another's memory, and `more`.
template <typename... More>
constexpr auto peer_needs(const More&... more) {
    return std::array{kOneHost, kSeveralRanks, kData, kStaging, more...};
}

/// After it, all members know that all have arrived. Members send signals, by dissemination or up
/// and down a tree, whichever is cheaper.
void barrier(graph::Builder& builder, const Facts& facts, const Team& team, OpIds& last);
/// Returns the time of a barrier among all ranks.
double barrier_ns(const Facts& facts);
/// Returns the time of a barrier among the ranks of a socket.
double socket_barrier_ns(const Facts& facts);
/// Returns what `count` barriers of all ranks add to a rank's work, for oversubscribed_ns(). While
/// all ranks meet, the ranks of a processor take turns, and none has other work. This is so in at
/// least one of the barriers of each segment, so callers count one for each segment.
double barriers_work_ns(const Facts& facts, std::uint64_t count);

/// Returns the node as a rank sees it that knows that the data is there: its reads take no signal.
cost::NodeModel known_node(const Facts& facts);
/// Like known_node(), for a root that is not the host's first rank. REQUIRES: there is one host.
cost::NodeModel known_node(const Facts& facts, Rank root);
/// Returns the time in which the root alone reads `bytes` of each other rank, which it knows to be
/// there. REQUIRES: there is one host.
double root_reads_others_ns(const Facts& facts, Rank root, std::uint64_t bytes);
/// How all ranks of a host read at the same time.
enum class Readers : std::uint8_t {
    in_turn, ///< Each reads one peer after the other; the ranks of a socket come to those of
             ///< another socket at the same time.
    at_once, ///< Each reads all peers in one pass.
};
/// Returns the time in which each rank reads `bytes` of each other rank of its host: in one pass,
/// or one after the other, so that each of them has one reader at a time. The ranks of a socket
/// share the links to the other sockets; those of the smallest read most over links, and those of
/// the largest have most to share them with. Ranks know that the bytes are there. `part` is the
/// share of all ranks that read.
double read_others_ns(const Facts& facts, Readers readers, std::uint64_t bytes, double part = 1);
/// Returns the time in which a rank reads `bytes` of each other rank of its socket.
double read_socket_ns(const Facts& facts, std::uint64_t bytes);
/// Returns the time to combine `operands` of `bytes` each in one pass with reading all but one of
/// them, which alone takes `read_ns`. Of the rank's own operand and its target, `own_bytes` pass
/// through its caches.
double read_and_combine_ns(const Facts& facts, double read_ns, unsigned operands,
                           std::uint64_t bytes, std::uint64_t own_bytes);
/// Like read_and_combine_ns(), but copies the `bytes` that are read to a part of a vector of
/// `own_bytes`.
double read_and_copy_ns(const Facts& facts, double read_ns, std::uint64_t bytes,
                        std::uint64_t own_bytes);

/// Returns the time to copy `bytes` to a staging buffer, which peers were the last to read.
double copy_to_staging_ns(const Facts& facts, std::uint64_t bytes);
/// Returns the time to publish `bytes`: that of copying them to a staging buffer, or 0 where peers
/// reach buffers in place.
double publish_ns(const Facts& facts, std::uint64_t bytes);

/// Returns the order in which the ranks of a socket combine: rank order, unless the operator allows
/// another one.
inline MemberOrder member_order(const graph::Request& request) {
    return request.commutative ? MemberOrder::by_place : MemberOrder::by_rank;
}

/// The tiles of a segment.
struct Tiles {
    Rank count = 1;          ///< Tiles that are not empty.
    std::uint64_t bytes = 0; ///< Length of the longest tile.
};
Tiles tiles_of(std::uint64_t segment_bytes, Rank count, std::uint64_t element_bytes);
/// Returns the time in which each rank reads and combines its tile of all ranks' vectors.
/// `operands` and `own_bytes` are those of read_and_combine_ns().
double combine_tile_ns(const Facts& facts, const Tiles& tiles, unsigned operands,
                       std::uint64_t own_bytes);
/// Returns tile `index` of the `count` tiles of a segment. Tiles begin and end at whole elements
/// and whole cache lines, or at the end of the segment.
graph::Slice tile_of(graph::Slice segment, Rank index, Rank count, std::uint64_t element_bytes);

/// Returns the order in which a rank reads the vectors of a team: by rising index, or, if `cyclic`,
/// from its own on, so that no vector is everybody's first (Mamidala et al.). Reductions may be
/// cyclic only if the operator commutes.
std::vector<Rank> reading_order(const Team& team, bool cyclic);

} // namespace ucg::plan
