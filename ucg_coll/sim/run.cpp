#include "ucg_coll/sim/run.hpp"

#include <algorithm>

#include "ucg_coll/sim/steps.hpp"

namespace ucg::sim {

namespace {

using graph::LoweredSchedule;
using graph::MessagePlan;
using graph::Step;
using graph::StepKind;

constexpr Picoseconds kNotFinished = -1;

} // namespace

Run::Run(const topo::Placement& placement, const Options& options,
         std::span<const LoweredSchedule> programs, std::uint64_t seed, Trace* trace)
    : placement_(placement), options_(options), programs_(programs), seed_(seed), trace_(trace),
      states_(programs.size()) {
    if (options.host_link) {
        links_.emplace(*options.host_link, placement.host_count());
    }
    if (options.links) {
        tree_.emplace(*options.links);
    }
    if (trace_ != nullptr) {
        *trace_ = {};
    }
    std::size_t slots = 0;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        states_[i].first_slot = slots;
        slots += programs[i].slot_count;
    }
    slots_.resize(slots);
    const std::vector<std::uint32_t> readers = board_readers(programs);
    boards_.resize(readers.size());
    for (std::size_t i = 0; i < readers.size(); ++i) {
        boards_[i].readers = readers[i];
    }
    readings_.resize(programs.size());
    outcome_.entered.reserve(states_.size());
    outcome_.finish.assign(states_.size(), kNotFinished);
}

Result<Outcome> Run::go() {
    if (Status status = check_memory(); !status.ok()) {
        return status;
    }
    for (Rank rank = 0; rank < static_cast<Rank>(states_.size()); ++rank) {
        Picoseconds entered = draw(options_.skew, seed_, Stream::arrival, rank, 0);
        if (!options_.arrival_ns.empty()) {
            entered += to_picoseconds(options_.arrival_ns[static_cast<std::size_t>(rank)]);
        }
        outcome_.entered.push_back(entered);
        state(rank).clock = entered;
        record(Activity::Kind::late, rank, 0);
        push(EventKind::resume, entered, static_cast<std::uint32_t>(rank));
    }
    while (!events_.empty()) {
        const Event event = events_.top();
        events_.pop();
        if (event.kind == EventKind::edge) {
            pass_edge(event);
            continue;
        }
        if (event.kind != EventKind::resume) {
            pass_link(event);
            continue;
        }
        if (Status status = advance(static_cast<Rank>(event.subject)); !status.ok()) {
            return status;
        }
    }
    if (Status status = check_end(); !status.ok()) {
        return status;
    }
    return std::move(outcome_);
}

void Run::push(EventKind kind, Picoseconds time, std::uint32_t subject) {
    events_.push({time, event_count_++, subject, kind});
}

void Run::record(Activity::Kind kind, Rank rank, Picoseconds start) {
    const RankState& state = states_[static_cast<std::size_t>(rank)];
    if (trace_ != nullptr && state.clock > start) {
        trace_->activities.push_back({kind, rank, state.op, state.iteration, start, state.clock});
    }
}

Status Run::advance(Rank rank) {
    RankState& state = this->state(rank);
    Picoseconds& finish = outcome_.finish[static_cast<std::size_t>(rank)];
    while (finish == kNotFinished) {
        const Step& step = program(rank).steps[state.step];
        state.op = step.op;
        collect_waits(state, program(rank));
        if (!wait(rank, state) || !look(rank, state) || !in_turn(rank, state)) {
            return {};
        }
        if (Status status = issue(rank, state, step); !status.ok()) {
            return status;
        }
        if (state.clock > kTimeEnd) {
            return failure(Code::invalid_argument,
                           "rank {}, op {}: the simulation has come to {} s, the limit", rank,
                           state.op, to_ns(kTimeEnd) / 1e9);
        }
    }
    return {};
}

void Run::collect_waits(const RankState& state, const LoweredSchedule& program) {
    awaited_.clear();
    for (const graph::Wait& wait : program.waits_of(program.steps[state.step])) {
        graph::for_each_slot(wait, state.iteration, [&](std::uint32_t slot) {
            awaited_.push_back(&slots_[state.first_slot + slot]);
        });
    }
}

