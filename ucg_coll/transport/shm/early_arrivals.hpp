// Messages that came before anybody asked for them, and the memory that such messages leave for
// later ones: algorithms of several rounds have them in each call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shm/ring.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// A message that came before its receive was posted. Its bytes lie in `data` or, if only its RTS
/// came, are still its sender's.
struct EarlyArrival {
    Message message; ///< The transport's own.
    std::uint64_t tag = 0;
    std::unique_ptr<std::byte[]> data;
    std::uint64_t room = 0;          ///< Bytes of `data`.
    shm::RemoteBytes elsewhere = {}; ///< Where the bytes lie at the sender, if only the RTS came.
    shm::ReadLater later;            ///< By which the ring remembers it then; else none.
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

} // namespace ucg::transport
