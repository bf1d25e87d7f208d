#include "ucg_coll/transport/loopback/loopback.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace ucg::transport {

LoopbackFabric::LoopbackFabric(Rank rank_count, Delivery delivery, std::uint64_t seed,
                               std::size_t flag_slot_depth)
    : delivery_(delivery), random_(seed) {
    for (Rank rank = 0; rank < rank_count; ++rank) {
        ports_.push_back(
            std::make_unique<LoopbackTransport>(*this, rank, rank_count, flag_slot_depth));
    }
}

LoopbackFabric::~LoopbackFabric() = default;

std::vector<Transport*> LoopbackFabric::routes(Rank rank) const {
    std::vector<Transport*> result(ports_.size(), ports_[static_cast<std::size_t>(rank)].get());
    result[static_cast<std::size_t>(rank)] = nullptr;
    return result;
}

bool LoopbackFabric::quiet() const {
    return std::all_of(ports_.begin(), ports_.end(), [](const auto& port) {
        return port->arrivals_.empty() && port->posted_.empty() && port->parts_.empty();
    });
}

LoopbackTransport::LoopbackTransport(LoopbackFabric& fabric, Rank rank, Rank rank_count,
                                     std::size_t flag_slot_depth)
    : fabric_(fabric), rank_(rank), slots_(flag_slot_depth) {
    for (Slot& slot : slots_) {
        slot.bytes.reserve(1); // Never null, even of no bytes.
        slot.arrived.resize(static_cast<std::size_t>(rank_count));
    }
}

void LoopbackTransport::post(std::span<Message> messages) {
    for (Message& message : messages) {
        UCG_ASSERT(message.peer != rank_ && message.peer >= 0 &&
                   message.peer < fabric_.rank_count());
        if (message.direction == Direction::send) {
            post_send(message);
        } else {
            post_recv(message);
        }
    }
}

void LoopbackTransport::post_send(Message& message) {
    LoopbackTransport& peer = fabric_.transport(message.peer);
    Arrival arrival{rank_, message.sequence, message.step, message.channel, &message, {}};
    message.state = MessageState::posted;
    if (fabric_.delivery_ == Delivery::immediate) {
        for (std::size_t i = 0; i < peer.posted_.size(); ++i) {
            if (matches(arrival, *peer.posted_[i])) {
                peer.deliver(arrival, *peer.posted_[i]);
                peer.posted_.erase(peer.posted_.begin() + static_cast<std::ptrdiff_t>(i));
                return;
            }
        }
    }
    if (fabric_.delivery_ != Delivery::synchronous) {
        arrival.bytes.assign(message.data, message.data + message.bytes);
        arrival.origin = nullptr;
        message.state = MessageState::done;
    }
    peer.arrivals_.push_back(std::move(arrival));
}

void LoopbackTransport::post_recv(Message& message) {
    message.state = MessageState::posted;
    posted_.push_back(&message);
    if (fabric_.delivery_ == Delivery::immediate) {
        deliver_one(message);
    }
}

bool LoopbackTransport::matches(const Arrival& arrival, const Message& recv) {
    return arrival.from == recv.peer && arrival.sequence == recv.sequence &&
           arrival.step == recv.step && arrival.channel == recv.channel;
}

void LoopbackTransport::deliver(Arrival& arrival, Message& recv) {
    if (recv.read_on_arrival) {
        const Message* const origin = arrival.origin;
        parts_.push_back(
            {&recv, origin == nullptr
                        ? std::move(arrival.bytes)
                        : std::vector<std::byte>(origin->data, origin->data + origin->bytes)});
        UCG_ASSERT(parts_.back().bytes.size() == recv.bytes);
        if (origin != nullptr) {
            arrival.origin->state = MessageState::done;
        }
        recv.moved = 0;
        give_out(recv);
        return;
    }
    if (arrival.origin != nullptr) {
        UCG_ASSERT(arrival.origin->bytes == recv.bytes);
        if (recv.bytes > 0) {
            std::memcpy(recv.data, arrival.origin->data, recv.bytes);
        }
        arrival.origin->state = MessageState::done;
    } else {
        UCG_ASSERT(arrival.bytes.size() == recv.bytes);
        std::copy(arrival.bytes.begin(), arrival.bytes.end(), recv.data);
    }
    recv.state = MessageState::done;
}

/// Gives out the next part of a message: some cache lines. What is less than a line, in the end, is
/// copied to where the message was to go.
void LoopbackTransport::give_out(Message& recv) {
    const auto found = std::find_if(parts_.begin(), parts_.end(),
                                    [&](const Parts& parts) { return parts.recv == &recv; });
    UCG_ASSERT(found != parts_.end());
    const std::uint64_t lines = (recv.bytes - recv.moved) / kCacheLine;
    if (lines > 0) {
        recv.part = found->bytes.data() + recv.moved;
        recv.part_bytes = (1 + fabric_.random_() % lines) * kCacheLine;
        recv.state = MessageState::part;
        return;
    }
    std::copy(found->bytes.begin() + static_cast<std::ptrdiff_t>(recv.moved), found->bytes.end(),
              recv.data + recv.moved);
    recv.state = MessageState::done;
    parts_.erase(found);
}

/// Under random delivery the next part may be late.
void LoopbackTransport::take_part(Message& message) {
    UCG_ASSERT(message.state == MessageState::part);
    message.moved += message.part_bytes;
    message.state = MessageState::posted;
    if (fabric_.delivery_ == Delivery::immediate || fabric_.random_() % 2 == 0) {
        give_out(message);
    }
}

