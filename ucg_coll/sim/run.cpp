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
         std::span<const LoweredSchedule> programs, std::span<const OwnBuffers> buffers,
         std::uint64_t seed, Trace* trace)
    : placement_(placement), options_(options), programs_(programs), buffers_(buffers), seed_(seed),
      trace_(trace), states_(programs.size()), sockets_(sockets_of(placement)) {
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
    const std::vector<std::uint32_t> readers = flag_slot_readers(programs);
    flag_slots_.resize(readers.size() * options.in_a_row);
    for (std::size_t i = 0; i < flag_slots_.size(); ++i) {
        flag_slots_[i].readers = readers[i % readers.size()];
    }
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
        now_ = event.time;
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
    state.is_resting = false;
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
        if (state.clock >= kTimeEnd) {
            return failure(Code::invalid_argument,
                           "rank {}, op {}: a price, or a sum of them, is as long as a run may "
                           "take, {:.0f} s",
                           rank, state.op, to_ns(kTimeEnd) / 1e9);
        }
    }
    return {};
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
            const OwnBuffers& own = buffers_[static_cast<std::size_t>(rank)];
            const std::uint64_t touched = copied_through_bytes(step, program(rank), bytes, own);
            compute(rank, state, Activity::Kind::copy,
                    copies_for_peers(step, program(rank), own)
                        ? price::publish_ns(options_.memory.model, bytes, touched)
                        : copy_ns(options_.compute, bytes, touched));
        }
        break;
    case StepKind::reduce:
    case StepKind::reduce_parts:
        compute(rank, state, Activity::Kind::reduce, reduction_ns(rank, state, step));
        break;
    case StepKind::publish:
        compute(rank, state, Activity::Kind::publish,
                publish_ns(options_.memory, bytes,
                           2 * copied_through_bytes(step, program(rank), bytes,
                                                    buffers_[static_cast<std::size_t>(rank)])));
        break;
    case StepKind::share: share(rank, state); break;
    case StepKind::wait: break;
    case StepKind::end_iteration: state.end_iteration(program(rank)); return {};
    case StepKind::finish: finish(rank, state); return {};
    }
    ++state.step;
    return status;
}

/// Begins the next of several collectives in a row or, after the last, records when the rank is
/// done.
void Run::finish(Rank rank, RankState& state) {
    if (++state.round < options_.in_a_row) {
        static_cast<graph::Position&>(state) = {};
        return;
    }
    outcome_.finish[static_cast<std::size_t>(rank)] = state.clock;
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

double Run::reduction_ns(Rank rank, const RankState& state, const Step& step) const {
    const std::uint64_t bytes = bytes_of(state, program(rank));
    if (has_flag_slots(step, program(rank))) {
        return combine_flag_slots_ns(options_.compute, options_.memory, placement_.widest_on_host(),
                                     step.count, bytes);
    }
    const OwnBuffers& own = buffers_[static_cast<std::size_t>(rank)];
    const std::uint64_t touched = touched_bytes(step, program(rank), bytes, own);
    const unsigned passing = passing_operands(step, program(rank), own);
    if (step.kind == StepKind::reduce_parts && step.count == 2) {
        const Rank peer = program(rank).messages[step.message].peer;
        return combine_message_ns(options_.network, options_.compute,
                                  placement_.distance(peer, rank), bytes, touched, passing);
    }
    return reduce_ns(options_.compute, step.count, bytes, touched, passing);
}

void Run::compute(Rank rank, RankState& state, Activity::Kind kind, double own_ns) {
    const Picoseconds start = state.clock;
    const Step& step = program(rank).steps[state.step];
    const double read_ns = reading_ns(rank, state);
    // Where ranks help, the kernel copies first: only then can a reduction combine the bytes.
    const bool both = program(rank).helped && step.kind != StepKind::copy;
    const double ns = both ? own_ns + read_ns : std::max(own_ns, read_ns);
    state.clock += to_picoseconds(ns * (program(rank).helped ? helped_part(rank) : 1));
    state.clock +=
        draw(options_.compute_noise, seed_, Stream::computation, rank, state.compute_count++);
    record(kind, rank, start);
    if (kind == Activity::Kind::copy || kind == Activity::Kind::reduce) {
        state.note_written(program(rank).addresses_of(program(rank).steps[state.step]).front());
    }
    for (const WayLoad& load : loads_) {
        ways_[load.way].push_back({state.clock, load.ns});
    }
    loads_.clear();
}

/// Returns how much work a rank does where all help one another as long as there is some: its share
/// of all ranks' units, as whole units, divided by the number of units of its own.
double Run::helped_part(Rank rank) const {
    std::uint64_t all = 0;
    const auto units_of = [&](Rank of) {
        std::uint64_t units = 0;
        for (const graph::Repeat& repeat : program(of).repeats) {
            units += repeat.iterations;
        }
        return units;
    };
    for (Rank other = 0; other < static_cast<Rank>(programs_.size()); ++other) {
        all += units_of(other);
    }
    const std::uint64_t own = units_of(rank);
    return own == 0
               ? 1 // All its work is a part of one unit.
               : static_cast<double>(divide_up(all, programs_.size())) / static_cast<double>(own);
}

/// Checks that every rank has finished and that every message was received.
Status Run::check_end() const {
    for (std::size_t owner = 0; owner < flag_slots_.size(); ++owner) {
        if (!flag_slots_[owner].waiters.empty()) {
            const Rank rank = flag_slots_[owner].waiters.front();
            return failure(Code::invalid_argument,
                           "rank {} waits for ever before op {} for what rank {} does not share",
                           rank, states_[static_cast<std::size_t>(rank)].op,
                           owner % states_.size());
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
