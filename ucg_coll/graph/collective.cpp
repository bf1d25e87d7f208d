#include "ucg_coll/graph/collective.hpp"

#include <algorithm>
#include <limits>

namespace ucg::graph {

namespace {

bool multiply_overflows(std::uint64_t a, std::uint64_t b) {
    return b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b;
}

std::uint64_t extent(const Blocks& blocks) {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < blocks.bytes.size(); ++i) {
        if (blocks.bytes[i] > 0) {
            end = std::max(end, blocks.offsets[i] + blocks.bytes[i]);
        }
    }
    return end;
}

std::uint64_t sum(const std::vector<std::uint64_t>& bytes) {
    std::uint64_t total = 0;
    for (const std::uint64_t length : bytes) {
        total += length;
    }
    return total;
}

Status malformed(std::string_view field, std::string_view reason) {
    return failure(Code::invalid_argument, "{}: {}", field, reason);
}

enum class Offsets { needed, unused };

/// Checks that block vectors have one entry per rank, or edge, and that no block ends beyond 64
/// bits.
Status validate_blocks(const Blocks& blocks, std::string_view field, std::size_t count,
                       Offsets offsets, std::string_view owners = "ranks") {
    if (blocks.bytes.size() != count) {
        return failure(Code::invalid_argument, "{}.bytes: has {} entries for {} {}", field,
                       blocks.bytes.size(), count, owners);
    }
    if (offsets == Offsets::unused) {
        std::uint64_t total = 0;
        for (const std::uint64_t length : blocks.bytes) {
            if (__builtin_add_overflow(total, length, &total)) {
                return failure(Code::invalid_argument, "{}.bytes: the sum exceeds 64 bits", field);
            }
        }
        return Status();
    }
    if (blocks.offsets.size() != count) {
        return failure(Code::invalid_argument, "{}.offsets: has {} entries for {} {}", field,
                       blocks.offsets.size(), count, owners);
    }
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t end = 0;
        if (__builtin_add_overflow(blocks.offsets[i], blocks.bytes[i], &end)) {
            return failure(Code::invalid_argument, "{}: block {} ends beyond 64 bits", field, i);
        }
    }
    return Status();
}

Status validate_edges(const Blocks& blocks, std::string_view field, Rank rank_count) {
    for (const Rank peer : blocks.peers) {
        if (peer < 0 || peer >= rank_count) {
            return failure(Code::invalid_argument, "{}.peers: {} is not in 0 .. {}", field, peer,
                           rank_count - 1);
        }
    }
    return validate_blocks(blocks, field, blocks.peers.size(), Offsets::needed, "peers");
}

/// Checks that a rank sends itself what it receives from itself: it knows both ends of these edges.
Status validate_own_edges(const Request& request, Rank rank) {
    const auto lengths = [rank](const Blocks& blocks) {
        std::vector<std::uint64_t> own;
        for (std::size_t i = 0; i < blocks.peers.size(); ++i) {
            if (blocks.peers[i] == rank) {
                own.push_back(blocks.bytes[i]);
            }
        }
        return own;
    };
    return lengths(request.send) == lengths(request.receive)
               ? Status()
               : failure(Code::invalid_argument,
                         "peers: rank {} sends itself other blocks than it receives from itself",
                         rank);
}

Status validate_rooms(const Request& request) {
    const auto is_rank = [&](Rank rank) { return rank >= 0 && rank < request.rank_count; };
    for (std::size_t i = 0; i < request.rooms.size(); ++i) {
        const EdgeRoom& room = request.rooms[i];
        if (!is_rank(room.from) || !is_rank(room.to)) {
            return failure(Code::invalid_argument, "rooms: {} to {} are not in 0 .. {}", room.from,
                           room.to, request.rank_count - 1);
        }
        if (i > 0 && ends_of(room) < ends_of(request.rooms[i - 1])) {
            return failure(Code::invalid_argument, "rooms: {} to {} is not in order", room.from,
                           room.to);
        }
    }
    return Status();
}

Status validate_neighborhood(const Request& request, Rank rank) {
    Status status = validate_edges(request.send, "send", request.rank_count);
    if (status.ok()) {
        status = validate_edges(request.receive, "receive", request.rank_count);
    }
    if (status.ok()) {
        status = validate_own_edges(request, rank);
    }
    return status.ok() ? validate_rooms(request) : status;
}