bool Run::wait(Rank rank, RankState& state) {
    bool receives = false;
    for (const Slot* slot : awaited_) {
        if (slot->message == kNoMessage) {
            if (slot->done == Slot::kUnderWay) {
                state.waits_for_send = true;
                return false;
            }
            continue;
        }
        Message& message = mailbox_[slot->message];
        if (message.arrival == Message::kUnknown) {
            message.waiter = rank;
            return false;
        }
        receives = true;
    }
    if (receives) {
        take_in(rank, state);
    }
    const Picoseconds start = state.clock;
    for (const Slot* slot : awaited_) {
        state.clock = std::max(state.clock, slot->done);
    }
    record(Activity::Kind::wait, rank, start);
    return true;
}

/// Takes in what is awaited and has arrived, in order of arrival; of equals, in the order awaited.
void Run::take_in(Rank rank, RankState& state) {
    arrived_.clear();
    for (Slot* slot : awaited_) {
        if (slot->message != kNoMessage) {
            arrived_.push_back(slot);
        }
    }
    std::stable_sort(arrived_.begin(), arrived_.end(), [&](const Slot* a, const Slot* b) {
        return mailbox_[a->message].arrival < mailbox_[b->message].arrival;
    });
    for (Slot* slot : arrived_) {
        const MessageId id = slot->message;
        if (id == kNoMessage) { // Awaited twice.
            continue;
        }
        const Message& message = mailbox_[id];
        Picoseconds start = state.clock;
        state.clock = std::max(state.clock, message.arrival);
        record(Activity::Kind::wait, rank, start);
        start = state.clock;
        state.clock += message.take;
        record(Activity::Kind::take, rank, start);
        if (trace_ != nullptr) {
            trace_->transfers[message.transfer].taken = state.clock;
        }
        *slot = {.done = state.clock};
        mailbox_.release(id);
    }
}

Status Run::issue(Rank rank, RankState& state, const Step& step) {
    const std::uint64_t bytes = bytes_of(state, program(rank));
    state.has_looked = false;
    state.is_in_turn = false;
    Status status;
    state.op = step.op;
    for (std::uint32_t i = 0; trace_ != nullptr && i < op_count(step); ++i) {
        trace_->issues.push_back({rank, step.op + i, state.iteration, state.clock});
    }
    switch (step.kind) {
    case StepKind::post: status = post(rank, state, step); break;
    case StepKind::copy:
        if (bytes > 0) {
            compute(rank, state, Activity::Kind::copy, copy_ns(options_.compute, bytes));
        }
        break;
    case StepKind::reduce:
    case StepKind::reduce_parts:
        compute(rank, state, Activity::Kind::reduce,
                has_boards(step, program(rank))
                    ? combine_boards_ns(options_.compute, options_.memory,
                                        placement_.widest_on_host(), step.count, bytes)
                    : reduce_ns(options_.compute, step.count, bytes));
        break;
    case StepKind::publish:
        compute(rank, state, Activity::Kind::publish, publish_ns(options_.memory, bytes));
        break;
    case StepKind::share: share(rank, state); break;
    case StepKind::wait: break;
    case StepKind::end_iteration: state.end_iteration(program(rank)); return {};
    case StepKind::finish: outcome_.finish[static_cast<std::size_t>(rank)] = state.clock; return {};
    }
    ++state.step;
    return status;
}

Status Run::post(Rank rank, RankState& state, const Step& step) {
    Status status;
    for (std::uint32_t i = 0; i < step.count && status.ok(); ++i) {
        const MessagePlan& plan = program(rank).messages[step.first + i];
        Slot& slot = slots_[state.first_slot + plan.slot_at(state.iteration)];
        state.op = step.op + i;
        if (trace_ != nullptr) {
            trace_->issues.push_back({rank, state.op, state.iteration, state.clock});
        }
        status = plan.outgoing ? send(rank, state, plan, slot) : receive(rank, state, plan, slot);
    }
    return status;
}

void Run::compute(Rank rank, RankState& state, Activity::Kind kind, double own_ns) {
    const Picoseconds start = state.clock;
    state.clock += to_picoseconds(std::max(own_ns, reading_ns(rank, state)));
    state.clock +=
        draw(options_.compute_noise, seed_, Stream::computation, rank, state.compute_count++);
    record(kind, rank, start);
    for_each_peer_read(program(rank).steps[state.step], program(rank), [&](Rank owner) {
        readings_[static_cast<std::size_t>(owner)].push_back(state.clock);
    });
}

