// The specification of each collective for verify, in terms of positions in the ranks'
// contributions.
//
// A rank's contribution is the bytes that it puts in, numbered from 0: its input, or, where in
// place, those bytes of its output that hold the contribution according to MPI.
#include <algorithm>

#include <fmt/ranges.h>

#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {
namespace {

std::size_t at(Rank rank) {
    return static_cast<std::size_t>(rank);
}

std::uint64_t product(Rank rank, std::uint64_t bytes) {
    return static_cast<std::uint64_t>(rank) * bytes;
}

bool in_place(const Request& request, Rank rank) {
    return request.in_place && (!rooted(request.collective) || rank == request.root);
}

std::uint64_t sum_before(const std::vector<std::uint64_t>& bytes, Rank rank) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < at(rank); ++i) {
        total += bytes[i];
    }
    return total;
}

/// Returns what block `block` of an output of allgather(v) or gather(v) must be.
Expected gathered(const Request& request, Rank block) {
    const bool even = !has_block_vectors(request.collective);
    const std::uint64_t begin =
        even ? product(block, request.bytes) : request.receive.offsets[at(block)];
    const std::uint64_t bytes = even ? request.bytes : request.receive.bytes[at(block)];
    return {begin, begin + bytes, block, block + 1, 0};
}

/// Returns what the block must be that `rank` gets from `from` in an alltoall(v).
Expected exchanged(const World& world, Rank rank, Rank from) {
    const Request& mine = world.request(rank);
    if (mine.collective == Collective::alltoall) {
        const std::uint64_t begin = product(from, mine.bytes);
        return {begin, begin + mine.bytes, from, from + 1, product(rank, mine.bytes)};
    }
    const Request& theirs = world.request(from);
    const Blocks& sent = theirs.in_place ? theirs.receive : theirs.send;
    const std::uint64_t begin = mine.receive.offsets[at(from)];
    return {begin, begin + mine.receive.bytes[at(from)], from, from + 1, sent.offsets[at(rank)]};
}

/// Returns the indexes of a rank's edges with `peer`, in the order of `blocks`.
std::vector<std::size_t> edges_with(const Blocks& blocks, Rank peer) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < blocks.peers.size(); ++i) {
        if (blocks.peers[i] == peer) {
            places.push_back(i);
        }
    }
    return places;
}

/// Appends all blocks that `from` gives `rank` in a neighbourhood collective: the k-th block that
/// `from` sends to `rank` is the k-th that `rank` receives from it. REQUIRES: check_agreement().
void append_neighbor_blocks(const World& world, Rank rank, Rank from,
                            std::vector<Expected>& blocks) {
    const Blocks& sent = world.request(from).send;
    const Blocks& received = world.request(rank).receive;
    const std::vector<std::size_t> sources = edges_with(sent, rank);
    const std::vector<std::size_t> targets = edges_with(received, from);
    for (std::size_t k = 0; k < targets.size(); ++k) {
        const std::uint64_t begin = received.offsets[targets[k]];
        blocks.push_back(
            {begin, begin + received.bytes[targets[k]], from, from + 1, sent.offsets[sources[k]]});
    }
}

std::vector<Expected> expected_of_neighbors(const World& world, Rank rank) {
    std::vector<Rank> sources = world.request(rank).receive.peers;
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    std::vector<Expected> blocks;
    for (const Rank from : sources) {
        append_neighbor_blocks(world, rank, from, blocks);
    }
    return blocks;
}

Expected scattered(const World& world, Rank rank) {
    const Request& mine = world.request(rank);
    const Request& root = world.request(mine.root);
    const std::uint64_t position = mine.collective == Collective::scatter
                                       ? product(rank, mine.bytes)
                                       : root.send.offsets[at(rank)];
    return {0, mine.bytes, mine.root, mine.root + 1, position};
}

Expected reduced_block(const Request& request, Rank rank) {
    if (request.collective == Collective::reduce_scatter_block) {
        return {0, request.bytes, 0, request.rank_count, product(rank, request.bytes)};
    }
    return {0, request.receive.bytes[at(rank)], 0, request.rank_count,
            sum_before(request.receive.bytes, rank)};
}

/// Returns what all blocks of an output, one from each rank, must be.
std::vector<Expected> expected_blocks(const World& world, Rank rank) {
    const Request& request = world.request(rank);
    const bool alltoall =
        request.collective == Collective::alltoall || request.collective == Collective::alltoallv;
    std::vector<Expected> blocks;
    blocks.reserve(at(request.rank_count));
    for (Rank from = 0; from < request.rank_count; ++from) {
        blocks.push_back(alltoall ? exchanged(world, rank, from) : gathered(request, from));
    }
    return blocks;
}

/// Returns whether MPI lets ranks differ in `in_place`: of a reduce-scatter, since a rank without a
/// block may have no receive buffer, and of scans, whose ranks each pass MPI_IN_PLACE or not.
bool may_differ_in_place(Collective collective) {
    return rooted(collective) || collective == Collective::reduce_scatter ||
           collective == Collective::scan || collective == Collective::exscan;
}

/// Returns whether two ranks' requests agree in the fields that must be equal on all ranks.
bool uniform_alike(const Request& a, const Request& b) {
    const bool own_lengths =
        a.collective == Collective::gatherv || a.collective == Collective::scatterv;
    return a.collective == b.collective && a.rank_count == b.rank_count &&
           (!rooted(a.collective) || a.root == b.root) && (own_lengths || a.bytes == b.bytes) &&
           a.element_bytes == b.element_bytes && a.commutative == b.commutative &&
           a.crossing == b.crossing &&
           (may_differ_in_place(a.collective) || a.in_place == b.in_place);
}

