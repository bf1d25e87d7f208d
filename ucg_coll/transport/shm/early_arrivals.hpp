// Messages that came before anybody asked for them, and the memory that such messages leave for
// later ones: algorithms of several rounds have them in each call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shm/ring.hpp"
#include "ucg_coll/transport/transport.hpp"

namespace ucg::transport {

/// `message` is the transport's own. Its data is `data`, or, where its sender had only announced
/// it, still the sender's.
struct EarlyArrival {
    Message message;
    std::uint64_t tag = 0;
    std::unique_ptr<std::byte[]> data;
    std::uint64_t room = 0; ///< Bytes of `data`.
    shm::RemoteBytes elsewhere = {};
    shm::ReadLater later; ///< By which `elsewhere` is remembered; none: the data is here.
};

/// Of one transport, for all its peers. Threads: one at a time.
class SpareArrivals {
  public:
    /// One with room for so many bytes; null if there is no memory for them. Allocates, where none
    /// is kept that has the room.
    std::unique_ptr<EarlyArrival> take(std::uint64_t bytes);
    /// Keeps it for later; its data only while all that is kept has few bytes.
    void give_back(std::unique_ptr<EarlyArrival> arrival);

    std::uint64_t bytes() const { return bytes_; }

  private:
    std::vector<std::unique_ptr<EarlyArrival>> kept_;
    std::uint64_t bytes_ = 0; ///< Of their data.
};

} // namespace ucg::transport
