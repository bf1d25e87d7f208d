// Messages that came before anybody asked for them, and the memory that such messages leave for
// later ones: algorithms of several rounds have them in each call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shm/ring.hpp"
#include "ucg_coll/base/base.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// A message that came before its receive was posted. Its bytes lie in `data`, or are still coming
/// there; if only its RTS came, they are still its sender's.
struct EarlyArrival {
    Message message; ///< The transport's own.
    std::uint64_t tag = 0;
    std::unique_ptr<std::byte[]> data;
    std::uint64_t room = 0;          ///< Bytes of `data`.
    shm::RemoteBytes elsewhere = {}; ///< Where the bytes lie at the sender, if only the RTS came.
    shm::ReadLater later;            ///< By which the ring remembers it then; else none.

    bool remembered() const { return later.sequence != 0; }
    bool coming() const { return !remembered() && message.state == MessageState::posted; }
};

/// Early arrivals that are over and are kept for later ones, of one transport, for all its peers.
/// Used by one thread at a time.
class SpareArrivals {
  public:
    /// Returns an early arrival with room for so many bytes; null if there is no memory for it.
    /// Allocates if none is kept that has the room.
    std::unique_ptr<EarlyArrival> take(std::uint64_t bytes);
    /// Keeps it for later; its data only as long as all that is kept has few bytes.
    void give_back(std::unique_ptr<EarlyArrival> arrival);

    std::uint64_t bytes() const { return bytes_; }

  private:
    std::vector<std::unique_ptr<EarlyArrival>> kept_;
    std::uint64_t bytes_ = 0; ///< Of the data of all that is kept.
};

/// The early arrivals of one peer, in the order in which they came. At most one is coming(), the
/// newest: a ring carries one message at a time.
class EarlyArrivals {
  public:
    EarlyArrivals() = default;
    /// `spare` must outlive this.
    explicit EarlyArrivals(SpareArrivals& spare) : spare_(&spare) {}

    bool empty() const { return arrivals_.empty(); }
    std::size_t size() const { return arrivals_.size(); }
    /// Returns whether bytes of the newest are still to come.
    bool coming() const { return !empty() && arrivals_.back()->coming(); }

    /// Adds a message whose bytes come from now on, and returns it with memory for them; null if
    /// there is none. REQUIRES: !coming().
    Message* begin(std::uint64_t tag, std::uint64_t bytes);
    /// Adds the message whose RTS is at the ring's head, which the ring remembers from now on.
    /// Returns false if there is no memory. REQUIRES: !coming().
    bool remember(shm::RingReceiver& ring);

    /// Returns the oldest message of that tag; null if there is none.
    EarlyArrival* find(std::uint64_t tag);
    /// Returns whether one of the messages contradict()s the tag.
    bool contradicts(std::uint64_t tag) const;

    /// Removes one that find() has returned.
    void erase(const EarlyArrival& arrival);
    /// Removes the one of which bytes are still to come. REQUIRES: coming().
    void erase_coming() { erase(*arrivals_.back()); }
    /// Removes those that are remembered and whose bytes are in the sender's private memory; calls
    /// `removed(arrival)` before.
    template <typename Removed>
    void erase_private(Removed removed) {
        for (std::size_t i = 0; i < arrivals_.size();) {
            const EarlyArrival& arrival = *arrivals_[i];
            if (arrival.remembered() && arrival.elsewhere.place == 0) {
                removed(arrival);
                erase(arrival);
            } else {
                ++i;
            }
        }
    }

  private:
    EarlyArrival* add(std::uint64_t tag, std::uint64_t bytes, std::uint64_t room);

    SpareArrivals* spare_ = nullptr;
    std::vector<std::unique_ptr<EarlyArrival>> arrivals_;
};

} // namespace ucg::transport