std::vector<std::uint64_t> lengths_with(const Blocks& blocks, Rank peer) {
    std::vector<std::uint64_t> lengths;
    for (const std::size_t place : edges_with(blocks, peer)) {
        lengths.push_back(blocks.bytes[place]);
    }
    return lengths;
}

/// Checks that two ranks agree about the edges from one to the other: how many there are, and how
/// long the block of each is.
Status check_edges(const World& world, Rank from, Rank to) {
    const std::vector<std::uint64_t> given = lengths_with(world.request(from).send, to);
    const std::vector<std::uint64_t> taken = lengths_with(world.request(to).receive, from);
    return given == taken ? Status()
                          : failure(Code::invalid_argument,
                                    "rank {}: its request gives rank {} blocks of {} bytes, which "
                                    "expects {}",
                                    from, to, fmt::format("[{}]", fmt::join(given, ", ")),
                                    fmt::format("[{}]", fmt::join(taken, ", ")));
}

/// How many bytes one rank gives to another, as each of the two says. Both are 0 where the requests
/// do not say it twice.
struct BlockLength {
    std::uint64_t given = 0;
    std::uint64_t taken = 0;
};
BlockLength block_length(const World& world, Rank from, Rank to) {
    const Request& giver = world.request(from);
    const Request& taker = world.request(to);
    switch (giver.collective) {
    case Collective::alltoallv: {
        const Blocks& sent = giver.in_place ? giver.receive : giver.send;
        return {sent.bytes[at(to)], taker.receive.bytes[at(from)]};
    }
    case Collective::gatherv:
        return from == to || to != taker.root
                   ? BlockLength{}
                   : BlockLength{giver.bytes, taker.receive.bytes[at(from)]};
    case Collective::scatterv:
        return from == to || from != giver.root
                   ? BlockLength{}
                   : BlockLength{giver.send.bytes[at(to)], taker.bytes};
    case Collective::allgatherv:
    case Collective::reduce_scatter:
        return {giver.receive.bytes[at(from)], taker.receive.bytes[at(from)]};
    default: return {};
    }
}

Status check_block(const World& world, Rank from, Rank to) {
    const BlockLength length = block_length(world, from, to);
    return length.given == length.taken
               ? Status()
               : failure(Code::invalid_argument,
                         "rank {}: its request gives rank {} {} bytes, which expects {}", from, to,
                         length.given, length.taken);
}

} // namespace

Status check_agreement(const World& world) {
    const Request& first = world.request(0);
    for (Rank rank = 1; rank < world.rank_count(); ++rank) {
        if (!uniform_alike(first, world.request(rank))) {
            return failure(Code::invalid_argument,
                           "rank {}: its request differs from rank 0's in a field that must be "
                           "equal on all ranks",
                           rank);
        }
    }
    if (!has_block_vectors(first.collective)) {
        return Status();
    }
    const auto check =
        first.collective == Collective::neighbor_alltoallv ? check_edges : check_block;
    for (Rank from = 0; from < world.rank_count(); ++from) {
        for (Rank to = 0; to < world.rank_count(); ++to) {
            if (Status status = check(world, from, to); !status.ok()) {
                return status;
            }
        }
    }
    return Status();
}

std::vector<Expected> expected(const World& world, Rank rank) {
    const Request& request = world.request(rank);
    const bool is_root = rank == request.root;
    const auto combined = [&](Rank ranks) {
        return std::vector<Expected>{{0, request.bytes, 0, ranks, 0}};
    };
    switch (request.collective) {
    case Collective::barrier: return {};
    case Collective::bcast:
        return is_root
                   ? std::vector<Expected>{}
                   : std::vector<Expected>{{0, request.bytes, request.root, request.root + 1, 0}};
    case Collective::reduce:
        return is_root ? combined(request.rank_count) : std::vector<Expected>{};
    case Collective::allreduce: return combined(request.rank_count);
    case Collective::scan: return combined(rank + 1);
    case Collective::exscan: return rank == 0 ? std::vector<Expected>{} : combined(rank);
    case Collective::gather:
    case Collective::gatherv:
        return is_root ? expected_blocks(world, rank) : std::vector<Expected>{};
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::alltoall:
    case Collective::alltoallv: return expected_blocks(world, rank);
    case Collective::neighbor_alltoallv: return expected_of_neighbors(world, rank);
    case Collective::scatter:
    case Collective::scatterv:
        return in_place(request, rank) ? std::vector<Expected>{}
                                       : std::vector<Expected>{scattered(world, rank)};
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block: return {reduced_block(request, rank)};
    }
    return {};
}

std::vector<Given> given(const World& world, Rank rank) {
    const Request& request = world.request(rank);
    const Schedule& program = world.program(rank);
    if (!in_place(request, rank) || request.collective == Collective::scatter ||
        request.collective == Collective::scatterv) {
        return {{BufferKind::input, 0, program.input_bytes, 0}};
    }
    switch (request.collective) {
    case Collective::gather:
    case Collective::gatherv:
    case Collective::allgather:
    case Collective::allgatherv: {
        const Expected own = gathered(request, rank);
        return {{BufferKind::output, own.begin, own.end, 0}};
    }
    default: return {{BufferKind::output, 0, program.output_bytes, 0}};
    }
}

} // namespace ucg::graph::proof
