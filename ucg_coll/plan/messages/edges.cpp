#include "ucg_coll/plan/messages/edges.hpp"

namespace ucg::plan {

using graph::Slice;

std::vector<PeerBlocks> by_peer(std::span<const Rank> peers, std::span<const Slice> blocks) {
    std::unordered_map<Rank, std::size_t> places;
    std::vector<PeerBlocks> grouped;
    for (std::size_t i = 0; i < peers.size(); ++i) {
        const auto [place, is_new] = places.emplace(peers[i], grouped.size());
        if (is_new) {
            grouped.push_back({peers[i], {}});
        }
        grouped[place->second].blocks.push_back(blocks[i]);
    }
    return grouped;
}

std::vector<Slice> sent_blocks(const graph::Builder& builder, const graph::Blocks& sent) {
    std::vector<Slice> blocks;
    for (std::size_t i = 0; i < sent.bytes.size(); ++i) {
        blocks.push_back(builder.input(sent.offsets[i], sent.bytes[i]));
    }
    return blocks;
}

std::vector<Slice> received_blocks(const graph::Builder& builder, const graph::Blocks& received) {
    std::vector<Slice> blocks;
    for (std::size_t i = 0; i < received.bytes.size(); ++i) {
        blocks.push_back(builder.output(received.offsets[i], received.bytes[i]));
    }
    return blocks;
}

EdgeBlocks::EdgeBlocks(std::vector<PeerBlocks> blocks) : blocks_(std::move(blocks)) {
    for (const PeerBlocks& of_peer : blocks_) {
        peers_.emplace(of_peer.peer, Peer{taken_.size(), 0});
        taken_.emplace_back(of_peer.blocks.size(), false);
    }
}

std::optional<Slice> EdgeBlocks::take(Rank peer, std::uint64_t room) {
    const auto found = peers_.find(peer);
    if (found == peers_.end()) {
        return std::nullopt;
    }
    Peer& at = found->second;
    const std::vector<Slice>& blocks = blocks_[at.place].blocks;
    if (at.next == blocks.size()) {
        return std::nullopt;
    }
    const std::size_t k = at.next++;
    if (blocks[k].length > room) {
        return std::nullopt;
    }
    taken_[at.place][k] = true;
    return blocks[k];
}

std::vector<PeerBlocks> EdgeBlocks::rest() const {
    std::vector<PeerBlocks> left;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        PeerBlocks of_peer{blocks_[i].peer, {}};
        for (std::size_t k = 0; k < blocks_[i].blocks.size(); ++k) {
            if (!taken_[i][k]) {
                of_peer.blocks.push_back(blocks_[i].blocks[k]);
            }
        }
        left.push_back(std::move(of_peer));
    }
    return left;
}

/// Both ends divide blocks alike, since only the blocks' lengths and the distance of the two ranks
/// count.
EdgeMessages::Parts EdgeMessages::parts(const PeerBlocks& blocks) const {
    const bool on_host = facts_.placement.same_host(builder_.rank(), blocks.peer);
    const Link link = on_host ? host_link(facts_) : leader_link(facts_);
    Parts parts;
    for (const Slice& block : blocks.blocks) {
        const bool is_short = link.copy_ns(block.length) < link.take_overhead_ns();
        (is_short ? parts.together : parts.alone).push_back(block);
    }
    return parts;
}

namespace {

std::vector<Slice> in_runs(std::span<const Slice> blocks) {
    std::vector<Slice> runs;
    for (const Slice& block : blocks) {
        append_slice(runs, block);
    }
    return runs;
}

} // namespace

void EdgeMessages::send(const PeerBlocks& blocks) {
    const Parts apart = parts(blocks);
    builder_.send(blocks.peer, packed(builder_, in_runs(apart.together)));
    for (const Slice& block : apart.alone) {
        builder_.send(blocks.peer, block);
    }
}

void EdgeMessages::receive(const PeerBlocks& blocks) {
    Parts apart = parts(blocks);
    std::vector<Slice> targets = in_runs(apart.together);
    const Slice landing = landing_place(builder_, targets);
    builder_.recv(blocks.peer, landing);
    landed_.push_back({landing, std::move(targets)});
    for (const Slice& block : apart.alone) {
        builder_.recv(blocks.peer, block);
    }
}

void EdgeMessages::send_all(std::span<const PeerBlocks> sent) {
    for (const PeerBlocks& blocks : sent) {
        if (blocks.peer != builder_.rank()) {
            send(blocks);
        }
    }
}

void EdgeMessages::receive_all(std::span<const PeerBlocks> received) {
    for (const PeerBlocks& blocks : received) {
        if (blocks.peer != builder_.rank()) {
            receive(blocks);
        }
    }
}

void EdgeMessages::unpack_received() {
    for (const Landed& landed : landed_) {
        unpack(builder_, landed.source, landed.targets);
    }
    landed_.clear();
}

namespace {

std::span<const Slice> blocks_with(std::span<const PeerBlocks> all, Rank peer) {
    for (const PeerBlocks& blocks : all) {
        if (blocks.peer == peer) {
            return blocks.blocks;
        }
    }
    return {};
}

} // namespace

void copy_own_edges(graph::Builder& builder, std::span<const PeerBlocks> sent,
                    std::span<const PeerBlocks> received) {
    const std::span<const Slice> sources = blocks_with(sent, builder.rank());
    const std::span<const Slice> targets = blocks_with(received, builder.rank());
    for (std::size_t k = 0; k < sources.size(); ++k) {
        builder.copy(sources[k], targets[k]);
    }
}

} // namespace ucg::plan
