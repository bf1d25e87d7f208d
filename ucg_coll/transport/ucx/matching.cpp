#include "ucg_coll/transport/ucx/matching.hpp"

#include <cstring>

namespace ucg::transport::ucx {

Early* EarlyPool::take() {
    if (Early* early = free_.pop()) {
        --free_count_;
        return early;
    }
    all_.push_back(std::make_unique<Early>());
    return all_.back().get();
}

Early* EarlyPool::hold(const Envelope& envelope, const void* data, std::size_t bytes) {
    Early* early = take();
    early->envelope = envelope;
    early->bytes = bytes;
    if (bytes > early->small.size()) {
        early->large.reset(new std::byte[bytes]);
    }
    if (bytes > 0) {
        std::memcpy(early->large ? early->large.get() : early->small.data(), data, bytes);
    }
    return early;
}

Early* EarlyPool::hold_rendezvous(const Envelope& envelope, void* rendezvous, std::size_t bytes) {
    Early* early = take();
    early->envelope = envelope;
    early->bytes = bytes;
    early->rendezvous = rendezvous;
    return early;
}

void EarlyPool::release(Early* early) {
    early->large.reset();
    early->rendezvous = nullptr;
    free_.push(*early);
    if (++free_count_ >= 2 * kKept) {
        shrink();
    }
}

/// Frees what is unused beyond kKept records. Allocates nothing.
void EarlyPool::shrink() {
    while (free_count_ > kKept) {
        free_.pop()->rendezvous = this; // Marks it.
        --free_count_;
    }
    std::erase_if(all_, [this](const auto& each) { return each->rendezvous == this; });
}

} // namespace ucg::transport::ucx