unsigned LoopbackTransport::give_out_some() {
    unsigned given = 0;
    for (std::size_t i = parts_.size(); i-- > 0;) {
        Message& recv = *parts_[i].recv;
        if (recv.state == MessageState::posted && fabric_.random_() % 2 == 0) {
            give_out(recv);
            ++given;
        }
    }
    return given;
}

/// Completes that posted receive, or an earlier one that matches the same messages, if one of these
/// has arrived. Returns whether it did.
bool LoopbackTransport::deliver_one(const Message& recv) {
    const auto arrival =
        std::find_if(arrivals_.begin(), arrivals_.end(),
                     [&](const Arrival& candidate) { return matches(candidate, recv); });
    if (arrival == arrivals_.end()) {
        return false;
    }
    const auto first = std::find_if(posted_.begin(), posted_.end(), [&](const Message* posted) {
        return matches(*arrival, *posted);
    });
    deliver(*arrival, **first);
    arrivals_.erase(arrival);
    posted_.erase(first);
    return true;
}

unsigned LoopbackTransport::progress() {
    if (fabric_.delivery_ == Delivery::immediate) {
        return 0; // Everything that could be delivered was, when it was posted.
    }
    visits_ = posted_;
    std::shuffle(visits_.begin(), visits_.end(), fabric_.random_);
    unsigned completed = give_out_some();
    for (const Message* recv : visits_) {
        const bool delayed = fabric_.random_() % 2 == 0;
        if (!delayed && recv->state == MessageState::posted && deliver_one(*recv)) {
            ++completed;
        }
    }
    return completed;
}

void LoopbackTransport::FreeStaging::operator()(std::byte* memory) const {
    ::operator delete(memory, std::align_val_t(kCacheLine));
}

std::span<std::byte> LoopbackTransport::staging() {
    if (staging_ == nullptr) {
        staging_.reset(
            static_cast<std::byte*>(::operator new(kStagingBytes, std::align_val_t(kCacheLine))));
    }
    return {staging_.get(), kStagingBytes};
}

bool LoopbackTransport::is_mapped_by_peers(const std::byte* data, std::uint64_t bytes) const {
    static_cast<void>(data);
    static_cast<void>(bytes);
    return fabric_.reach_(rank_);
}

bool LoopbackTransport::expose(std::uint32_t sequence, const SharedBuffers& buffers,
                               std::uint64_t staging_bytes) {
    UCG_ASSERT(staging_bytes <= kStagingBytes);
    exposed_[sequence % exposed_.size()] = {sequence, buffers};
    return true;
}

SharedBuffer LoopbackTransport::peer_buffer(Rank owner, graph::BufferKind buffer,
                                            std::uint32_t sequence) const {
    const Exposed& entry = fabric_.transport(owner).exposed_[sequence % exposed_.size()];
    return entry.sequence == sequence ? entry.buffers[static_cast<std::size_t>(buffer)]
                                      : SharedBuffer{};
}

bool LoopbackTransport::share(const FlagSlotSequence& sequence, const std::byte* data,
                              std::uint64_t bytes) {
    UCG_ASSERT(bytes <= kFlagSlotBytes);
    const bool room =
        std::all_of(fabric_.ports_.begin(), fabric_.ports_.end(), [&](const auto& peer) {
            return peer.get() == this || sequence.sequence < peer->done_ + slots_.size();
        });
    if (!room) {
        return false;
    }
    Slot& slot = slots_[sequence.sequence % slots_.size()];
    UCG_ASSERT(slot.after < sequence.sequence + 1);
    slot.after = sequence.sequence + 1;
    slot.collective = sequence.collective;
    slot.plan = sequence.plan;
    slot.bytes.assign(data, data + bytes);
    std::fill(slot.arrived.begin(), slot.arrived.end(), fabric_.delivery_ == Delivery::immediate);
    return true;
}

std::size_t LoopbackTransport::poll(const FlagSlotSequence& sequence,
                                    std::span<const FlagSlotRead> reads, const std::byte** places) {
    std::size_t seen = 0;
    while (seen < reads.size() && (places[seen] = look_at(sequence, reads[seen])) != nullptr) {
        ++seen;
    }
    return seen;
}

/// Under random delivery any look may be the one that sees the share; each reader sees it by
/// itself.
const std::byte* LoopbackTransport::look_at(const FlagSlotSequence& sequence,
                                            const FlagSlotRead& read) {
    UCG_ASSERT(read.owner != rank_ && read.owner >= 0 && read.owner < fabric_.rank_count() &&
               sequence.sequence >= done_);
    Slot& slot = fabric_.transport(read.owner).slots_[sequence.sequence % slots_.size()];
    if (slot.after != sequence.sequence + 1) {
        return nullptr;
    }
    UCG_ASSERT(slot.collective == sequence.collective && slot.plan == sequence.plan);
    UCG_ASSERT(read.bytes <= slot.bytes.size());
    const auto self = static_cast<std::size_t>(rank_);
    slot.arrived[self] = slot.arrived[self] || fabric_.random_() % 2 == 0;
    return slot.arrived[self] ? slot.bytes.data() : nullptr;
}

void LoopbackTransport::finish(std::uint64_t sequence) {
    UCG_ASSERT(sequence >= done_);
    done_ = sequence;
}

} // namespace ucg::transport
