// Two-level neighbourhood exchange: what the ranks of a host have for those of another goes in one
// message, by a delegate on either host that collects it and deals it out. A delegate does not know
// how long others' blocks are, so a message has the rooms that ranks have agreed on
// (Request::rooms) one after the other, by the rank that sends and then by the one that receives.
// Both ends of an edge know its room and its block: a block that is longer than its room goes
// between the two directly, as in the linear exchange, and one that is shorter leaves a gap that
// nobody reads.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "ucg_coll/plan/levels/delegates.hpp"
#include "ucg_coll/plan/levels/rows.hpp"
#include "ucg_coll/plan/levels/two_level.hpp"
#include "ucg_coll/plan/messages/edges.hpp"

namespace ucg::plan {
namespace {

using graph::Builder;
using graph::EdgeRoom;
using graph::Slice;

/// The place of an edge's block in a message between two hosts. `block` is the block itself, if
/// this rank is an end of the edge and the block fits.
struct Room {
    EdgeRoom edge;
    std::uint64_t offset = 0;
    std::optional<Slice> block = {};
};

/// What goes from this host to another one, or comes from it.
struct HostMessage {
    std::uint32_t host = 0; ///< The other one.
    std::vector<Room> rooms;
    std::uint64_t bytes = 0;

    void add(const EdgeRoom& edge, std::optional<Slice> block) {
        rooms.push_back({edge, bytes, block});
        bytes += edge.bytes;
    }
};

/// Returns the rooms of one rank of this host, in order. `end` says which end of their edges the
/// rank is. Offsets are those in the whole message.
std::vector<Room> rooms_of(const HostMessage& message, Rank EdgeRoom::*end, Rank rank) {
    std::vector<Room> rooms;
    for (const Room& room : message.rooms) {
        if (room.edge.*end == rank) {
            rooms.push_back(room);
        }
    }
    return rooms;
}

/// Returns where these rooms lie in `message`.
std::vector<Slice> places_of(const std::vector<Room>& rooms, const Slice& message) {
    std::vector<Slice> places;
    for (const Room& room : rooms) {
        append_slice(places, part(message, room.offset, room.edge.bytes));
    }
    return places;
}

/// Returns the blocks if each fills its room, so that a message of these rooms has nothing else;
/// else nothing.
std::optional<std::vector<Slice>> blocks_that_fill(const std::vector<Room>& rooms) {
    std::vector<Slice> blocks;
    for (const Room& room : rooms) {
        if (!room.block || room.block->length != room.edge.bytes) {
            return std::nullopt;
        }
        append_slice(blocks, *room.block);
    }
    return blocks;
}

std::uint64_t bytes_of(const std::vector<Room>& rooms) {
    std::uint64_t bytes = 0;
    for (const Room& room : rooms) {
        bytes += room.edge.bytes;
    }
    return bytes;
}

/// One rank's part.
class Exchange {
  public:
    Exchange(Builder& builder, const Facts& facts, const graph::Request& request)
        : builder_(builder), facts_(facts), delegates_(facts, builder.rank()),
          messages_(builder, facts) {
        find_messages(request);
    }

    void run() {
        send_parts();
        messages_.send_all(sent_);
        receive_parts();
        messages_.receive_all(received_);
        receive_from_hosts();
        receive_dealt();
        send_to_hosts();
        copy_own_edges(builder_, sent_, received_); // While messages travel.
        deal_out();
        for (const Dealt& dealt : dealt_) {
            unpack_dealt(dealt);
        }
        messages_.unpack_received();
    }

  private:
    /// What a delegate deals out to this rank: where it is received, and its rooms, one after the
    /// other.
    struct Dealt {
        Slice landing;
        std::vector<Room> rooms;
    };
    /// A message between hosts whose delegate here is this rank, and the buffer for it.
    struct Led {
        const HostMessage* message;
        Slice buffer;
    };

    Rank rank() const { return builder_.rank(); }
    Rank delegate_here(const HostMessage& message) const {
        return delegates_.rank(delegates_.host(), message.host);
    }
    bool leads(const HostMessage& message) const { return delegate_here(message) == rank(); }
    Rank delegate_there(const HostMessage& message) const {
        return delegates_.rank(message.host, delegates_.host());
    }

