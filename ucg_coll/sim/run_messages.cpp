// The messages of a run: which rank waits for which, and when they arrive.
#include <algorithm>
#include <utility>

#include "ucg_coll/sim/run.hpp"
#include "ucg_coll/sim/steps.hpp"

namespace ucg::sim {

using graph::LoweredSchedule;
using graph::MessagePlan;

void Run::collect_waits(const RankState& state, const LoweredSchedule& program) {
    awaited_.clear();
    for (const graph::Wait& wait : program.waits_of(program.steps[state.step])) {
        graph::for_each_slot(wait, state.iteration, [&](std::uint32_t slot) {
            awaited_.push_back(&slots_[state.first_slot + slot]);
        });
    }
}

bool Run::wait(Rank rank, RankState& state) {
    if (!take_copies(rank, state)) {
        return false;
    }
    bool receives = false;
    for (const Slot* slot : awaited_) {
        if (slot->message == kNoMessage) {
            if (slot->done == Slot::kUnderWay) {
                rest(rank, state, std::nullopt);
                return false;
            }
            continue;
        }
        const SimulatedMessage& message = mailbox_[slot->message];
        if (message.arrival == SimulatedMessage::kUnknown) {
            rest(rank, state, std::nullopt);
            return false;
        }
        receives = true;
    }
    if (receives) {
        if (!find_arrived(rank, state)) {
            return false;
        }
        take_in(rank, state);
    }
    const Picoseconds start = state.clock;
    for (const Slot* slot : awaited_) {
        state.clock = std::max(state.clock, slot->done);
    }
    record(Activity::Kind::wait, rank, start);
    return true;
}

/// Returns when the rank has all that it waits for, if that is known. It is not if a copy is among
/// it that has not been made.
std::optional<Picoseconds> Run::known_due(const RankState& state) const {
    Picoseconds due = state.clock;
    for (const Slot* slot : awaited_) {
        if (slot->message == kNoMessage) {
            if (slot->done == Slot::kUnderWay) {
                return std::nullopt;
            }
            due = std::max(due, slot->done);
            continue;
        }
        const SimulatedMessage& message = mailbox_[slot->message];
        if (message.arrival == SimulatedMessage::kUnknown ||
            std::find(state.copies.begin(), state.copies.end(), slot) != state.copies.end()) {
            return std::nullopt;
        }
        due = std::max(due, message.arrival);
    }
    return due;
}

/// Lets a rank that waits make the copies whose RTS has come to it meanwhile, whether or not it
/// waits for them, as its peers wait for the FIN. Copies are made in the order of the common clock,
/// so that it is known whether the sender has time to help. Returns false if the rank has to be
/// resumed later.
bool Run::take_copies(Rank rank, RankState& state) {
    while (!state.copies.empty() && !awaited_.empty()) {
        const std::optional<Picoseconds> due = known_due(state);
        Slot* next = nullptr;
        for (Slot* slot : state.copies) {
            const Picoseconds arrival = mailbox_[slot->message].arrival;
            if (arrival != SimulatedMessage::kUnknown &&
                (next == nullptr || arrival < mailbox_[next->message].arrival)) {
                next = slot;
            }
        }
        const Picoseconds begin =
            next == nullptr ? 0 : std::max(state.clock, mailbox_[next->message].arrival);
        if (next != nullptr && (!due || begin < *due)) {
            if (now_ < begin) {
                rest(rank, state, begin);
                return false;
            }
            copy_once(rank, state, *next);
            continue;
        }
        if (due && now_ >= *due) {
            return true; // Copies that come from now on come too late.
        }
        rest(rank, state, due);
        return false;
    }
    return true;
}

/// Lets the rank rest until `until`, or until something comes that it copies or waits for.
void Run::rest(Rank rank, RankState& state, std::optional<Picoseconds> until) {
    state.is_resting = true;
    for (const Slot* slot : state.copies) {
        mailbox_[slot->message].waiter = rank;
    }
    for (const Slot* slot : awaited_) {
        if (slot->message != kNoMessage) {
            mailbox_[slot->message].waiter = rank;
        }
        state.waits_for_send |= slot->message == kNoMessage && slot->done == Slot::kUnderWay;
    }
    if (until && *until != state.alarm) {
        state.alarm = *until;
        push(EventKind::resume, *until, static_cast<std::uint32_t>(rank));
    }
}

/// Returns whether the step is a reduction. Then the sender's help gains nothing: the bytes that it
/// copies lie in its own cache, from where the reduction has to get them again.
static bool reduces_next(const graph::Step& step) {
    return step.kind == graph::StepKind::reduce || step.kind == graph::StepKind::reduce_parts;
}

/// Makes the copy of a message that is copied once. Of two ranks that send to one another and both
/// wait, each makes the copy that it receives. Else a sender with nothing else to do copies by
/// itself until its receiver comes to it; from when both copy, each copies half of the rest.
void Run::copy_once(Rank rank, RankState& state, Slot& slot) {
    const SimulatedMessage& message = mailbox_[slot.message];
    const Copying copying = message.copying;
    const Picoseconds begin = std::max(state.clock, message.arrival) + message.take;
    const Rank from = copying.sender;
    RankState& sender = this->state(from);
    if (!copying.by_both || reduces_next(program(rank).steps[state.step]) || !sender.is_resting) {
        const Picoseconds end = begin + copying.alone;
        finish_copy(rank, state, slot,
                    way_taken(sender.way_out, rank, copying.contended, begin, end));
        return;
    }
    const Picoseconds offered = std::max({sender.clock, message.arrival + message.take, slot.done});
    const Picoseconds joins = std::max(offered, begin);
    const auto back =
        std::find_if(sender.copies.begin(), sender.copies.end(), [&](const Slot* other) {
            const SimulatedMessage& theirs = mailbox_[other->message];
            return theirs.copying.sender == rank && theirs.copying.by_both &&
                   theirs.arrival != SimulatedMessage::kUnknown && theirs.arrival <= joins;
        });
    if (back != sender.copies.end() && joins <= begin) {
        finish_copy(from, sender, **back, joins + mailbox_[(*back)->message].copying.alone);
        finish_copy(rank, state, slot, joins + copying.alone);
    } else {
        const Picoseconds first = std::min(offered, begin);
        Picoseconds end = copied(copying, offered, begin);
        end = way_taken(sender.way_out, rank, copying.contended / 2, first, end); // Half by each.
        end = way_taken(state.way_copied, from, copying.contended / 2, first, end);
        if (end > offered) {
            const Picoseconds start = std::exchange(sender.clock, end);
            record(Activity::Kind::take, from, std::max(start, offered));
        }
        finish_copy(rank, state, slot, std::max(begin, end));
    }
    push(EventKind::resume, std::max(now_, sender.clock), static_cast<std::uint32_t>(from));
}

/// Returns when a message has been copied that its sender copies from `offered` on and its receiver
/// from `begin` on.
Picoseconds Run::copied(const Copying& copying, Picoseconds offered, Picoseconds begin) {
    if (offered >= begin) { // The receiver has copied a part before the sender joined it.
        return std::min(begin + copying.alone, begin + copying.half + (offered - begin) / 2);
    }
    const Picoseconds before = begin - offered;
    return before >= copying.alone ? offered + copying.alone
                                   : begin + std::max<Picoseconds>(copying.half - before / 2, 0);
}

/// Returns when a copy ends that takes from `begin` to `end` by itself and occupies `way` for
/// `takes`. Receivers that copy out of one memory, or senders that copy into it, share the way
/// there: a rank that comes while it is occupied is done no sooner than all of them can be.
Picoseconds Run::way_taken(Way& way, Rank user, Picoseconds takes, Picoseconds begin,
                           Picoseconds end) {
    const Picoseconds from = way.user == user ? begin : std::max(way.free, begin);
    way = {later(from, takes), user};
    return from > begin ? std::max(end, way.free) : end;
}

void Run::finish_copy(Rank rank, RankState& state, Slot& slot, Picoseconds end) {
    const MessageId id = slot.message;
    const SimulatedMessage& message = mailbox_[id];
    const Picoseconds start = state.clock;
    state.clock = end + message.copying.issue;
    record(Activity::Kind::take, rank, start);
    if (trace_ != nullptr) {
        trace_->transfers[message.transfer].taken = end;
    }
    SimulatedMessage& fin = mailbox_[message.copying.fin];
    fin.arrival = state.clock + message.copying.flight;
    if (fin.waiter != kNoRank) {
        push(EventKind::resume, fin.arrival, static_cast<std::uint32_t>(fin.waiter));
        fin.waiter = kNoRank;
    }
    std::erase(state.copies, &slot);
    slot = {.done = end};
    mailbox_.release(id);
}

/// Returns when the last bytes of a message have come through a ring: one message comes at a time.
/// A message that came before others that were taken in first has not waited for them.
Picoseconds Run::passed_way_in(RankState& state, const SimulatedMessage& message) {
    if (message.arrival <= state.way_in_since) {
        return message.arrival;
    }
    const Picoseconds arrival = std::max(message.arrival, later(state.way_in_free, message.pass));
    if (arrival == message.arrival) {
        state.way_in_since = arrival - message.pass;
    }
    state.way_in_free = later(arrival, message.gap);
    return arrival;
}

/// A rank that has to wait takes in all that comes meanwhile, as the engine polls for all of it.
bool Run::find_arrived(Rank rank, RankState& state) {
    arrived_.clear();
    Picoseconds last = 0;
    for (Slot* slot : awaited_) {
        if (slot->message != kNoMessage) {
            arrived_.push_back(slot);
            last = std::max(last, mailbox_[slot->message].arrival);
        }
    }
    if (last <= state.clock) {
        return true;
    }
    for (Slot* slot : state.posted) {
        if (std::find(awaited_.begin(), awaited_.end(), slot) != awaited_.end()) {
            continue;
        }
        const Picoseconds arrival = mailbox_[slot->message].arrival;
        if (arrival == SimulatedMessage::kUnknown && now_ < last) {
            rest(rank, state, last);
            return false;
        }
        if (arrival != SimulatedMessage::kUnknown && arrival < last) {
            arrived_.push_back(slot);
        }
    }
    return true;
}

/// Takes in the receives in `arrived_` in order of arrival; of equals, in the order awaited.
void Run::take_in(Rank rank, RankState& state) {
    std::stable_sort(arrived_.begin(), arrived_.end(), [&](const Slot* a, const Slot* b) {
        return mailbox_[a->message].arrival < mailbox_[b->message].arrival;
    });
    for (Slot* slot : arrived_) {
        const MessageId id = slot->message;
        if (id == kNoMessage) { // It was awaited twice.
            continue;
        }
        const SimulatedMessage& message = mailbox_[id];
        // The last bytes come when the way in has had time for all messages; copying them out ends
        // then.
        const Picoseconds arrival =
            message.through_ring ? passed_way_in(state, message) : message.arrival;
        Picoseconds start = state.clock;
        state.clock = std::max(state.clock, arrival - message.drain);
        record(Activity::Kind::wait, rank, start);
        start = state.clock;
        state.clock = later(state.clock, message.drain + message.take);
        record(Activity::Kind::take, rank, start);
        if (trace_ != nullptr && message.transfer != SimulatedMessage::kNoTransfer) {
            trace_->transfers[message.transfer].taken = state.clock;
        }
        *slot = {.done = state.clock};
        std::erase(state.posted, slot);
        mailbox_.release(id);
    }
}

Status Run::receive(Rank rank, RankState& state, const MessagePlan& plan, Slot& slot) {
    const Mailbox::Lane lane = {plan.peer, rank, plan.signals};
    const std::uint64_t bytes = graph::length_at(plan.address, state, program(rank));
    const Mailbox::Match match = mailbox_.match(lane, MessageEnd::recv, bytes);
    slot = {.message = match.id, .done = state.clock};
    if (const std::uint64_t sent = mailbox_[match.id].bytes; sent != bytes) {
        return mismatch(lane, sent, bytes);
    }
    const price::MessagePrice price = message_price(
        options_.network, placement_.distance(plan.peer, rank), bytes, price::Source::settled, 0);
    (price.copy_ns > 0 ? state.copies : state.posted).push_back(&slot);
    state.note_written(plan.address);
    return {};
}

Status Run::send(Rank rank, RankState& state, const MessagePlan& plan, Slot& slot) {
    const Mailbox::Lane lane = {rank, plan.peer, plan.signals};
    const std::uint64_t bytes = graph::length_at(plan.address, state, program(rank));
    const Mailbox::Match match = mailbox_.match(lane, MessageEnd::send, bytes);
    SimulatedMessage& message = mailbox_[match.id];
    if (message.bytes != bytes) {
        return mismatch(lane, bytes, message.bytes);
    }
    const price::MessagePrice price = message_price(
        options_.network, placement_.distance(rank, plan.peer), bytes,
        state.has_written(plan.address) ? price::Source::fresh : price::Source::settled,
        2 * vector_bytes(plan.address, buffers_[static_cast<std::size_t>(rank)]));
    const cost::MessageTerms& terms = price.terms;
    const Picoseconds start = state.clock;
    state.clock = later(state.clock, to_picoseconds(terms.issue_ns));
    const Picoseconds begin = pass_port(state, terms);
    state.clock = later(state.clock, to_picoseconds(price.fill_ns));
    record(Activity::Kind::issue, rank, start);
    const Picoseconds left = state.port_free;
    slot = {.done = left};
    message.take = to_picoseconds(terms.take_ns);
    message.through_ring = price.through_ring;
    message.gap = to_picoseconds(terms.gap_ns);
    message.pass = to_picoseconds(terms.inject_ns);
    message.drain = to_picoseconds(price.drain_ns);
    if (price.copy_ns > 0) {
        slot = {.message = await_fin(rank, match.id, price)};
    }
    if (trace_ != nullptr) {
        mailbox_[match.id].transfer = static_cast<std::uint32_t>(trace_->transfers.size());
        trace_->transfers.push_back(
            {.from = rank,
             .to = plan.peer,
             .send_op = state.op,
             .bytes = bytes,
             .kind = lane.is_signal ? Transfer::Kind::signal : Transfer::Kind::message,
             .begin = begin,
             .left = left});
    }
    ++outcome_.message_count;
    outcome_.message_bytes += bytes;
    const Picoseconds arrival =
        left + to_picoseconds(terms.flight_ns) +
        draw(options_.message_noise, seed_, Stream::message, rank, state.message_count++);
    const Transit transit{.from = rank, .to = plan.peer, .arrival = arrival};
    if (tree_ && tree_->joins(rank, plan.peer)) {
        enter_tree(match.id, transit, begin, left, slot);
    } else {
        depart(match.id, transit, begin, left);
    }
    return {};
}

/// Returns the FIN of a message that is copied once, which tells its sender that it has been
/// copied.
MessageId Run::await_fin(Rank rank, MessageId id, const price::MessagePrice& price) {
    const MessageId fin = mailbox_.fin(); // This may move all messages.
    mailbox_[fin].take = to_picoseconds(price.terms.take_ns);
    mailbox_[id].copying = {.alone = to_picoseconds(price.copy_ns),
                            .half = to_picoseconds(price.half_ns),
                            .contended = to_picoseconds(price.contended_ns),
                            .issue = to_picoseconds(price.terms.issue_ns),
                            .flight = to_picoseconds(price.terms.flight_ns),
                            .sender = rank,
                            .fin = fin,
                            .by_both = price.by_both};
    return fin;
}

/// Passes a message through the rank's port. Returns when it begins to leave; port_free is when it
/// has left.
Picoseconds Run::pass_port(RankState& state, const cost::MessageTerms& terms) {
    Picoseconds begin = state.clock;
    if (begin >= state.gap_over) {
        state.burst = 1;
    } else if (state.burst < terms.free_messages) {
        begin = std::max(begin, state.port_free);
        ++state.burst;
    } else {
        begin = state.gap_over;
    }
    state.port_free = later(begin, to_picoseconds(terms.inject_ns));
    state.gap_over = later(state.port_free, to_picoseconds(terms.gap_ns));
    return begin;
}

/// Sends a message on its way. It occupies its host's link while its last bytes leave, unless it
/// has to wait for the link. Where the link is slower than the sender, its last byte leaves later.
void Run::depart(MessageId id, const Transit& transit, Picoseconds begin, Picoseconds left) {
    if (!links_ || placement_.same_host(transit.from, transit.to)) {
        deliver(id, transit);
        return;
    }
    transits_.resize(std::max<std::size_t>(transits_.size(), id + std::size_t{1}));
    transits_[id] = transit;
    const std::uint64_t bytes = mailbox_[id].bytes;
    transits_[id].arrival += std::max<Picoseconds>(0, begin + links_->passage(bytes) - left);
    push(EventKind::link_out, std::max(begin, left - links_->occupancy(bytes)), id);
}

void Run::pass_link(const Event& event) {
    const MessageId id = event.subject;
    Transit& transit = transits_[id];
    const std::uint64_t bytes = mailbox_[id].bytes;
    const bool leaves = event.kind == EventKind::link_out;
    const std::uint32_t host = placement_.host(leaves ? transit.from : transit.to);
    const LinkDirection direction = leaves ? LinkDirection::out : LinkDirection::in;
    transit.arrival += links_->pass(host, direction, event.time, bytes);
    if (leaves) {
        push(EventKind::link_in, std::max(event.time, transit.arrival - links_->occupancy(bytes)),
             id);
    } else {
        deliver(id, transit);
    }
}

/// Sends a message on its way through the tree of switches. Its first bytes come to the first edge
/// when they begin to leave the sender.
void Run::enter_tree(MessageId id, Transit transit, Picoseconds begin, Picoseconds left,
                     Slot& slot) {
    tree_->find_path(transit.from, transit.to, transit.path);
    transit.tail = left;
    transit.flight = transit.arrival - left;
    transit.slot = static_cast<std::size_t>(&slot - slots_.data());
    slot.done = Slot::kUnderWay;
    transits_.resize(std::max<std::size_t>(transits_.size(), id + std::size_t{1}));
    transits_[id] = std::move(transit);
    push(EventKind::edge, begin, id);
}

void Run::pass_edge(const Event& event) {
    const MessageId id = event.subject;
    Transit& transit = transits_[id];
    const TreeLinks::Passage passage =
        tree_->pass(transit.path[transit.hop], event.time, mailbox_[id].bytes);
    transit.tail = std::max(transit.tail, passage.tail);
    if (++transit.hop < transit.path.size()) {
        push(EventKind::edge, passage.head, id);
        return;
    }
    transit.arrival = transit.tail + transit.flight;
    slots_[transit.slot].done = transit.arrival;
    RankState& sender = state(transit.from);
    if (sender.waits_for_send) {
        sender.waits_for_send = false;
        push(EventKind::resume, transit.arrival, static_cast<std::uint32_t>(transit.from));
    }
    deliver(id, transit);
}

void Run::deliver(MessageId id, const Transit& transit) {
    SimulatedMessage& message = mailbox_[id];
    message.arrival = transit.arrival;
    if (trace_ != nullptr) {
        trace_->transfers[message.transfer].arrived = transit.arrival;
    }
    if (message.waiter != kNoRank) {
        push(EventKind::resume, transit.arrival, static_cast<std::uint32_t>(message.waiter));
        message.waiter = kNoRank;
    }
}

Status Run::mismatch(const Mailbox::Lane& lane, std::uint64_t sent, std::uint64_t received) {
    return failure(Code::invalid_argument,
                   "rank {} sends {} bytes to rank {}, which expects {} bytes", lane.from, sent,
                   lane.to, received);
}

} // namespace ucg::sim
