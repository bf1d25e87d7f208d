#include "ucg_coll/transport/shm/link.hpp"

#include <algorithm>

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
        return message.bytes >= limits_->mapped_bytes;
    }
    return is_long_enough(message) && ring_.receiver_reads() && !ring_.declined() &&
           readable_->has(message.data, message.bytes);
}

/// Returns whether the message is so long that the kernel is to copy it once.
bool Outbox::is_long_enough(const Message& message) {
    if (message.bytes >= limits_->far_bytes && ring_.receiver_far()) {
        return true;
    }
    if (message.bytes < limits_->private_bytes[message.use]) {
        return false;
    }
    if (!ring_.taken_slowly()) {
        trials_.end();
        return true;
    }
    // Where caches do not hold the bytes, copies are slow for another reason than that their owner
    // has just written them, and a ring is no faster.
    return message.segment || message.bytes >= limits_->slow_bytes[message.use] || trials_.due();
}

/// Sends the next part of the message, or its RTS. At most one ring's worth at a time, so that a
/// fast receiver cannot keep the caller here while its other peers wait.
Outbox::Pushed Outbox::push(Message& message) {
    const std::uint64_t tag = tag_of(message);
    if (message.bytes >= least_bytes_ && message.moved == 0) {
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
    const auto piece = cooperative.claim(shm::CopyEnd::sender, ring_.sequence(message.moved),
                                         name_of(message), share);
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
        if (stopped() || incoming_.lent()) {
            break;
        }
        if (!incoming_.begun()) {
            if (posted_.empty()) {
                break; // Only remembered messages are awaited.
            }
            const Begun begun = begin_message();
            if (begun == Begun::no) {
                break;
            }
            if (begun == Begun::rts_taken) {
                bell_->ring(shm::Awaits::room);
                ++taken;
                continue;
            }
            taken += cooperative() ? 1 : 0; // Counts, as its sender may begin: not to fall asleep.
        }
        if (!move_incoming(pull)) {
            break;
        }
        bell_->ring(shm::Awaits::room);
        ++taken;
        if (incoming_.begun() && incoming_.whole()) { // Else it was declined, or more is to come.
            incoming_.end();
        }
    }
    return taken;
}

void Inbox::take_part(Message& message) {
    UCG_ASSERT(incoming_.begun() && &incoming_.message() == &message);
    const bool elsewhere = incoming_.way() == Way::alone_lent;
    incoming_.take_back();
    if (elsewhere && !sender_.still_sent()) {
        return; // To be failed with the others.
    }
    message.moved += message.part_bytes;
    if (elsewhere) {
        ring_.take();
    } else {
        ring_.pass(message.part_bytes);
    }
    bell_->ring(shm::Awaits::room);
    if (incoming_.whole()) {
        incoming_.end();
    } else if (ring_.ready()) {
        incoming_.lend(ring_.fragment(message.moved)); // Else progress() copies it.
    }
}

/// Moves the next fragment, or copies a piece of the message whose RTS is at the ring's head.
/// Returns whether anything has moved.
bool Inbox::move_incoming(Pull pull) {
    if (incoming_.way() != Way::ring && incoming_.way() != Way::aside) {
        return read_elsewhere(pull);
    }
    Message& message = incoming_.message();
    if (!incoming_.lendable() || !incoming_.lend(ring_.fragment(message.moved))) {
        message.moved += ring_.receive(message.data, message.moved);
    }
    return true;
}

/// Finds where the message at the ring's head goes. REQUIRES: nothing is incoming.
Inbox::Begun Inbox::begin_message() {
    const auto data = ring_.elsewhere();
    if (data && !sender_.readable(*data)) [[unlikely]] {
        return decline_head();
    }
    if (!data && !declined_.empty()) [[unlikely]] {
        end_declined(ring_.tag());
    }
    Message* const message = posted_.take(ring_.tag());
    if (message == nullptr) {
        return begin_unawaited();
    }
    if (message->bytes != ring_.message_bytes()) {
        cooperation_.close_ahead(ring_);
        broken_ = Code::disagreement;
        posted_.push(*message); // To be failed with the others.
        return Begun::no;
    }
    if (data) {
        incoming_.begin(*message, cooperation_.begin(*message, ring_) ? Way::both : Way::alone);
        check();
    } else {
        cooperation_.close_ahead(ring_);
        incoming_.begin(*message, Way::ring);
    }
    return Begun::yes;
}

/// Moves a message that is not awaited out of the way, since one that is may be behind it.
Inbox::Begun Inbox::begin_unawaited() {
    if (posted_.contradicts(ring_.tag())) {
        broken_ = Code::disagreement;
        return Begun::no;
    }
    cooperation_.close_ahead(ring_);
    if (ring_.elsewhere()) {
        if (early_.remember(ring_)) {
            return Begun::rts_taken;
        }
    } else if (Message* const early = early_.begin(ring_.tag(), ring_.message_bytes())) {
        incoming_.begin(*early, Way::aside);
        return Begun::yes;
    }
    broken_ = Code::out_of_memory;
    return Begun::no;
}

/// Gives an early arrival to the message that is posted for it. If the arrival is half received,
/// the message is incoming in its place. Returns whether there was one, or the inbox is broken.
/// Inlined it would have each post save registers that only this needs.
[[gnu::noinline]] bool Inbox::take_early(Message& message) {
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
    if (!early->coming()) {
        message.state = MessageState::done;
        early_.erase(*early);
        return true;
    }
    incoming_.adopt(message);
    early_.erase(*early);
    check();
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
    cooperation_.close_and_wait(ring_, sender_.reach());
    unsigned failed = remembered_.fail_all() + fail_queue(posted_);
    if (incoming_.way() == Way::aside) {
        incoming_.drop();
        early_.erase_coming();
    } else if (incoming_.begun()) {
        incoming_.drop().state = MessageState::failed;
        ++failed;
    }
    check();
    return failed;
}

/// Asserts what the parts say of one another.
void Inbox::check() const {
    const Way way = incoming_.way();
    UCG_ASSERT(early_.coming() == (way == Way::aside));
    if (const Message* const open = cooperation_.message(); way == Way::both) {
        UCG_ASSERT(open == &incoming_.message());
    } else if (open != nullptr) { // Ahead.
        UCG_ASSERT(way == Way::none && posted_.begins_with(*open));
    }
    UCG_ASSERT(declined_.empty() || sender_.given_up_private());
}

} // namespace ucg::transport