/// Checks the block vectors that `rank` must give, for collectives that have them.
Status validate_vectors(const Request& request, Rank rank) {
    const auto ranks = static_cast<std::size_t>(request.rank_count);
    switch (request.collective) {
    case Collective::allgatherv:
        return validate_blocks(request.receive, "receive", ranks, Offsets::needed);
    case Collective::alltoallv:
        if (!request.in_place) {
            Status status = validate_blocks(request.send, "send", ranks, Offsets::needed);
            if (!status.ok()) {
                return status;
            }
        }
        return validate_blocks(request.receive, "receive", ranks, Offsets::needed);
    case Collective::gatherv:
        return rank != request.root
                   ? Status()
                   : validate_blocks(request.receive, "receive", ranks, Offsets::needed);
    case Collective::scatterv:
        return rank != request.root ? Status()
                                    : validate_blocks(request.send, "send", ranks, Offsets::needed);
    case Collective::reduce_scatter:
        return validate_blocks(request.receive, "receive", ranks, Offsets::unused);
    case Collective::neighbor_alltoallv: return validate_neighborhood(request, rank);
    default: return Status();
    }
}

Status validate_elements(const Request& request) {
    if (request.bytes % request.element_bytes != 0) {
        return failure(Code::invalid_argument, "bytes: {} is no multiple of element_bytes, {}",
                       request.bytes, request.element_bytes);
    }
    if (request.collective == Collective::reduce_scatter) {
        for (std::size_t i = 0; i < request.receive.bytes.size(); ++i) {
            if (request.receive.bytes[i] % request.element_bytes != 0) {
                return failure(Code::invalid_argument,
                               "receive.bytes: block {}, {} bytes, is no multiple of "
                               "element_bytes, {}",
                               i, request.receive.bytes[i], request.element_bytes);
            }
        }
    }
    return Status();
}

/// Checks that the root's own block, or of an alltoallv any rank's, whose length is given twice,
/// has the same length in both.
Status validate_own_block(const Request& request, Rank rank) {
    const auto own = static_cast<std::size_t>(rank);
    if (request.collective == Collective::alltoallv && !request.in_place &&
        request.send.bytes[own] != request.receive.bytes[own]) {
        return failure(Code::disagreement,
                       "send.bytes: rank {} sends itself {}, but its own block in receive has {}",
                       rank, request.send.bytes[own], request.receive.bytes[own]);
    }
    if (rank != request.root || request.in_place) {
        return Status();
    }
    if (request.collective == Collective::gatherv && request.receive.bytes[own] != request.bytes) {
        return failure(Code::disagreement, "bytes: {}, but the root's block in receive has {}",
                       request.bytes, request.receive.bytes[own]);
    }
    if (request.collective == Collective::scatterv && request.send.bytes[own] != request.bytes) {
        return failure(Code::disagreement, "bytes: {}, but the root's block in send has {}",
                       request.bytes, request.send.bytes[own]);
    }
    return Status();
}

BufferSizes sizes_of_rooted(const Request& request, Rank rank) {
    const bool is_root = rank == request.root;
    const bool in_place = request.in_place && is_root;
    const auto ranks = static_cast<std::uint64_t>(request.rank_count);
    const std::uint64_t own = in_place ? 0 : request.bytes;
    switch (request.collective) {
    case Collective::bcast:
        return is_root ? BufferSizes{request.bytes, 0} : BufferSizes{0, request.bytes};
    case Collective::reduce: return {own, is_root ? request.bytes : 0};
    case Collective::gather: return {own, is_root ? ranks * request.bytes : 0};
    case Collective::gatherv: return {own, is_root ? extent(request.receive) : 0};
    case Collective::scatter: return {is_root ? ranks * request.bytes : 0, own};
    case Collective::scatterv: return {is_root ? extent(request.send) : 0, own};
    default: return {};
    }
}

} // namespace

std::string_view name(Collective collective) {
    switch (collective) {
    case Collective::barrier: return "barrier";
    case Collective::bcast: return "bcast";
    case Collective::reduce: return "reduce";
    case Collective::allreduce: return "allreduce";
    case Collective::allgather: return "allgather";
    case Collective::allgatherv: return "allgatherv";
    case Collective::alltoall: return "alltoall";
    case Collective::alltoallv: return "alltoallv";
    case Collective::gather: return "gather";
    case Collective::gatherv: return "gatherv";
    case Collective::scatter: return "scatter";
    case Collective::scatterv: return "scatterv";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::reduce_scatter_block: return "reduce_scatter_block";
    case Collective::scan: return "scan";
    case Collective::exscan: return "exscan";
    case Collective::neighbor_alltoallv: return "neighbor_alltoallv";
    }
    return "?";
}

std::optional<Collective> parse_collective(std::string_view text) {
    for (const Collective collective : kCollectives) {
        if (name(collective) == text) {
            return collective;
        }
    }
    return std::nullopt;
}