    /// Divides blocks into those that fit their rooms and those that go directly. Messages between
    /// hosts are ordered by distance, up for what leaves and down for what comes, so that hosts do
    /// not all begin with the same one.
    void find_messages(const graph::Request& request) {
        EdgeBlocks sent(by_peer(request.send.peers, sent_blocks(builder_, request.send)));
        EdgeBlocks received(
            by_peer(request.receive.peers, received_blocks(builder_, request.receive)));
        const auto block_at = [&](EdgeBlocks& blocks, Rank here, Rank there, std::uint64_t room) {
            return here == rank() ? blocks.take(there, room) : std::nullopt;
        };
        for (const EdgeRoom& edge : request.rooms) {
            const std::uint32_t from = facts_.placement.host(edge.from);
            const std::uint32_t to = facts_.placement.host(edge.to);
            if (from == to) {
                continue;
            }
            if (from == delegates_.host()) {
                HostMessage& message = leaving_[delegates_.distance(from, to)];
                message.host = to;
                message.add(edge, block_at(sent, edge.from, edge.to, edge.bytes));
            } else if (to == delegates_.host()) {
                HostMessage& message = coming_[delegates_.distance(from, to)];
                message.host = from;
                message.add(edge, block_at(received, edge.to, edge.from, edge.bytes));
            }
        }
        sent_ = sent.rest();
        received_ = received.rest();
    }

    /// Sends this rank's blocks to the delegate for each host, or copies them to their places in
    /// the message if this rank is the delegate.
    void send_parts() {
        for (const auto& [distance, message] : leaving_) {
            const std::vector<Room> mine = rooms_of(message, &EdgeRoom::from, rank());
            if (leads(message)) {
                const Slice buffer = builder_.scratch(message.bytes);
                copy_blocks(mine, buffer);
                led_.push_back({&message, buffer});
            } else {
                builder_.send(delegate_here(message), part_of(mine));
            }
        }
    }

    void copy_blocks(const std::vector<Room>& rooms, const Slice& message) {
        for (const Room& room : rooms) {
            if (room.block) {
                builder_.copy(*room.block, part(message, room.offset, room.block->length));
            }
        }
    }

    /// Returns one slice that has these rooms one after the other, with their blocks.
    Slice part_of(const std::vector<Room>& rooms) {
        if (const auto blocks = blocks_that_fill(rooms)) {
            return packed(builder_, *blocks);
        }
        const Slice target = builder_.scratch(bytes_of(rooms));
        std::uint64_t offset = 0;
        for (const Room& room : rooms) {
            if (room.block) {
                builder_.copy(*room.block, part(target, offset, room.block->length));
            }
            offset += room.edge.bytes;
        }
        return target;
    }

    /// Receives the other ranks' parts of the messages that this delegate sends. Rooms of one
    /// sender follow one another in a message.
    void receive_parts() {
        for (const Led& led : led_) {
            for (const Rank other : delegates_.ranks()) {
                const std::vector<Room> theirs = rooms_of(*led.message, &EdgeRoom::from, other);
                if (other != rank() && !theirs.empty()) {
                    builder_.recv(other, part(led.buffer, theirs.front().offset, bytes_of(theirs)));
                }
            }
        }
    }

    void send_to_hosts() {
        for (const Led& led : led_) {
            builder_.send(delegate_there(*led.message), led.buffer);
        }
    }

    void receive_from_hosts() {
        for (const auto& [distance, message] : coming_) {
            if (leads(message)) {
                const Slice buffer = builder_.scratch(message.bytes);
                builder_.recv(delegate_there(message), buffer);
                arrived_.push_back({&message, buffer});
            }
        }
    }

