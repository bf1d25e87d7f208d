// Blocks along the edges of a neighbourhood, as messages between two ranks. Both ranks of a pair
// know how many blocks go between them, in which order, and how long each is.
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

/// Groups the blocks by peer, in the order in which `peers` names them first. `blocks[i]` has
/// peers[i] at its other end.
std::vector<PeerBlocks> by_peer(std::span<const Rank> peers, std::span<const graph::Slice> blocks);

/// Return all blocks of a request that this rank sends, or that it receives.
std::vector<graph::Slice> sent_blocks(const graph::Builder& builder, const graph::Blocks& sent);
std::vector<graph::Slice> received_blocks(const graph::Builder& builder,
                                          const graph::Blocks& received);

/// The messages of this rank to and from its peers. Blocks that cost less to copy than a message
/// costs its receiver travel together, in one message for each peer, before the others, each of
/// which has a message of its own.
class EdgeMessages {
  public:
    /// `builder` and `facts` must outlive this.
    EdgeMessages(graph::Builder& builder, const Facts& facts) : builder_(builder), facts_(facts) {}

    /// Appends the sends to each peer but this rank itself.
    void send_all(std::span<const PeerBlocks> sent);
    /// Appends the receives from each peer but this rank itself.
    void receive_all(std::span<const PeerBlocks> received);
    /// Copies the blocks that came together to their places. To be called after everything that
    /// need not wait for them.
    void unpack_received();

  private:
    /// Where a message of several blocks is received, and the places of its blocks.
    struct Landed {
        graph::Slice source;
        std::vector<graph::Slice> targets;
    };
    /// A peer's blocks: those that travel together, and those with messages of their own.
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

/// The blocks that this rank sends, or those that it receives, some of which travel by another way
/// than EdgeMessages.
class EdgeBlocks {
  public:
    explicit EdgeBlocks(std::vector<PeerBlocks> blocks);

    /// Takes and returns the next block of `peer` if there is one no longer than `room`. A longer
    /// block is skipped, and is part of rest().
    std::optional<graph::Slice> take(Rank peer, std::uint64_t room);
    /// Returns the blocks that were not taken, in their order.
    std::vector<PeerBlocks> rest() const;

  private:
    struct Peer {
        std::size_t place = 0; ///< Its index in blocks_ and taken_.
        std::size_t next = 0;  ///< Index of its block that take() looks at next.
    };
    std::vector<PeerBlocks> blocks_;
    std::vector<std::vector<bool>> taken_;
    std::unordered_map<Rank, Peer> peers_;
};

/// Copies the blocks that this rank sends to itself to their places.
void copy_own_edges(graph::Builder& builder, std::span<const PeerBlocks> sent,
                    std::span<const PeerBlocks> received);

} // namespace ucg::plan