bool reduces(Collective collective) {
    switch (collective) {
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
    case Collective::scan:
    case Collective::exscan: return true;
    default: return false;
    }
}

bool rooted(Collective collective) {
    switch (collective) {
    case Collective::bcast:
    case Collective::reduce:
    case Collective::gather:
    case Collective::gatherv:
    case Collective::scatter:
    case Collective::scatterv: return true;
    default: return false;
    }
}

MessageUse message_use(Collective collective, Rank rank_count) {
    switch (collective) {
    case Collective::reduce: return MessageUse::combined;
    case Collective::scan: // Among more ranks, most of them send on what they have combined.
        return rank_count == 2 ? MessageUse::combined : MessageUse::one_way;
    case Collective::exscan:
    case Collective::bcast:
    case Collective::gather:
    case Collective::gatherv:
    case Collective::scatter:
    case Collective::scatterv: return MessageUse::one_way;
    case Collective::allreduce:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block: return MessageUse::exchanged_combined;
    case Collective::barrier:
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::neighbor_alltoallv: return MessageUse::exchanged;
    }
    return MessageUse::exchanged;
}

bool has_in_place(Collective collective) {
    switch (collective) {
    case Collective::barrier:
    case Collective::bcast:
    case Collective::neighbor_alltoallv: return false;
    default: return true;
    }
}

bool has_blocks(Collective collective) {
    switch (collective) {
    case Collective::barrier:
    case Collective::bcast:
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan: return false;
    default: return true;
    }
}

bool has_block_vectors(Collective collective) {
    switch (collective) {
    case Collective::allgatherv:
    case Collective::alltoallv:
    case Collective::gatherv:
    case Collective::scatterv:
    case Collective::reduce_scatter:
    case Collective::neighbor_alltoallv: return true;
    default: return false;
    }
}

BufferSizes buffer_sizes(const Request& request, Rank rank) {
    if (rooted(request.collective)) {
        return sizes_of_rooted(request, rank);
    }
    const auto ranks = static_cast<std::uint64_t>(request.rank_count);
    const auto own = static_cast<std::size_t>(rank);
    BufferSizes sizes;
    switch (request.collective) {
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan: sizes = {request.bytes, request.bytes}; break;
    case Collective::allgather: sizes = {request.bytes, ranks * request.bytes}; break;
    case Collective::allgatherv:
        sizes = {request.receive.bytes[own], extent(request.receive)};
        break;
    case Collective::alltoall: sizes = {ranks * request.bytes, ranks * request.bytes}; break;
    case Collective::alltoallv:
        sizes = {request.in_place ? 0 : extent(request.send), extent(request.receive)};
        break;
    case Collective::neighbor_alltoallv:
        sizes = {extent(request.send), extent(request.receive)};
        break;
    case Collective::reduce_scatter:
        sizes = {sum(request.receive.bytes),
                 request.in_place ? sum(request.receive.bytes) : request.receive.bytes[own]};
        break;
    case Collective::reduce_scatter_block:
        sizes = {ranks * request.bytes, request.in_place ? ranks * request.bytes : request.bytes};
        break;
    default: break;
    }
    if (request.in_place) {
        sizes.input = 0;
    }
    return sizes;
}

Status validate(const Request& request, Rank rank) {
    if (request.rank_count < 1) {
        return failure(Code::invalid_argument, "rank_count: {}, must be at least 1",
                       request.rank_count);
    }
    if (rank < 0 || rank >= request.rank_count) {
        return failure(Code::invalid_argument, "rank: {} is not in 0 .. {}", rank,
                       request.rank_count - 1);
    }
    if (rooted(request.collective) && (request.root < 0 || request.root >= request.rank_count)) {
        return failure(Code::invalid_argument, "root: {} is not in 0 .. {}", request.root,
                       request.rank_count - 1);
    }
    if (request.in_place && !has_in_place(request.collective)) {
        return failure(Code::invalid_argument, "in_place: {} is not in place",
                       name(request.collective));
    }
    if (multiply_overflows(request.bytes, static_cast<std::uint64_t>(request.rank_count))) {
        return malformed("bytes", "times rank_count exceeds 64 bits");
    }
    Status status = validate_vectors(request, rank);
    if (status.ok() && has_block_vectors(request.collective)) {
        status = validate_own_block(request, rank);
    }
    if (!status.ok() || !reduces(request.collective)) {
        return status;
    }
    if (request.element_bytes == 0) {
        return malformed("element_bytes", "must be at least 1");
    }
    return validate_elements(request);
}

} // namespace ucg::graph
