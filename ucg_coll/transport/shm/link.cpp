#include "ucg_coll/transport/shm/link.hpp"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <utility>

#include "ucg_coll/base/copy.hpp"

namespace ucg::transport {
namespace {

/// As many as the slots of a ring of the usual depth.
constexpr unsigned kPiecesPerFlush = 16;

unsigned fail_queue(MessageQueue& queue) {
    unsigned failed = 0;
    while (!queue.empty()) {
        queue.pop().state = MessageState::failed;
        ++failed;
    }
    return failed;
}

} // namespace

/// Returns whether the message is to stay where it is and be copied from there.
bool Outbox::stays(const Message& message, const shm::RemoteBytes& data) {
    if (data.place != 0) {
        return message.bytes >= limits_.mapped_bytes;
    }
    const bool far = message.bytes >= limits_.far_bytes && ring_.receiver_far();
    const std::uint64_t near_bytes = limits_.private_bytes[message.use];
    return (far || message.bytes >= near_bytes) && ring_.receiver_reads() && !ring_.declined() &&
           readable_->has(message.data, message.bytes);
}

/// Sends the next part of the message, or its RTS. At most one ring's worth at a time, so that a
/// fast receiver cannot keep the caller here while its other peers wait.
Outbox::Pushed Outbox::push(Message& message) {
    const std::uint64_t tag = tag_of(message);
    if (message.bytes >= limits_.least() && message.moved == 0) {
        const shm::RemoteBytes data = remote_bytes(*heap_, message.data, message.bytes);
        if (stays(message, data) && !ring_.all_marked()) {
            if (ring_.full()) {
                return Pushed::part;
            }
            message.moved = ring_.send_rts(tag, data, message.bytes, {helps(), helps() && writes_});
            bell_->ring(shm::Awaits::message);
            awaiting_fin_.push(message);
            return Pushed::rts;
        }
    }
    if (message.moved == 0) {
        if (ring_.full()) {
            return Pushed::part; // Else full_for() could find room for what has not begun.
        }
        ring_.begin(message.bytes, [this](std::byte* data, std::uint64_t bytes) {
            return heap_->back(data, bytes).ok();
        });
    }
    for (std::uint32_t budget = depth_; budget > 0 && !ring_.full_for(message.bytes, message.moved);
         --budget) {
        message.moved += ring_.send(tag, message.data, message.bytes, message.moved);
        bell_->ring(shm::Awaits::message);
        if (message.moved == message.bytes) {
            message.state = MessageState::done;
            return Pushed::whole;
        }
    }
    return Pushed::part;
}

Outbox::Flushed Outbox::flush(shm::Share share) {
    unsigned moved = awaiting_fin_.empty() ? 0 : take_back();
    // What the receiver leaves to this end may be many pieces, and the calls few.
    const unsigned budget = share == shm::Share::all ? kPiecesPerFlush : 1;
    unsigned pieces = 0;
    while (pieces < budget && !awaiting_fin_.empty() && copy_piece(share)) {
        ++pieces;
    }
    moved += pieces;
    while (!queue_.empty()) {
        Message& message = queue_.pop(); // push() may link it into the other queue.
        const std::uint64_t before = message.moved;
        if (push(message) == Pushed::part) {
            queue_.put_back(message);
            moved += message.moved == before ? 0 : 1;
            break;
        }
        ++moved;
    }
    return {moved, pieces > 0};
}

/// Completes the messages whose FIN has come. Returns how many messages have moved.
unsigned Outbox::take_back() {
    unsigned moved = 0;
    if (ring_.passed(awaiting_fin_.front().moved)) {
        moved = awaiting_fin_.remove_if([this](Message& message) {
            const bool taken = ring_.taken(message.moved);
            message.state = taken ? MessageState::done : message.state;
            return taken;
        });
    }
    return ring_.declined() ? moved + send_declined() : moved;
}

/// Queues the private messages that the receiver had not read before it declined, to be sent by the
/// ring, and completes the others. Returns how many.
unsigned Outbox::send_declined() {
    std::erase_if(declined_marks_, [this](std::uint64_t mark) { return ring_.taken(mark); });
    return awaiting_fin_.remove_if([this](Message& message) {
        if (remote_bytes(*heap_, message.data, message.bytes).place != 0) {
            return false;
        }
        if (ring_.taken(message.moved)) {
            message.state = MessageState::done;
            return true;
        }
        declined_marks_.push_back(message.moved);
        readable_->forget(message.data, message.bytes); // So that other peers get no RTS for it.
        message.moved = 0;
        queue_.push(message);
        return true;
    });
}

/// Copies a piece of the message that the receiver is copying, if it is copying one. Returns
/// whether it did.
bool Outbox::copy_piece(shm::Share share) {
    if (!helps()) {
        return false;
    }
    const Message& message = awaiting_fin_.front();
    shm::CooperativeCopy& cooperative = ring_.cooperative();
    const auto piece =
        cooperative.claim(shm::End::sender, ring_.sequence(message.moved), name_of(message), share);
    if (!piece) {
        return false;
    }
    const Status status = shm::push(receiver_, cooperative.target().at(piece->offset),
                                    message.data + piece->offset, piece->length);
    if (shm::is_refusal(status)) { // The receiver copies alone, this piece as well.
        shm::tell_of_refusal(status);
    } else if (!status.ok()) {
        helps_ = false;
        log(LogLevel::info, "shared memory: {}; receivers of this process copy alone",
            status.message());
    }
    cooperative.piece_pushed(piece->length, status.ok());
    bell_->ring(shm::Awaits::message);
    return true;
}

unsigned Outbox::fail_all() {
    return fail_queue(queue_) + fail_queue(awaiting_fin_);
}

/// Receives a message that is not whole in the next slot: looks at the early arrivals, then queues
/// it.
bool Inbox::post_unmet(Message& message) {
    if (!early_.empty() && take_early(message)) {
        return message.state == MessageState::done;
    }
    // Where something is awaited already, progress() is due to look at the ring, and counts what it
    // completes there.
    const bool first = idle();
    posted_.push(message);
    if (first) {
        drain(Pull::later);
    }
    return message.state == MessageState::done;
}

unsigned Inbox::drain(Pull pull) {
    unsigned taken = remembered_.empty() ? 0 : read_remembered();
    for (std::uint32_t budget = depth_; budget > 0 && !idle() && ring_.ready(); --budget) {
        if (stopped() || (current_ != nullptr && current_->state == MessageState::part)) {
            break;
        }
        if (current_ == nullptr) {
            if (posted_.empty()) {
                break; // Only remembered messages are awaited.
            }
            const Begun begun = begin_message();
            if (begun == Begun::no) {
                break;
            }
            if (begun == Begun::remembered) {
                bell_->ring(shm::Awaits::room);
                ++taken;
                continue;
            }
            taken += cooperative_ ? 1 : 0; // Counts, as its sender may begin: not to fall asleep.
        }
        if ((pull == Pull::later && cooperative_) || !move_fragment(pull)) {
            break;
        }
        bell_->ring(shm::Awaits::room);
        ++taken;
        if (current_ != nullptr && current_->moved == current_->bytes) {
            end_message();
        }
    }
    return taken;
}

/// Lets the caller read the next bytes of the message where they are, if it wants that. Returns
/// whether it does.
bool Inbox::give_out(std::span<const std::byte> bytes) {
    // A message of which a part was copied, as the start of an early arrival, is copied on.
    if (!current_->read_on_arrival || bytes.empty() || current_->taken != current_->moved) {
        return false;
    }
    current_->part = bytes.data();
    current_->part_bytes = bytes.size();
    current_->state = MessageState::part;
    return true;
}

void Inbox::take_part(Message& message) {
    UCG_ASSERT(current_ == &message && message.state == MessageState::part);
    if (ring_.elsewhere()) { // It was given out as a whole, where it lies at the sender.
        if (!sender_.still_sent()) {
            message.state = MessageState::posted; // To be failed with the others.
            return;
        }
        message.moved += message.part_bytes;
        ring_.take();
    } else {
        message.moved += message.part_bytes;
        ring_.pass(message.part_bytes);
    }
    bell_->ring(shm::Awaits::room);
    message.state = MessageState::posted;
    if (message.moved == message.bytes) {
        end_message();
    } else if (ring_.ready()) {
        give_out(ring_.fragment(message.moved)); // Else progress() copies it.
    }
}

/// Moves the next fragment, or copies a piece of the message whose RTS is at the ring's head.
/// Returns whether anything has moved.
bool Inbox::move_fragment(Pull pull) {
    if (const auto data = ring_.elsewhere()) {
        const bool moved = sender_.readable(*data) &&
                           (cooperative_ ? read_cooperatively(*data, pull) : read_elsewhere(*data));
        return moved || (!sender_.readable(*data) && decline_current());
    }
    if (!give_out(ring_.fragment(current_->moved))) {
        current_->moved += ring_.receive(current_->data, current_->moved);
    }
    return true;
}

/// Finds where the message at the ring's head goes, and makes it current_.
Inbox::Begun Inbox::begin_message() {
    const std::uint64_t bytes = ring_.message_bytes();
    const auto data = ring_.elsewhere();
    cooperative_ = false;
    if (data && !sender_.readable(*data)) [[unlikely]] {
        return decline_head();
    }
    if (!data && !declined_.empty()) [[unlikely]] {
        end_declined(ring_.tag());
    }
    current_ = posted_.take(ring_.tag());
    if (current_ == nullptr) {
        return begin_unawaited(bytes);
    }
    if (current_->bytes != bytes) {
        broken_ = Code::disagreement;
        return Begun::no;
    }
    if (data) {
        begin_elsewhere(bytes);
    }
    if (!cooperative_) {
        close_ahead();
    }
    opened_ = nullptr;
    return Begun::yes;
}

/// Moves a message that is not awaited out of the way, since one that is may be behind it.
Inbox::Begun Inbox::begin_unawaited(std::uint64_t bytes) {
    if (posted_.contradicts(ring_.tag())) {
        broken_ = Code::disagreement;
        return Begun::no;
    }
    close_ahead();
    const bool only_rts = ring_.elsewhere().has_value();
    if (only_rts && early_.remember(ring_)) {
        return Begun::remembered;
    }
    current_ = only_rts ? nullptr : early_.begin(ring_.tag(), bytes);
    if (current_ == nullptr) {
        broken_ = Code::out_of_memory;
        return Begun::no;
    }
    current_is_early_ = true;
    return Begun::yes;
}

void Inbox::end_message() {
    current_->state = MessageState::done;
    current_ = nullptr;
    current_is_early_ = false;
}

/// Gives an early arrival to the message that is posted for it. If the arrival is half received,
/// the message becomes current_ in its place. Returns whether there was one, or the inbox is
/// broken.
bool Inbox::take_early(Message& message) {
    EarlyArrival* const early = early_.find(tag_of(message));
    if (early == nullptr) {
        return contradicted(message);
    }
    const Message& arrival = early->message;
    if (arrival.bytes != message.bytes) {
        broken_ = Code::disagreement;
        posted_.push(message); // To be failed with the others.
        return true;
    }
    if (early->remembered()) {
        remembered_.push({&message, early->elsewhere, early->later});
        early_.erase(*early);
        read_remembered();
        return true;
    }
    if (arrival.moved > 0) {
        copy_bytes(message.data, arrival.data, arrival.moved);
    }
    message.moved = arrival.moved;
    if (early->coming()) {
        current_ = &message;
        current_is_early_ = false;
    } else {
        message.state = MessageState::done;
    }
    early_.erase(*early);
    return true;
}

bool Inbox::contradicts(std::uint64_t tag) const {
    return (ring_.ready() && contradict(ring_.tag(), tag)) || early_.contradicts(tag);
}

/// Returns whether an early arrival of the same collective is of another plan; then the inbox is
/// broken.
bool Inbox::contradicted(Message& message) {
    const bool found = early_.contradicts(tag_of(message));
    if (found) {
        broken_ = Code::disagreement;
        posted_.push(message); // To be failed with the others.
    }
    return found;
}

unsigned Inbox::fail_all() {
    unsigned failed = 0;
    if (cooperative_ || opened_ != nullptr) {
        stop_cooperative_copy(cooperative_ ? current_->bytes : opened_->bytes);
        opened_ = nullptr;
    }
    if (current_ != nullptr) {
        current_->state = MessageState::failed;
        failed += current_is_early_ ? 0 : 1;
        current_ = nullptr;
    }
    return failed + remembered_.fail_all() + fail_queue(posted_);
}

} // namespace ucg::transport
