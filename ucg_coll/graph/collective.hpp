// The collectives and their arguments in bytes: what a schedule must achieve. Data types are gone
// at this level: a count of elements of a type is a number of bytes with a granularity.
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

/// MPI's word in lower case: "allreduce", "reduce_scatter_block", ...
std::string_view name(Collective collective);
std::optional<Collective> parse_collective(std::string_view text);

/// Does it combine contributions with an operator?
bool reduces(Collective collective);
/// Does it have a root?
bool rooted(Collective collective);
/// May MPI_IN_PLACE be said of it?
bool has_in_place(Collective collective);
/// May ranks contribute blocks of different length (the v-variants and reduce_scatter)?
bool has_block_vectors(Collective collective);

/// Block i lies at offsets[i] and is bytes[i] long, in bytes. One block per rank; of a
/// neighbourhood collective one per edge, which goes to or comes from rank peers[i].
struct Blocks {
    std::vector<std::uint64_t> bytes;
    std::vector<std::uint64_t> offsets;
    std::vector<Rank> peers = {};

    bool empty() const { return bytes.empty(); }
    bool operator==(const Blocks&) const = default;
};

/// An edge of a neighbourhood, and how many bytes a message of several edges has for its block. The
/// k-th of two ranks is their k-th edge.
struct EdgeRoom {
    Rank from = 0;
    Rank to = 0;
    std::uint64_t bytes = 0;
    bool operator==(const EdgeRoom&) const = default;
};
/// By which rooms are ordered.
inline std::pair<Rank, Rank> ends_of(const EdgeRoom& room) {
    return {room.from, room.to};
}

/// What goes between hosts along the edges of a neighbourhood, added up over all of them.
struct Crossing {
    std::uint64_t host_pairs = 0; ///< Ordered ones with an edge from one to the other.
    std::uint64_t rank_pairs = 0; ///< The same of ranks.
    std::uint64_t bytes = 0;      ///< Of rooms.
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
///   alltoallv                                a block's length in the mean, as far as ranks have
///                                            agreed on it, else 0; plans are chosen by it, and
///                                            nothing else
///   barrier, allgatherv, reduce_scatter,
///   neighbor_alltoallv                       unused, 0
///
/// Blocks: allgatherv `receive` (lengths equal on all ranks, offsets local); alltoallv `send` and
/// `receive` (local); gatherv `receive` at the root (local); scatterv `send` at the root (local);
/// reduce_scatter `receive.bytes` (equal on all ranks; offsets unused: blocks lie end to end);
/// neighbor_alltoallv `send` and `receive` (local), with peers: the k-th block of a rank for
/// another is what the other's k-th block from it receives. Blocks of `send` may overlap, as those
/// of an allgather do.
///
/// Ranks may have agreed on rooms for the blocks of neighbor_alltoallv that go between hosts:
/// `crossing` then sums them up, and a rank has in `rooms` at least those that begin or end on its
/// host, each as all others have it, ordered by `from` and then by `to`. They promise nothing:
/// blocks may be longer or shorter, edges more or fewer.
///
/// Buffers, as a schedule names them:
///   input    this rank's contribution. bcast: the root's buffer. Absent where `in_place`.
///   output   this rank's result. bcast: every other rank's buffer.
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
    /// The call returns before its end: between its beginning and its end ranks may be busy with
    /// other things. Plans are chosen by it.
    bool nonblocking = false;
    bool foreign_operator = false; ///< The operator is the program's: it alone may call it.
    Blocks send;
    Blocks receive;
    std::vector<EdgeRoom> rooms = {}; ///< neighbor_alltoallv (local).
    Crossing crossing = {};           ///< neighbor_alltoallv.

    bool operator==(const Request&) const = default;
};

/// How many bytes `rank` reads and writes at the most: the extent of its buffers.
struct BufferSizes {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    bool operator==(const BufferSizes&) const = default;
};
BufferSizes buffer_sizes(const Request& request, Rank rank);

/// Is the request well formed for `rank` (root in range, block vectors of the right length, lengths
/// that are multiples of element_bytes where it reduces)? The message names the field.
Status validate(const Request& request, Rank rank);

} // namespace ucg::graph
