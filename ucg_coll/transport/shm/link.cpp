#include "ucg_coll/transport/shm/link.hpp"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <utility>

#include "ucg_coll/base/copy.hpp"

namespace ucg::transport {
namespace {

/// What is read of a sender's memory in one call, so that other peers need not wait for the whole.
constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 20;
/// As much as a look at a ring of the usual depth moves.
constexpr unsigned kPiecesPerFlush = 16;

unsigned fail_queue(MessageQueue& queue) {
    unsigned failed = 0;
    while (!queue.empty()) {
        queue.pop().state = MessageState::failed;
        ++failed;
    }
    return failed;
}

shm::RemoteBytes remote(const shm::Heap& heap, const std::byte* data, std::uint64_t bytes) {
    const auto place = heap.locate(data, bytes);
    return {reinterpret_cast<std::uintptr_t>(data), place ? place->offset + 1 : 0};
}

} // namespace

/// Is the message to be copied from where it is?
bool Outbox::stays(const Message& message, const shm::RemoteBytes& data) {
    if (data.place != 0) {
        return message.bytes >= limits_.mapped_bytes;
    }
    const bool far = message.bytes >= limits_.far_bytes && ring_.receiver_far();
    return (far || message.bytes >= limits_.private_bytes) && ring_.receiver_reads() &&
           readable_->has(message.data, message.bytes);
}

/// At most one ring's worth at a time, so that a fast receiver cannot keep the caller here while
/// its other peers wait.
Outbox::Pushed Outbox::push(Message& message) {
    const std::uint64_t tag = tag_of(message);
    if (message.bytes >= limits_.least() && message.moved == 0) {
        const shm::RemoteBytes data = remote(*heap_, message.data, message.bytes);
        if (stays(message, data) && !ring_.all_marked()) {
            if (ring_.full()) {
                return Pushed::part;
            }
            message.moved = ring_.announce(tag, data, message.bytes, help_);
            bell_->ring(shm::Awaits::message);
            announced_.push(message);
            return Pushed::announced;
        }
    }
    if (message.moved == 0 && !ring_.full()) {
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
    unsigned moved = 0;
    if (!announced_.empty() && ring_.passed(announced_.front().moved)) {
        moved = announced_.remove_if([this](Message& message) {
            const bool taken = ring_.taken(message.moved);
            message.state = taken ? MessageState::done : message.state;
            return taken;
        });
    }
    // Of what the receiver leaves to this end there may be many pieces, and few calls.
    const unsigned budget = share == shm::Share::all ? kPiecesPerFlush : 1;
    unsigned pieces = 0;
    while (pieces < budget && !announced_.empty() && copy_piece(share)) {
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

/// Helps the receiver of the message that it is copying now, if it is copying one.
bool Outbox::copy_piece(shm::Share share) {
    if (!help_.mapped) {
        return false;
    }
    const Message& message = announced_.front();
    shm::JointCopy& joint = ring_.joint();
    const auto piece =
        joint.claim(shm::End::sender, ring_.turn(message.moved), name_of(message), share);
    if (!piece) {
        return false;
    }
    const Status status = shm::push(receiver_, joint.target().at(piece->offset),
                                    message.data + piece->offset, piece->length);
    if (!status.ok()) {
        help_ = {}; // The receiver copies alone, what was tried here as well.
        log(LogLevel::info, "shared memory: {}; receivers of this process copy alone",
            status.message());
    }
    joint.piece_pushed(piece->length, status.ok());
    bell_->ring(shm::Awaits::message);
    return true;
}

unsigned Outbox::fail_all() {
    return fail_queue(queue_) + fail_queue(announced_);
}

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
        if (broken_ != Code::ok || (current_ != nullptr && current_->state == MessageState::part)) {
            break;
        }
        if (current_ == nullptr) {
            if (posted_.empty()) {
                break; // What is awaited was announced before.
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
            taken += joint_ ? 1 : 0; // Its sender may begin: no time to fall asleep.
        }
        if ((pull == Pull::later && joint_) || !move_fragment(pull)) {
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

/// Lets the caller read the next bytes of the message where they are, if it wants to: true then.
bool Inbox::give_out(std::span<const std::byte> bytes) {
    // What was copied before, as an early arrival's start, is followed by copies.
    if (!current_->in_place || bytes.empty() || current_->taken != current_->moved) {
        return false;
    }
    current_->part = bytes.data();
    current_->part_bytes = bytes.size();
    current_->state = MessageState::part;
    return true;
}

void Inbox::take_part(Message& message) {
    UCG_ASSERT(current_ == &message && message.state == MessageState::part);
    message.moved += message.part_bytes;
    if (ring_.elsewhere()) {
        ring_.take(); // It was given out as a whole.
    } else {
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

/// The rest of a message that lies in its sender's segment.
std::span<const std::byte> Inbox::mapped(const shm::RemoteBytes& data) const {
    if (data.place == 0) {
        return {};
    }
    return {sender_.segment + (data.place - 1) + current_->moved,
            current_->bytes - current_->moved};
}

unsigned Inbox::drain_jointly(bool may_copy) {
    // A look takes about as long as copying so much: who waits in vain is done in twice the time,
    // or, with a long message, before it would fall asleep.
    constexpr std::uint64_t kBytesPerLook = 1024;
    // On shared processors its sender is not told where to before it gathers: see asks_for_help().
    const bool waits = own_processors_ && may_copy &&
                       looks_++ < std::min(current_->bytes, kReadBytes) / kBytesPerLook;
    return drain(waits ? Pull::end : Pull::now);
}

/// Finds where the message at the ring's head goes.
Inbox::Begun Inbox::begin_message() {
    const std::uint64_t bytes = ring_.message_bytes();
    joint_ = false;
    current_ = posted_.take(ring_.tag());
    if (current_ == nullptr) {
        return begin_unawaited(bytes);
    }
    if (current_->bytes != bytes) {
        broken_ = Code::disagreement;
        return Begun::no;
    }
    if (ring_.elsewhere()) {
        begin_elsewhere(bytes);
    }
    if (!joint_) {
        close_ahead();
    }
    opened_ = nullptr;
    return Begun::yes;
}

/// What is awaited may be behind it.
Inbox::Begun Inbox::begin_unawaited(std::uint64_t bytes) {
    if (posted_.contradicts(ring_.tag())) {
        broken_ = Code::disagreement;
        return Begun::no;
    }
    close_ahead();
    const auto data = ring_.elsewhere();
    if (data) {
        return remember(ring_.tag(), bytes, *data) ? Begun::remembered : Begun::no;
    }
    return begin_early(ring_.tag(), bytes) ? Begun::yes : Begun::no;
}

/// Announced early arrivals that are awaited by now. Returns how many pieces were read.
unsigned Inbox::read_remembered() {
    const Remembered& first = remembered_.front();
    Message& message = *first.message;
    const shm::Piece piece = {message.moved, std::min(kReadBytes, message.bytes - message.moved)};
    if (broken_ != Code::ok || !fetch(message, first.elsewhere, piece)) {
        return 0;
    }
    message.moved += piece.length;
    if (message.moved == message.bytes) {
        ring_.take(first.later);
        bell_->ring(shm::Awaits::room);
        message.state = MessageState::done;
        remembered_.erase(remembered_.begin());
    }
    return 1;
}

bool Inbox::move_fragment(Pull pull) {
    if (const auto data = ring_.elsewhere()) {
        return joint_ ? read_jointly(*data, pull) : read_elsewhere(*data);
    }
    if (!give_out(ring_.fragment(current_->moved))) {
        current_->moved += ring_.receive(current_->data, current_->moved);
    }
    return true;
}

/// Lets the sender copy a part, if it can get at where the message goes, and if that stays: an
/// early arrival's memory may be exchanged for that of the message that asks for it. What the
/// sender writes stays in its cache.
void Inbox::begin_elsewhere(std::uint64_t bytes) {
    offered_ = ring_.help();
    if (current_is_early_ || !asks_for_help(*current_)) {
        return;
    }
    const shm::RemoteBytes target = remote(*heap_, current_->data, bytes);
    if (offered_.reaches(target)) {
        joint_ = true;
        looks_ = 0;
        if (opened_ != current_) {
            close_ahead();
            open(*current_, target);
        }
    }
}

void Inbox::open(const Message& message, const shm::RemoteBytes& target) {
    sender_claims_ = 0;
    ring_.joint().open(ring_.turn(), name_of(message), target);
}

bool Inbox::asks_for_help(const Message& message) const {
    const bool asks = own_processors_ ? message.sender_help != SenderHelp::unwanted
                                      : message.sender_help == SenderHelp::wanted &&
                                            message.bytes >= kWantedHelpBytesMin;
    return asks && message.bytes >= joint_bytes_ && shm::JointCopy::serves(message.bytes);
}

/// Where the message does not come, or comes otherwise, that is in vain; so not before the sender
/// has offered to copy others.
void Inbox::open_long_ahead(const Message& message) {
    const bool next = broken_ == Code::ok && current_ == nullptr && posted_.begins_with(message);
    if (!next || !offered_.mapped || !asks_for_help(message)) {
        return;
    }
    const shm::RemoteBytes target = remote(*heap_, message.data, message.bytes);
    if (offered_.reaches(target)) {
        opened_ = &message;
        open(message, target);
    }
}

/// What has come is another message than the one that was opened, so that its sender has claimed
/// nothing, or it came by the ring.
void Inbox::close_ahead() {
    if (opened_ != nullptr) {
        const std::uint64_t claimed = ring_.joint().close(ring_.turn(), opened_->bytes);
        UCG_ASSERT(claimed == 0);
        opened_ = nullptr;
    }
}

bool Inbox::fetch(Message& message, const shm::RemoteBytes& data, const shm::Piece& piece) {
    const Status status =
        shm::pull(sender_, data.at(piece.offset), message.data + piece.offset, piece.length);
    if (!status.ok()) {
        log(LogLevel::error, "shared memory: {}", status.message());
        broken_ = status.code();
    }
    return status.ok();
}

bool Inbox::read_elsewhere(const shm::RemoteBytes& data) {
    if (give_out(mapped(data))) {
        return true;
    }
    const shm::Piece piece = {current_->moved,
                              std::min(kReadBytes, current_->bytes - current_->moved)};
    if (!fetch(*current_, data, piece)) {
        return false;
    }
    current_->moved += piece.length;
    if (current_->moved == current_->bytes) {
        ring_.take();
    }
    return true;
}

/// The next piece that the sender has not claimed; when all are claimed, looks whether the sender
/// is done with its own.
bool Inbox::read_jointly(const shm::RemoteBytes& data, Pull pull) {
    shm::JointCopy& joint = ring_.joint();
    std::optional<shm::Piece> piece;
    if (pull == Pull::now) {
        piece = joint.claim(shm::End::receiver, ring_.turn(), name_of(*current_));
    }
    if (piece) {
        if (!fetch(*current_, data, *piece)) {
            return false;
        }
        current_->moved += piece->length;
    }
    const shm::JointCopy::Pushed pushed = joint.pushed();
    if (pushed.failed) {
        return copy_alone();
    }
    if (current_->moved + pushed.bytes < current_->bytes) {
        return piece || await_sender();
    }
    joint.close(ring_.turn(), current_->bytes);
    current_->moved = current_->bytes;
    joint_ = false;
    ring_.take();
    return true;
}

/// Where the sender cannot write after all: the rest is pulled as soon as it tries no more. What
/// this end has copied is the message's start.
bool Inbox::copy_alone() {
    sender_claims_ += ring_.joint().close(ring_.turn(), current_->bytes);
    if (ring_.joint().pushed().bytes < sender_claims_) {
        return await_sender();
    }
    joint_ = false;
    return true;
}

/// Always false: nothing moved. Now and then it looks whether the sender still exists, since a dead
/// one finishes nothing.
bool Inbox::await_sender() {
    constexpr unsigned kLooks = 1024;
    if (++fruitless_looks_ % kLooks == 0 && sender_.process.process != 0 &&
        !shm::can_read(sender_.process)) {
        log(LogLevel::error, "shared memory: process {} is gone, with a message half sent",
            sender_.process.process);
        broken_ = Code::io_error;
    }
    return false;
}

/// Before the caller gets its memory back: nothing may be written there any more. The sender is
/// inside one copy at most, unless it is gone; where that cannot be asked, it gets its time.
void Inbox::stop_joint_copy(std::uint64_t bytes) {
    constexpr unsigned kYieldsMax = 1 << 20;
    shm::JointCopy& joint = ring_.joint();
    sender_claims_ += joint.close(ring_.turn(), bytes);
    const bool askable = sender_.process.process != 0;
    for (unsigned i = 0; joint.pushed().bytes < sender_claims_; ++i) {
        const bool gone = askable && i % 1024 == 0 && !shm::can_read(sender_.process);
        if (gone || (!askable && i == kYieldsMax)) {
            break;
        }
        ::sched_yield();
    }
    joint_ = false;
}

void Inbox::end_message() {
    current_->state = MessageState::done;
    current_ = nullptr;
    current_is_early_ = false;
}

/// Null, and the inbox broken, if there is no memory.
std::unique_ptr<EarlyArrival> Inbox::take_spare(std::uint64_t bytes) {
    auto early = spare_->take(bytes);
    if (early == nullptr) {
        broken_ = Code::out_of_memory;
    }
    return early;
}

/// Where it was only announced: it stays with its sender until it is asked for.
bool Inbox::remember(std::uint64_t tag, std::uint64_t bytes, const shm::RemoteBytes& data) {
    auto early = take_spare(0);
    if (early == nullptr) {
        return false;
    }
    early->tag = tag;
    early->message.bytes = bytes;
    early->elsewhere = data;
    early->later = ring_.remember();
    early_.push_back(std::move(early));
    return true;
}

bool Inbox::begin_early(std::uint64_t tag, std::uint64_t bytes) {
    auto early = take_spare(bytes);
    if (early == nullptr) {
        return false;
    }
    early->tag = tag;
    early->message.data = early->data.get();
    early->message.bytes = bytes;
    early->message.state = MessageState::posted;
    early_.push_back(std::move(early));
    current_ = &early_.back()->message;
    current_is_early_ = true;
    return true;
}

/// Gives an early arrival to the message that asks for it; one that is half received becomes the
/// current message in the other's place.
bool Inbox::take_early(Message& message) {
    const auto found =
        std::find_if(early_.begin(), early_.end(),
                     [tag = tag_of(message)](const auto& early) { return early->tag == tag; });
    if (found == early_.end()) {
        return contradicted(message);
    }
    const Message& arrival = (*found)->message;
    if (arrival.bytes != message.bytes) {
        broken_ = Code::disagreement;
        posted_.push(message); // To be failed with the others.
        return true;
    }
    if ((*found)->later.turn != 0) {
        remembered_.push_back({&message, (*found)->elsewhere, (*found)->later});
        erase_early(found);
        read_remembered();
        return true;
    }
    if (arrival.moved > 0) {
        copy_bytes(message.data, arrival.data, arrival.moved);
    }
    message.moved = arrival.moved;
    if (arrival.state == MessageState::done) {
        message.state = MessageState::done;
    } else {
        current_ = &message;
        current_is_early_ = false;
    }
    erase_early(found);
    return true;
}

void Inbox::erase_early(std::vector<std::unique_ptr<EarlyArrival>>::iterator place) {
    spare_->give_back(std::move(*place));
    early_.erase(place);
}

bool Inbox::contradicts(std::uint64_t tag) const {
    return (ring_.ready() && contradict(ring_.tag(), tag)) || early_contradicts(tag);
}

bool Inbox::early_contradicts(std::uint64_t tag) const {
    return std::any_of(early_.begin(), early_.end(),
                       [tag](const auto& early) { return contradict(early->tag, tag); });
}

/// True, and the inbox broken, if an early arrival of the same collective is of another plan.
bool Inbox::contradicted(Message& message) {
    const bool found = early_contradicts(tag_of(message));
    if (found) {
        broken_ = Code::disagreement;
        posted_.push(message); // To be failed with the others.
    }
    return found;
}

unsigned Inbox::fail_all() {
    unsigned failed = 0;
    if (joint_ || opened_ != nullptr) {
        stop_joint_copy(joint_ ? current_->bytes : opened_->bytes);
        opened_ = nullptr;
    }
    if (current_ != nullptr) {
        current_->state = MessageState::failed;
        failed += current_is_early_ ? 0 : 1;
        current_ = nullptr;
    }
    for (const Remembered& remembered : remembered_) {
        remembered.message->state = MessageState::failed;
        ++failed;
    }
    remembered_.clear();
    return failed + fail_queue(posted_);
}

} // namespace ucg::transport
