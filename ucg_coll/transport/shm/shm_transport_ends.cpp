// The part of ShmTransport that is about peers whose processes have ended while this rank waits for
// them.
#include <utility>

#include "ucg_coll/transport/shm/shm_transport.hpp"

namespace ucg::transport {

/// As far as this process can tell.
bool ShmTransport::gone(std::uint32_t peer_index) {
    const RegionHead& head = sites_[peer_index].head();
    return shm::has_ended({nullptr, head.ticket, access_to(head.ticket), head.process});
}

/// Is it time to ask whether the peer exists that a turn waits for?
bool ShmTransport::waits_long(const FlagSlotTurn& turn) {
    if (turn.turn > vain_turn_) { // Others have come to an end.
        vain_turn_ = turn.turn;
        vain_shares_.end();
    }
    return vain_shares_.is_long();
}

/// Where nothing has moved for long: do those exist whose messages, or receipts, this rank awaits?
/// What one did before it ended may have come since the last look, so that there is one more before
/// this rank fails; true then.
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

/// The process of that peer has ended.
void ShmTransport::fail_without(std::uint32_t peer_index) {
    status_ = failure(Code::io_error,
                      "shared memory: process {} has ended, rank {}, for which rank {} waits",
                      sites_[peer_index].head().process.process, ranks_[peer_index], ranks_[self_]);
    log(LogLevel::error, "{}", status_.message());
    flag_slots_->lose(shm::Loss::process);
    fail_all();
}

} // namespace ucg::transport
