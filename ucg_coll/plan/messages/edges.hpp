// Blocks along the edges of a neighbourhood, as messages between two ranks. What lies between two
// ranks, both know alike: how many blocks, in which order, and how long each is.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ucg_coll/plan/parts/block_map.hpp"
#include "ucg_coll/plan/parts/cost.hpp"

namespace ucg::plan {

/// This rank's blocks on one side that have the same rank at their other end, in its order of
/// edges.
struct PeerBlocks {
    Rank peer = kNoRank;
    std::vector<graph::Slice> blocks;
};

/// By peer, in the order in which `peers` name them first; `blocks[i]` has peers[i].
std::vector<PeerBlocks> by_peer(std::span<const Rank> peers, std::span<const graph::Slice> blocks);

/// All blocks of a request that this rank sends, and receives.
std::vector<graph::Slice> sent_blocks(const graph::Builder& builder, const graph::Blocks& sent);
std::vector<graph::Slice> received_blocks(const graph::Builder& builder,
                                          const graph::Blocks& received);

/// The messages of this rank to and from its peers. A block that costs less
/// to copy than a message does goes in one message with all such blocks of its two ranks, before
/// the others, each of which has its own.
class EdgeMessages {
  public:
    /// `facts` must outlive it.
    EdgeMessages(graph::Builder& builder, const Facts& facts) : builder_(builder), facts_(facts) {}

    /// Of each peer but this rank itself.
    void send_all(std::span<const PeerBlocks> sent);
    void receive_all(std::span<const PeerBlocks> received);
    /// Copies to their places what came together. To follow all that need not wait for it.
    void unpack_received();

  private:
    struct Landed {
        graph::Slice source;
        std::vector<graph::Slice> targets;
    };
    /// What goes together, and then what goes alone.
    struct Parts {
        std::vector<graph::Slice> together;
        std::vector<graph::Slice> alone;
    };
    Parts parts(const PeerBlocks& blocks) const;
    void send(const PeerBlocks& blocks);
    void receive(const PeerBlocks& blocks);

    graph::Builder& builder_;
    const Facts& facts_;
    std::vector<Landed> landed_;
};

/// The blocks of one side, of which some go another way than by messages of their own.
class EdgeBlocks {
  public:
    explicit EdgeBlocks(std::vector<PeerBlocks> blocks);

    /// Takes the next block of `peer` if it is there and no longer than `room`; passes it over if
    /// it is longer.
    std::optional<graph::Slice> take(Rank peer, std::uint64_t room);
    /// Those that were not taken, in their order.
    std::vector<PeerBlocks> rest() const;

  private:
    struct Peer {
        std::size_t place = 0; ///< In blocks_.
        std::size_t next = 0;  ///< Of its blocks.
    };
    std::vector<PeerBlocks> blocks_;
    std::vector<std::vector<bool>> taken_;
    std::unordered_map<Rank, Peer> peers_;
};

/// The blocks that this rank sends to itself, to their places.
void copy_own_edges(graph::Builder& builder, std::span<const PeerBlocks> sent,
                    std::span<const PeerBlocks> received);

} // namespace ucg::plan
