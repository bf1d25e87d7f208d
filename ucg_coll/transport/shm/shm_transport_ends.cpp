// The part of ShmTransport that is about peers whose processes have ended while this rank waits for
// them.
#include <utility>

#include "ucg_coll/transport/shm/shm_transport.hpp"

namespace ucg::transport {

/// Returns the process of that rank, as has_ended() takes it.
shm::PeerReach ShmTransport::process_of(const Site& site) {
    const RegionHead& head = site.head();
    return {nullptr, head.ticket, access_to(head.ticket), head.process};
}

/// Returns whether the peer's process has ended, as far as this process can tell.
bool ShmTransport::gone(std::uint32_t peer_index) {
    return shm::has_ended(process_of(sites_[peer_index]));
}

/// Returns whether it is time to ask if the peer exists for whose share, or for room at which, this
/// rank waits under that sequence number.
bool ShmTransport::waits_long(const FlagSlotSequence& sequence) {
    if (sequence.sequence > vain_sequence_) { // Earlier waits have come to an end.
        vain_sequence_ = sequence.sequence;
        vain_shares_.end();
    }
    return vain_shares_.is_long();
}

/// Called where nothing has moved. If that has lasted long, asks whether the peers exist whose
/// messages or FINs this rank awaits. What a peer did before it ended may have come since the last
/// look, so there is one more look before this rank fails. Returns whether it has failed.
bool ShmTransport::look_for_dead() {
    if (sending_.size() + receiving_.size() == 0) {
        vain_messages_.end();
        return false;
    }
    if (!seen_dead_ && !vain_messages_.is_long()) {
        return false;
    }
    const bool again = std::exchange(seen_dead_, false);
    for (const ActiveSet* awaited : {&sending_, &receiving_}) {
        for (std::size_t i = 0; i < awaited->size() && !seen_dead_; ++i) {
            const std::uint32_t index = (*awaited)[i];
            seen_dead_ = gone(index);
            if (seen_dead_ && again) {
                fail_without(index);
                return true;
            }
        }
    }
    return false;
}

/// Fails since the process of that peer has ended.
void ShmTransport::fail_without(std::uint32_t peer_index) {
    status_ = failure(Code::io_error,
                      "shared memory: process {} has ended, rank {}, for which rank {} waits",
                      sites_[peer_index].head().process.process, ranks_[peer_index], ranks_[self_]);
    log(LogLevel::error, "{}", status_.message());
    flag_slots_->lose(shm::Loss::process);
    fail_all();
}

} // namespace ucg::transport
