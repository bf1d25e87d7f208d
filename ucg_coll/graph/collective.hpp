// The collectives and their arguments in bytes: what a schedule must achieve. There are no data
// types at this level: a count of elements of a type is a number of bytes with a granularity.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ucg_coll/base/base.hpp"

namespace ucg::graph {

enum class Collective : std::uint8_t {
    barrier,
    bcast,
    reduce,
    allreduce,
    allgather,
    allgatherv,
    alltoall,
    alltoallv, ///< Also serves MPI_Alltoallw: offsets and lengths are in bytes here.
    gather,
    gatherv,
    scatter,
    scatterv,
    reduce_scatter,
    reduce_scatter_block,
    scan,
    exscan,
    neighbor_alltoallv, ///< Serves all five of MPI's neighbourhood collectives.
};

inline constexpr std::array kCollectives = {
    Collective::barrier,
    Collective::bcast,
    Collective::reduce,
    Collective::allreduce,
    Collective::allgather,
    Collective::allgatherv,
    Collective::alltoall,
    Collective::alltoallv,
    Collective::gather,
    Collective::gatherv,
    Collective::scatter,
    Collective::scatterv,
    Collective::reduce_scatter,
    Collective::reduce_scatter_block,
    Collective::scan,
    Collective::exscan,
    Collective::neighbor_alltoallv,
};

/// Returns MPI's name in lower case: "allreduce", "reduce_scatter_block", ...
std::string_view name(Collective collective);
/// Returns the collective with this name(), if there is one.
std::optional<Collective> parse_collective(std::string_view text);

/// Returns whether the collective combines contributions with an operator.
bool reduces(Collective collective);
/// Returns whether the collective has a root.
bool rooted(Collective collective);
/// Returns what most of its messages among so many ranks are used for. In scans, as in collectives
/// with a root, few ranks send and receive at the same time.
MessageUse message_use(Collective collective, Rank rank_count);
/// Returns whether MPI allows MPI_IN_PLACE for the collective.
bool has_in_place(Collective collective);
/// Returns whether buffers have blocks, one for each rank or neighbour, and are not one vector.
bool has_blocks(Collective collective);
/// Returns whether blocks may have different lengths (the v-variants and reduce_scatter).
bool has_block_vectors(Collective collective);

/// The blocks of a buffer: block i lies at offsets[i] and is bytes[i] long, in bytes. There is one
/// block per rank; in a neighbourhood collective there is one per edge, and it goes to or comes
/// from rank peers[i].
struct Blocks {
    std::vector<std::uint64_t> bytes;
    std::vector<std::uint64_t> offsets;
    std::vector<Rank> peers = {};

    bool empty() const { return bytes.empty(); }
    bool operator==(const Blocks&) const = default;
};

/// An edge of a neighbourhood, with its room: the bytes for its block in a message that carries the
/// blocks of several edges. The k-th EdgeRoom of a pair of ranks is for their k-th edge.
struct EdgeRoom {
    Rank from = 0;
    Rank to = 0;
    std::uint64_t bytes = 0;
    bool operator==(const EdgeRoom&) const = default;
};
/// Returns the key by which rooms are ordered.
inline std::pair<Rank, Rank> ends_of(const EdgeRoom& room) {
    return {room.from, room.to};
}

/// What goes between hosts along the edges of a neighbourhood, in total over all hosts.
struct Crossing {
    std::uint64_t host_pairs = 0; ///< Ordered pairs of hosts with an edge from one to the other.
    std::uint64_t rank_pairs = 0; ///< Ordered pairs of ranks, on two hosts, with such an edge.
    std::uint64_t bytes = 0;      ///< The sum of the rooms of these edges.
    bool operator==(const Crossing&) const = default;
};

/// What one rank asks for. Everything in it is equal on all ranks, except what is marked (local):
/// a local fact may change this rank's slices, never which messages travel or their lengths.
///
/// `bytes` means, per collective:
///   bcast, reduce, allreduce, scan, exscan   the whole vector
///   allgather, alltoall, gather, scatter,
///   reduce_scatter_block                     one rank's block
///   gatherv, scatterv                        (local) this rank's own block; the root's blocks are
///                                            in `receive` (gatherv) or `send` (scatterv)
///   alltoallv                                the mean length of a block if ranks have agreed on
///                                            it, else 0; it serves only to choose plans
///   barrier, allgatherv, reduce_scatter,
///   neighbor_alltoallv                       unused, 0
///
/// `in_place` is local in reduce_scatter, and in collectives with a root.
///
/// Blocks: allgatherv `receive` (lengths equal on all ranks, offsets local); alltoallv `send` and
/// `receive` (local); gatherv `receive` at the root (local); scatterv `send` at the root (local);
/// reduce_scatter `receive.bytes` (equal on all ranks; offsets unused: blocks lie end to end);
/// neighbor_alltoallv `send` and `receive` (local), with peers: the k-th block of a rank for
/// another is what the other's k-th block from it receives. Blocks of `send` may overlap, as those
/// of an allgather do.
///
/// Ranks may have agreed on rooms for the blocks of neighbor_alltoallv that go between hosts. Then
/// `crossing` sums them up, and `rooms` has at least those that begin or end on the rank's host,
/// ordered by `from` and then by `to`; ranks that have the same room have it with the same bytes.
/// Rooms promise nothing: blocks may be longer or shorter, and edges more or fewer.
///
/// Buffers, as a schedule names them:
///   input    this rank's contribution. bcast: the root's buffer. There is none where `in_place`,
///            except for scatter(v).
///   output   this rank's result. bcast: the buffer of every rank but the root.
/// MPI_IN_PLACE (`in_place`; at the root only for rooted collectives, hence local there): the
/// contribution is read from where MPI says it is in `output` — for allgather(v), gather(v) the
/// rank's own block; for reduce, allreduce, scan, exscan, alltoall(v) the whole vector; for
/// reduce_scatter(_block) the whole input vector, whose first block is then replaced by the result;
/// for scatter(v) the root's own block stays where it is, in `input`, and there is no output.
struct Request {
    Collective collective = Collective::barrier;
    Rank rank_count = 1;
    Rank root = 0;
    std::uint64_t bytes = 0;
    std::uint64_t element_bytes = 1; ///< Reductions may cut a vector only at multiples of this.
    bool in_place = false;
    bool commutative = true; ///< False: operands must be combined in rank order.
    /// Whether the call returns before the collective ends, so that ranks may be busy with other
    /// things in between. It serves only to choose plans.
    bool nonblocking = false;
    bool foreign_operator = false; ///< The operator is the program's, not one of the library's.
    Blocks send;
    Blocks receive;
    std::vector<EdgeRoom> rooms = {}; ///< neighbor_alltoallv (local).
    Crossing crossing = {};           ///< neighbor_alltoallv.

    bool operator==(const Request&) const = default;
};

/// The extents, in bytes, of a rank's input and output.
struct BufferSizes {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    bool operator==(const BufferSizes&) const = default;
};
/// Returns the extents of the buffers of `rank`. REQUIRES: validate(request, rank).ok().
BufferSizes buffer_sizes(const Request& request, Rank rank);

/// Returns ok if the request is well formed for `rank`: root in range, block vectors of the right
/// length, lengths that are multiples of element_bytes where it reduces. Otherwise returns
/// invalid_argument, with a message that names the field.
Status validate(const Request& request, Rank rank);

} // namespace ucg::graph
