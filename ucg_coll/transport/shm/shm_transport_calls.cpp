// What the ranks of a host tell one another of the collectives that they have started.
#include "ucg_coll/transport/shm/shm_transport.hpp"

namespace ucg::transport {

std::vector<ShmTransport::PeerCalls> ShmTransport::calls_of_peers() const {
    std::vector<PeerCalls> peers;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
        if (i != self_) {
            // What a peer did before it told does not matter here.
            const auto word = sites_[i].call_count().latest.load(std::memory_order_relaxed);
            peers.push_back({ranks_[i], sites_[i].head().process.process, CallsSoFar::from(word)});
        }
    }
    return peers;
}

bool ShmTransport::is_first_to_report(const CallsSoFar& call, bool beyond) const {
    CallCount& count = sites_.front().call_count();
    const auto is_first = [&](std::atomic<std::uint64_t>& reported) {
        return reported.exchange(call.word(), std::memory_order_relaxed) != call.word();
    };
    const bool first = is_first(count.reported);
    return (beyond && is_first(count.reported_beyond)) || first;
}

} // namespace ucg::transport