Status Run::receive(Rank rank, RankState& state, const MessagePlan& plan, Slot& slot) {
    const Mailbox::Lane lane = {plan.peer, rank, plan.signals};
    const std::uint64_t bytes = graph::length_at(plan.address, state, program(rank));
    const Mailbox::Match match = mailbox_.match(lane, End::recv, bytes);
    slot = {.message = match.id};
    if (const std::uint64_t sent = mailbox_[match.id].bytes; sent != bytes) {
        return mismatch(lane, sent, bytes);
    }
    return {};
}

Status Run::send(Rank rank, RankState& state, const MessagePlan& plan, Slot& slot) {
    const Mailbox::Lane lane = {rank, plan.peer, plan.signals};
    const std::uint64_t bytes = graph::length_at(plan.address, state, program(rank));
    const Mailbox::Match match = mailbox_.match(lane, End::send, bytes);
    Message& message = mailbox_[match.id];
    if (message.bytes != bytes) {
        return mismatch(lane, bytes, message.bytes);
    }
    const cost::MessageTerms terms =
        message_terms(options_.network, placement_.distance(rank, plan.peer), bytes);
    const Picoseconds start = state.clock;
    state.clock += to_picoseconds(terms.issue_ns);
    record(Activity::Kind::issue, rank, start);

    const Picoseconds begin = pass_port(state, terms);
    const Picoseconds left = state.port_free;
    slot = {.done = left};
    message.take = to_picoseconds(terms.take_ns);
    if (trace_ != nullptr) {
        message.transfer = static_cast<std::uint32_t>(trace_->transfers.size());
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

/// Returns when the message begins to leave; port_free is when it has left.
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
    state.port_free = begin + to_picoseconds(terms.inject_ns);
    state.gap_over = state.port_free + to_picoseconds(terms.gap_ns);
    return begin;
}

/// A message keeps the link while its last bytes leave, unless it has to wait for it.
void Run::depart(MessageId id, const Transit& transit, Picoseconds begin, Picoseconds left) {
    if (!links_ || placement_.same_host(transit.from, transit.to)) {
        deliver(id, transit);
        return;
    }
    transits_.resize(std::max<std::size_t>(transits_.size(), id + std::size_t{1}));
    transits_[id] = transit;
    push(EventKind::link_out, std::max(begin, left - links_->occupancy(mailbox_[id].bytes)), id);
}

void Run::pass_link(const Event& event) {
    const MessageId id = event.subject;
    Transit& transit = transits_[id];
    const std::uint64_t bytes = mailbox_[id].bytes;
    const bool leaves = event.kind == EventKind::link_out;
    const std::uint32_t host = placement_.place(leaves ? transit.from : transit.to).host;
    const Direction direction = leaves ? Direction::out : Direction::in;
    transit.arrival += links_->pass(host, direction, event.time, bytes);
    if (leaves) {
        push(EventKind::link_in, std::max(event.time, transit.arrival - links_->occupancy(bytes)),
             id);
    } else {
        deliver(id, transit);
    }
}

/// Its first bytes come to the first edge when they begin to leave the sender.
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
    Message& message = mailbox_[id];
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

/// Has every rank finished, and was every message received?
Status Run::check_end() const {
    for (std::size_t owner = 0; owner < boards_.size(); ++owner) {
        if (!boards_[owner].waiters.empty()) {
            const Rank rank = boards_[owner].waiters.front();
            return failure(Code::invalid_argument,
                           "rank {} waits for ever before op {} for what rank {} does not share",
                           rank, states_[static_cast<std::size_t>(rank)].op, owner);
        }
    }
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
        if (outcome_.finish[rank] == kNotFinished) {
            return failure(Code::invalid_argument,
                           "rank {} waits for ever before op {} for a message that is not sent",
                           rank, states_[rank].op);
        }
    }
    if (const auto lane = mailbox_.unmatched()) {
        return failure(Code::invalid_argument, "rank {} never receives a {} from rank {}", lane->to,
                       lane->is_signal ? "signal" : "message", lane->from);
    }
    return {};
}

} // namespace ucg::sim
