#include "ucg_coll/transport/ucx/peers.hpp"

#include "ucg_coll/transport/ucx/exhaustion.hpp"

namespace ucg::transport::ucx {

Status closed_by_peer() {
    return Status(Code::io_error, "the peer process has closed its connections");
}

Peer* PeerProcesses::find(std::uint64_t process) const {
    const auto found = by_process_.find(process);
    return found == by_process_.end() ? nullptr : found->second.get();
}

Peer* PeerProcesses::find_introduced(std::uint64_t process) const {
    Peer* const peer = find(process);
    return peer != nullptr && peer->introduced ? peer : nullptr;
}

Peer& PeerProcesses::intern(ProcessAddress address) {
    auto found = by_process_.find(address.process);
    if (found == by_process_.end()) {
        auto made = std::make_unique<Peer>();
        if (departed_.contains(address.process)) {
            made->connected = true;
            made->left = true;
            made->failure = closed_by_peer();
        }
        found = by_process_.emplace(address.process, std::move(made)).first;
    }
    Peer& peer = *found->second;
    if (!peer.introduced) {
        peer.address = std::move(address);
    }
    return peer;
}

Peer& PeerProcesses::introduce(ProcessAddress address) {
    Peer& peer = intern(std::move(address));
    peer.introduced = true;
    return peer;
}

void PeerProcesses::note_departed(const Peer& peer) {
    have_departed_ = have_departed_ || (peer.left && peer.endpoint == nullptr);
}

bool PeerProcesses::remember(const Peer& peer) {
    return suffices([&] { departed_.insert(peer.address.process); });
}

void PeerProcesses::erase(const Peer& peer) {
    const std::uint64_t process = peer.address.process; // The peer's own goes with it.
    by_process_.erase(process);
}

} // namespace ucg::transport::ucx
