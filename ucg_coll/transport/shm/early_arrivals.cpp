#include "ucg_coll/transport/shm/early_arrivals.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "ucg_coll/transport/shm/message_queue.hpp"

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

EarlyArrival* EarlyArrivals::add(std::uint64_t tag, std::uint64_t bytes, std::uint64_t room) {
    UCG_ASSERT(!coming());
    auto arrival = spare_->take(room);
    if (arrival == nullptr) {
        return nullptr;
    }
    arrival->tag = tag;
    arrival->message.bytes = bytes;
    return arrivals_.emplace_back(std::move(arrival)).get();
}

Message* EarlyArrivals::begin(std::uint64_t tag, std::uint64_t bytes) {
    EarlyArrival* const arrival = add(tag, bytes, bytes);
    if (arrival == nullptr) {
        return nullptr;
    }
    arrival->message.data = arrival->data.get();
    arrival->message.state = MessageState::posted;
    return &arrival->message;
}

bool EarlyArrivals::remember(shm::RingReceiver& ring) {
    EarlyArrival* const arrival = add(ring.tag(), ring.message_bytes(), 0);
    if (arrival == nullptr) {
        return false;
    }
    arrival->elsewhere = *ring.elsewhere();
    arrival->later = ring.remember();
    return true;
}

EarlyArrival* EarlyArrivals::find(std::uint64_t tag) {
    const auto found = std::find_if(arrivals_.begin(), arrivals_.end(),
                                    [tag](const auto& each) { return each->tag == tag; });
    return found == arrivals_.end() ? nullptr : found->get();
}

bool EarlyArrivals::contradicts(std::uint64_t tag) const {
    return std::any_of(arrivals_.begin(), arrivals_.end(),
                       [tag](const auto& each) { return contradict(each->tag, tag); });
}

void EarlyArrivals::erase(const EarlyArrival& arrival) {
    const auto place =
        std::find_if(arrivals_.begin(), arrivals_.end(),
                     [&arrival](const auto& each) { return each.get() == &arrival; });
    UCG_ASSERT(place != arrivals_.end());
    spare_->give_back(std::move(*place));
    arrivals_.erase(place);
}

} // namespace ucg::transport