    /// Receives what delegates deal out to this rank. Blocks that fill their rooms and lie in one
    /// piece are received in their place.
    void receive_dealt() {
        for (const auto& [distance, message] : coming_) {
            if (!leads(message)) {
                std::vector<Room> mine = rooms_of(message, &EdgeRoom::to, rank());
                const auto blocks = blocks_that_fill(mine);
                const bool in_place = blocks && blocks->size() == 1;
                const Slice landing = in_place ? blocks->front() : builder_.scratch(bytes_of(mine));
                builder_.recv(delegate_here(message), landing);
                if (!in_place) {
                    dealt_.push_back({landing, std::move(mine)});
                }
            }
        }
    }

    void deal_out() {
        for (const Led& arrived : arrived_) {
            for (const Rank other : delegates_.ranks()) {
                const std::vector<Room> theirs = rooms_of(*arrived.message, &EdgeRoom::to, other);
                if (other != rank()) {
                    builder_.send(other, packed(builder_, places_of(theirs, arrived.buffer)));
                }
            }
            for (const Room& room : rooms_of(*arrived.message, &EdgeRoom::to, rank())) {
                if (room.block) {
                    builder_.copy(part(arrived.buffer, room.offset, room.block->length),
                                  *room.block);
                }
            }
        }
    }

    void unpack_dealt(const Dealt& dealt) {
        std::uint64_t offset = 0;
        for (const Room& room : dealt.rooms) {
            if (room.block) {
                builder_.copy(part(dealt.landing, offset, room.block->length), *room.block);
            }
            offset += room.edge.bytes;
        }
    }

    Builder& builder_;
    const Facts& facts_;
    Delegates delegates_;
    EdgeMessages messages_;
    std::map<std::uint32_t, HostMessage> leaving_; ///< By distance.
    std::map<std::uint32_t, HostMessage> coming_;  ///< By distance.
    std::vector<PeerBlocks> sent_;                 ///< Blocks that go directly.
    std::vector<PeerBlocks> received_;             ///< Blocks that come directly.
    std::vector<Led> led_;                         ///< Those of leaving_.
    std::vector<Led> arrived_;                     ///< Those of coming_.
    std::vector<Dealt> dealt_;
};

/// Returns the price as if all hosts were alike.
double cost_ns(const Facts& facts, const graph::Request& request) {
    const graph::Crossing& crossing = request.crossing;
    const auto hosts = static_cast<std::uint64_t>(facts.placement.host_count());
    const auto ranks = static_cast<std::uint64_t>(facts.placement.ranks_per_host_max());
    const std::uint64_t peers = divide_up(crossing.host_pairs, hosts);
    // The delegates of the host with fewest ranks serve the most hosts.
    const std::uint64_t hosts_each =
        divide_up(peers, static_cast<std::uint64_t>(facts.placement.ranks_per_host_min()));
    const std::uint64_t message = divide_up(crossing.bytes, crossing.host_pairs);
    const std::uint64_t part_bytes = divide_up(message, ranks);
    const Swap swap = {.ranks = facts.placement.ranks_per_host_max(),
                       .hosts = static_cast<Rank>(peers),
                       .hosts_each = static_cast<Rank>(hosts_each),
                       .message_bytes = message};
    const auto parts = static_cast<Rank>(std::max(peers, hosts_each * (ranks - 1)));
    return host_link(facts).message_ns(0) + delegates_swap_ns(facts, swap) +
           2 * on_host_exchange_ns(facts, parts + 1, part_bytes, peers * part_bytes);
}

graph::Schedule build(const Facts& facts, const graph::Request& request, Rank rank) {
    Builder builder(request, rank, kNeighborAlltoallvTwoLevel.name);
    Exchange(builder, facts, request).run();
    return builder.finish();
}

constexpr Need kAgreedRooms = {
    "edges between hosts that ranks have agreed on",
    [](const Facts&, const graph::Request& request) { return request.crossing.host_pairs > 0; }};
constexpr std::array kNeeds = {kSeveralHosts, kSharedHost, kAgreedRooms};

} // namespace

const Algorithm kNeighborAlltoallvTwoLevel = {
    .name = "two_level",
    .collective = graph::Collective::neighbor_alltoallv,
    .summary = "one message for each pair of hosts, by delegates that collect and deal out",
    .cost_ns = cost_ns,
    .build = build,
    .needs = kNeeds,
};

} // namespace ucg::plan
