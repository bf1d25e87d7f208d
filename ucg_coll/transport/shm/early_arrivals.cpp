#include "ucg_coll/transport/shm/early_arrivals.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace ucg::transport {
namespace {

/// So many are kept at most: as many as collectives of a group are outstanding.
constexpr std::size_t kCountMax = 64;
constexpr std::uint64_t kBytesMax = 256 << 10; ///< And so many bytes of their data.

} // namespace

/// Takes the smallest that has the room, else the smallest of all, which gets the room.
std::unique_ptr<EarlyArrival> SpareArrivals::take(std::uint64_t bytes) {
    const auto found =
        std::min_element(kept_.begin(), kept_.end(), [bytes](const auto& a, const auto& b) {
            return std::pair(a->room < bytes, a->room) < std::pair(b->room < bytes, b->room);
        });
    std::unique_ptr<EarlyArrival> arrival;
    if (found == kept_.end()) {
        arrival.reset(new (std::nothrow) EarlyArrival());
    } else {
        arrival = std::move(*found);
        bytes_ -= arrival->room;
        kept_.erase(found);
    }
    if (arrival == nullptr) {
        return nullptr;
    }
    if (arrival->room < bytes) {
        arrival->data.reset(new (std::nothrow) std::byte[bytes]);
        arrival->room = arrival->data == nullptr ? 0 : bytes;
    }
    return arrival->room < bytes ? nullptr : std::move(arrival);
}

void SpareArrivals::give_back(std::unique_ptr<EarlyArrival> arrival) {
    if (kept_.size() == kCountMax) {
        return;
    }
    *arrival = {.message = {},
                .tag = 0,
                .data = std::move(arrival->data),
                .room = arrival->room,
                .elsewhere = {},
                .later = {}};
    if (bytes_ + arrival->room > kBytesMax) {
        arrival->data.reset();
        arrival->room = 0;
    }
    bytes_ += arrival->room;
    kept_.push_back(std::move(arrival));
}

} // namespace ucg::transport
