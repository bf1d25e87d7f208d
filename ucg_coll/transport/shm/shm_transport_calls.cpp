// What the ranks of a host tell one another of the collectives that they have started.
#include "ucg_coll/transport/shm/shm_transport.hpp"

namespace ucg::transport {
namespace {

/// Stores `call` as the one that was reported last, unless that, or a later one, was reported
/// before. Ranks may stall in several collectives, and ask by turns. Relaxed: the word stands for
/// nothing else.
bool advance_to(std::atomic<std::uint64_t>& reported, const CallsSoFar& call) {
    std::uint64_t word = reported.load(std::memory_order_relaxed);
    do {
        if (word != 0 && !call.is_after(CallsSoFar::from(word))) {
            return false;
        }
    } while (!reported.compare_exchange_weak(word, call.word(), std::memory_order_relaxed));
    return true;
}

} // namespace

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
    const bool first = advance_to(count.reported, call);
    return (beyond && advance_to(count.reported_beyond, call)) || first;
}

} // namespace ucg::transport
