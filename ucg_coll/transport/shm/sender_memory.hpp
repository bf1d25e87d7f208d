// The memory of a peer, from which an inbox copies messages that have stayed there.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "shm/cooperative_copy.hpp"
#include "shm/flag_slot.hpp"
#include "shm/peer_copy.hpp"
#include "shm/pull_speed.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// A sender's memory, as far as it can be read. What once could not be read is never tried again.
class SenderMemory {
  public:
    SenderMemory() = default;
    /// `lost`: the group's word for shm::lost_meanwhile().
    /// `slow`: from which time on the kernel's copies are slow.
    SenderMemory(const shm::PeerReach& sender, const shm::SlowPull& slow,
                 const std::atomic<std::uint64_t>& lost)
        : sender_(sender), lost_(&lost), speed_(slow) {}

    const shm::PeerReach& reach() const { return sender_; }

    /// Returns whether a message that lies there can be read: if it lies in the sender's segment,
    /// or if nothing has kept this end from reading the sender's private memory.
    bool readable(const shm::RemoteBytes& data) const {
        return data.place != 0 || (!given_up_ && sender_.reads());
    }
    /// From now on no private memory is readable().
    void give_up_private() { given_up_ = true; }
    bool given_up_private() const { return given_up_; }

    /// Returns the rest of a message that lies at `data` where it is mapped here, if it lies in the
    /// sender's segment; else nothing.
    std::span<const std::byte> mapped(const shm::RemoteBytes& data, const Message& message) const;

    /// Copies a piece of the message. Fails with Code::unsupported if the kernel refuses the copy,
    /// or does not copy what lies there; then no private memory is readable() any more.
    Code fetch(Message& message, const shm::RemoteBytes& data, const shm::Piece& piece);
    /// Returns whether the kernel's copies are slow, as far as those have told that were made.
    bool slow() const { return speed_.slow(); }

    /// Returns whether what was read there is what the sender has sent. To be called after a
    /// message was read and before it is done.
    bool still_sent();
    /// Returns whether still_sent() has returned false: the group was found lost.
    bool outdated() const { return outdated_; }

    /// To be called after each look in vain for what the sender should have written. Returns
    /// whether its process has ended, which it asks now and then.
    bool is_gone();

  private:
    shm::PeerReach sender_;
    const std::atomic<std::uint64_t>* lost_ = nullptr;
    shm::PullSpeed speed_;
    unsigned looks_ = 0; ///< In vain.
    bool given_up_ = false;
    bool outdated_ = false;
};

} // namespace ucg::transport
