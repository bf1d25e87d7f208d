#include "ucg_coll/transport/shm/link.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ucg::transport {
namespace {

/// What is read of a sender's memory in one call, so that other peers need not wait for the whole.
constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 20;

unsigned fail_queue(MessageQueue& queue) {
    unsigned failed = 0;
    while (!queue.empty()) {
        queue.pop().state = MessageState::failed;
        ++failed;
    }
    return failed;
}

} // namespace

/// At most one ring's worth at a time, so that a fast receiver cannot keep the caller here while
/// its other peers wait.
Outbox::Pushed Outbox::push(Message& message) {
    const std::uint64_t tag = tag_of(message);
    if (message.bytes >= single_copy_bytes_min_ && message.moved == 0 && ring_.receiver_reads()) {
        if (ring_.full()) {
            return Pushed::part;
        }
        message.moved = ring_.announce(tag, message.data, message.bytes);
        bell_->ring(shm::Awaits::message);
        announced_.push(message);
        return Pushed::announced;
    }
    for (std::uint32_t budget = depth_; budget > 0 && !ring_.full(); --budget) {
        message.moved += ring_.send(tag, message.data, message.bytes, message.moved);
        bell_->ring(shm::Awaits::message);
        if (message.moved == message.bytes) {
            message.state = MessageState::done;
            return Pushed::whole;
        }
    }
    return Pushed::part;
}

unsigned Outbox::flush() {
    unsigned moved = 0;
    while (!announced_.empty() && ring_.taken(announced_.front().moved)) {
        announced_.pop().state = MessageState::done;
        ++moved;
    }
    while (!queue_.empty()) {
        Message& message = queue_.pop(); // push() may link it into the other queue.
        const std::uint64_t before = message.moved;
        if (push(message) == Pushed::part) {
            queue_.put_back(message);
            return moved + (message.moved == before ? 0 : 1);
        }
        ++moved;
    }
    return moved;
}

unsigned Outbox::fail_all() {
    return fail_queue(queue_) + fail_queue(announced_);
}

bool Inbox::post(Message& message) {
    if (!early_.empty() && take_early(message)) {
        return message.state == MessageState::done;
    }
    // Where something is awaited already, progress() is due to look at the ring, and counts what it
    // completes there.
    const bool first = idle();
    posted_.push(message);
    if (first) {
        drain();
    }
    return message.state == MessageState::done;
}

unsigned Inbox::drain() {
    unsigned taken = 0;
    for (std::uint32_t budget = depth_; budget > 0 && !idle() && ring_.ready(); --budget) {
        if (broken_ != Code::ok || (current_ == nullptr && !begin_message())) {
            break;
        }
        if (!move_fragment()) {
            break;
        }
        bell_->ring(shm::Awaits::room);
        ++taken;
        if (current_->moved == current_->bytes) {
            end_message();
        }
    }
    return taken;
}

/// Finds where the message at the ring's head goes.
bool Inbox::begin_message() {
    const std::uint64_t bytes = ring_.message_bytes();
    current_ = posted_.take(ring_.tag());
    if (current_ == nullptr) {
        if (posted_.contradicts(ring_.tag())) {
            broken_ = Code::disagreement;
            return false;
        }
        current_ = begin_early(ring_.tag(), bytes);
        return current_ != nullptr;
    }
    if (current_->bytes != bytes) {
        broken_ = Code::disagreement;
        return false;
    }
    return true;
}

bool Inbox::move_fragment() {
    if (const std::byte* data = ring_.elsewhere(); data != nullptr) {
        return read_elsewhere(data);
    }
    current_->moved += ring_.receive(current_->data, current_->moved);
    return true;
}

bool Inbox::read_elsewhere(const std::byte* data) {
    const std::uint64_t length = std::min(kReadBytes, current_->bytes - current_->moved);
    const Status status =
        shm::read_peer(sender_, data + current_->moved, current_->data + current_->moved, length);
    if (!status.ok()) {
        log(LogLevel::error, "shared memory: {}", status.message());
        broken_ = status.code();
        return false;
    }
    current_->moved += length;
    if (current_->moved == current_->bytes) {
        ring_.take();
    }
    return true;
}

void Inbox::end_message() {
    current_->state = MessageState::done;
    current_ = nullptr;
    current_is_early_ = false;
}

Message* Inbox::begin_early(std::uint64_t tag, std::uint64_t bytes) {
    auto early = std::make_unique<Early>();
    early->tag = tag;
    early->data.reset(new (std::nothrow) std::byte[bytes]);
    if (early->data == nullptr) {
        broken_ = Code::out_of_memory;
        return nullptr;
    }
    early->message.data = early->data.get();
    early->message.bytes = bytes;
    early->message.state = MessageState::posted;
    early_.push_back(std::move(early));
    current_is_early_ = true;
    return &early_.back()->message;
}

/// Gives an early arrival to the message that asks for it; one that is half received becomes the
/// current message in the other's place.
bool Inbox::take_early(Message& message) {
    const auto found = std::find_if(
        early_.begin(), early_.end(),
        [tag = tag_of(message)](const std::unique_ptr<Early>& early) { return early->tag == tag; });
    if (found == early_.end()) {
        return contradicted(message);
    }
    const Message& arrival = (*found)->message;
    if (arrival.bytes != message.bytes) {
        broken_ = Code::disagreement;
        posted_.push(message); // To be failed with the others.
        return true;
    }
    if (arrival.moved > 0) {
        std::memcpy(message.data, arrival.data, arrival.moved);
    }
    message.moved = arrival.moved;
    if (arrival.state == MessageState::done) {
        message.state = MessageState::done;
    } else {
        current_ = &message;
        current_is_early_ = false;
    }
    early_.erase(found);
    return true;
}

/// True, and the inbox broken, if an early arrival of the same collective is of another plan.
bool Inbox::contradicted(Message& message) {
    const bool found =
        std::any_of(early_.begin(), early_.end(), [tag = tag_of(message)](const auto& early) {
            return contradict(early->tag, tag);
        });
    if (found) {
        broken_ = Code::disagreement;
        posted_.push(message); // To be failed with the others.
    }
    return found;
}

unsigned Inbox::fail_all() {
    unsigned failed = 0;
    if (current_ != nullptr) {
        current_->state = MessageState::failed;
        failed += current_is_early_ ? 0 : 1;
        current_ = nullptr;
    }
    return failed + fail_queue(posted_);
}

} // namespace ucg::transport
