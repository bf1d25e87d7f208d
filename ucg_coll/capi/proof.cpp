#include "ucg_coll/capi/proof.hpp"

#include <algorithm>
#include <cstddef>

namespace ucg::capi {
namespace {

using graph::Blocks;
using graph::Collective;
using graph::Request;

std::size_t at(Rank rank) {
    return static_cast<std::size_t>(rank);
}

Blocks end_to_end(std::vector<std::uint64_t> bytes) {
    Blocks blocks{std::move(bytes), {}, {}};
    std::uint64_t offset = 0;
    for (const std::uint64_t length : blocks.bytes) {
        blocks.offsets.push_back(offset);
        offset += length;
    }
    return blocks;
}

/// Makes the request of another rank where each rank gives the root, or takes from it, a block of a
/// length of its own. The root knows all lengths.
Request with_root(const Request& own, Rank rank, Rank other, Blocks Request::*at_root) {
    Request request = own;
    request.*at_root = {};
    if (rank == own.root) {
        request.bytes = (own.*at_root).bytes[at(other)];
    } else if (other == own.root) {
        request.*at_root = end_to_end(std::vector<std::uint64_t>(at(own.rank_count), own.bytes));
    }
    return request;
}

/// Returns how many bytes `from` gives `to`, as `rank` knows it. Where it does not, the number fits
/// in place too: it is the same in both directions.
std::uint64_t exchanged(const Request& own, Rank rank, Rank from, Rank to) {
    const Blocks& sent = own.in_place ? own.receive : own.send;
    if (from == rank) {
        return sent.bytes[at(to)];
    }
    return own.receive.bytes[at(to == rank ? from : std::min(from, to))];
}

Request of_exchange(const Request& own, Rank rank, Rank other) {
    std::vector<std::uint64_t> given;
    std::vector<std::uint64_t> taken;
    for (Rank peer = 0; peer < own.rank_count; ++peer) {
        given.push_back(exchanged(own, rank, other, peer));
        taken.push_back(exchanged(own, rank, peer, other));
    }
    Request request = own;
    request.send = own.in_place ? Blocks{} : end_to_end(std::move(given));
    request.receive = end_to_end(std::move(taken));
    return request;
}

void append(Blocks& blocks, Rank peer, std::uint64_t bytes) {
    blocks.offsets.push_back(blocks.empty() ? 0 : blocks.offsets.back() + blocks.bytes.back());
    blocks.bytes.push_back(bytes);
    blocks.peers.push_back(peer);
}

/// Makes the request of a rank whose only edges are those that `rank` has with it, or knows of
/// since ranks have agreed on rooms.
Request of_neighbors(const Request& own, Rank rank, Rank other) {
    const auto mirrored = [&](const Blocks& blocks) {
        std::vector<std::uint64_t> bytes;
        for (std::size_t i = 0; i < blocks.peers.size(); ++i) {
            if (blocks.peers[i] == other) {
                bytes.push_back(blocks.bytes[i]);
            }
        }
        Blocks edges = end_to_end(std::move(bytes));
        edges.peers.assign(edges.bytes.size(), rank);
        return edges;
    };
    Request request = own;
    request.send = mirrored(own.receive);
    request.receive = mirrored(own.send);
    for (const graph::EdgeRoom& room : own.rooms) { // As long as the longest that came.
        if (room.from != rank && room.to != rank) {
            if (room.from == other) {
                append(request.send, room.to, room.bytes);
            }
            if (room.to == other) {
                append(request.receive, room.from, room.bytes);
            }
        }
    }
    return request;
}

Request with_blocks_of_gather(const Request& own, Rank rank, Rank other) {
    return with_root(own, rank, other, &Request::receive);
}
Request with_blocks_of_scatter(const Request& own, Rank rank, Rank other) {
    return with_root(own, rank, other, &Request::send);
}

/// What a rank does not know of another's request, and how it makes one that may be it.
struct Unknown {
    std::string_view assumed;                                             ///< Empty: it knows all.
    Request (*make)(const Request& own, Rank rank, Rank other) = nullptr; ///< Null: as its own.
};

Unknown unknown_of(Collective collective) {
    constexpr std::string_view kRootKnows =
        "the root proves all plans; another rank, which knows its own block alone, proves its plan "
        "as if all blocks were as long";
    switch (collective) {
    case Collective::allgatherv:
        return {"each rank proves all plans with the lengths of all blocks; where other ranks put "
                "them it assumes to be as at itself"};
    case Collective::gatherv: return {kRootKnows, with_blocks_of_gather};
    case Collective::scatterv: return {kRootKnows, with_blocks_of_scatter};
    case Collective::alltoallv:
        return {"each rank proves its own plan with its blocks; those that others exchange among "
                "themselves it does not know and assumes",
                of_exchange};
    case Collective::neighbor_alltoallv:
        return {
            "each rank proves its own plan with its edges; of those between others it knows what "
            "its host exchanges with others, where ranks have agreed on that, and leaves out the "
            "rest",
            of_neighbors};
    case Collective::barrier:
    case Collective::bcast:
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::gather:
    case Collective::scatter:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
    case Collective::scan:
    case Collective::exscan: break;
    }
    return {};
}

Request request_of(const Request& own, Rank rank, Rank other) {
    const Unknown unknown = unknown_of(own.collective);
    Request request = unknown.make != nullptr ? unknown.make(own, rank, other) : own;
    request.in_place = own.in_place && !graph::rooted(own.collective);
    return request;
}

} // namespace

std::vector<Request> requests_of_all(const Request& own, Rank rank) {
    std::vector<Request> requests;
    requests.reserve(at(own.rank_count));
    for (Rank other = 0; other < own.rank_count; ++other) {
        requests.push_back(other == rank ? own : request_of(own, rank, other));
    }
    return requests;
}

std::string_view what_is_assumed(Collective collective) {
    return unknown_of(collective).assumed;
}

} // namespace ucg::capi
