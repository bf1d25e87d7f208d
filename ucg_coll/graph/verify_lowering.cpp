// The step of verify that proves a lowering: steps that are issued one by one, each once its waits
// are over, wait for all that the schedule says, and for the earlier messages in their slots; and
// nothing but its reduction needs a message that is combined where it arrives.
#include <algorithm>
#include <optional>

#include "ucg_coll/graph/interval_map.hpp"
#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/graph/verify.hpp"

namespace ucg::graph {
namespace {

/// Which bytes of the own scratch lack what the schedule writes there: those of messages that are
/// combined where they arrive. They need not be stored.
class MissingBytes {
  public:
    explicit MissingBytes(const Schedule& schedule)
        : rank_(schedule.rank), missing_(schedule.scratch_bytes) {}

    bool any(const Slice& slice) const {
        bool found = false;
        if (is_own_scratch(slice)) {
            missing_.visit(slice.offset, slice.end(),
                           [&](const auto& stretch) { found = found || stretch.value.missing; });
        }
        return found;
    }
    void set(const Slice& slice, bool missing) {
        if (is_own_scratch(slice)) {
            missing_.write(slice.offset, {{0, slice.length, {missing}}});
        }
    }
    bool is_own_scratch(const Slice& slice) const {
        return slice.owner == rank_ && slice.buffer == BufferKind::scratch && slice.length > 0;
    }

  private:
    struct Missing {
        bool missing = false;

        Missing skip(std::uint64_t) const { return *this; }
        bool continued_by(const Missing& next, std::uint64_t) const {
            return missing == next.missing;
        }
    };

    Rank rank_;
    IntervalMap<Missing> missing_;
};

/// Goes through the steps as an engine does, and takes only what was waited for as completed.
class Walk {
  public:
    Walk(const Schedule& schedule, const LoweredSchedule& lowered)
        : schedule_(schedule), written_out_(unroll(schedule)), lowered_(lowered),
          slot_of_(written_out_.ops.size(), kNone), user_of_(lowered.slot_count, kNone),
          completed_(lowered.slot_count, true), in_parts_(lowered.messages.size(), false),
          missing_(schedule) {
        for (const Step& step : lowered.steps) {
            if (step.kind == StepKind::reduce_parts) {
                in_parts_[step.message] = true;
            }
        }
    }

    Status run() {
        Status status;
        while (status.ok() && !finished_) {
            const Step& step = lowered_.steps[at_.step];
            for (const Wait& wait : lowered_.waits_of(step)) {
                for_each_slot(wait, at_.iteration,
                              [&](std::uint32_t slot) { completed_[slot] = true; });
            }
            flag_slots_seen_ =
                step.waits ? std::max(flag_slots_seen_, step.flag_slots_until) : flag_slots_seen_;
            status = issue(step);
        }
        return status;
    }

  private:
    static constexpr std::uint32_t kNone = 0xffffffffU;

    /// A message that has been received last, and is combined where it arrives.
    struct Arriving {
        std::uint32_t message = 0;
        std::uint32_t op = 0; ///< In the schedule.
        Slice target;
        std::uint8_t carrier = 0;
    };

    Status issue(const Step& step) {
        Status status = check_arriving(step);
        if (!status.ok()) {
            return status;
        }
        switch (step.kind) {
        case StepKind::post:
            for (std::uint32_t i = 0; i < step.count && status.ok(); ++i) {
                status = post(step, i);
            }
            break;
        case StepKind::copy:
        case StepKind::reduce:
        case StepKind::publish:
        case StepKind::share: status = compute(step, kNone); break;
        case StepKind::reduce_parts: status = reduce_parts(step); break;
        case StepKind::wait: status = check_dependencies(step.op); break;
        case StepKind::end_iteration: return end_iteration();
        case StepKind::finish: return finish();
        }
        if (status.ok()) {
            status = check_flag_slots(step);
        }
        ++at_.step;
        return status;
    }

    /// The message may occupy its carrier until its reduction takes it, so no step between the two
    /// may wait, or be other than a post.
    Status check_arriving(const Step& step) const {
        const bool may_follow =
            step.kind == StepKind::reduce_parts || (step.kind == StepKind::post && !step.waits);
        return !arriving_ || may_follow
                   ? Status()
                   : refuse(arriving_->op,
                            "is to be combined where it arrives, but another step comes before its "
                            "reduction");
    }

    Status reduce_parts(const Step& step) {
        const Op& op = written_out_.ops[written_out(step.op)];
        const std::span operands = operands_of(written_out_, op);
        const bool has_it = arriving_ && arriving_->message == step.message &&
                            arriving_->carrier == step.carrier && step.arriving < operands.size() &&
                            operands[step.arriving] == arriving_->target;
        const bool may = !schedule_.exposed && schedule_.element_bytes > 0 &&
                         kCacheLine % schedule_.element_bytes == 0;
        if (!has_it || !may) {
            return refuse(step.op, "cannot combine a message where it arrives");
        }
        arriving_.reset();
        return compute(step, step.arriving);
    }

    /// `arriving`: the operand that a message brings; kNone: none.
    Status compute(const Step& step, std::uint32_t arriving) {
        Status status = check_dependencies(step.op);
        if (status.ok()) {
            status = check_reads(step.op, arriving);
        }
        if (const Op& op = written_out_.ops[written_out(step.op)]; has_target(op.kind)) {
            missing_.set(op.target, false);
        }
        return status;
    }

    Status check_reads(std::uint32_t index, std::uint32_t arriving) const {
        const Op& op = written_out_.ops[written_out(index)];
        bool lacks = has_source(op.kind) && missing_.any(op.source);
        const std::span operands = operands_of(written_out_, op);
        for (std::uint32_t i = 0; i < operands.size(); ++i) {
            lacks = lacks || (i != arriving && missing_.any(operands[i]));
        }
        return lacks ? refuse(index, "reads a message that was combined where it arrived")
                     : Status();
    }

    Status post(const Step& step, std::uint32_t number) {
        const MessagePlan& message = lowered_.messages[step.first + number];
        const std::uint32_t op = step.op + number;
        Status status = check_dependencies(op);
        const std::uint32_t slot = message.slot_at(at_.iteration);
        if (status.ok() && !completed_[slot]) {
            status = refuse(op, fmt::format("takes slot {} while {} may use it", slot,
                                            describe(user_of_[slot])));
        }
        slot_of_[written_out(op)] = slot;
        user_of_[slot] = written_out(op);
        completed_[slot] = false;
        return status.ok() ? note_message(step, number) : status;
    }

    Status note_message(const Step& step, std::uint32_t number) {
        const std::uint32_t index = step.op + number;
        const Op& op = written_out_.ops[written_out(index)];
        const std::uint32_t message = step.first + number;
        if (!in_parts_[message]) {
            if (op.kind == OpKind::recv) {
                missing_.set(op.target, false);
            }
            return check_reads(index, kNone);
        }
        if (op.kind != OpKind::recv || !missing_.is_own_scratch(op.target) || arriving_) {
            return refuse(index, "cannot be combined where it arrives");
        }
        missing_.set(op.target, true);
        arriving_ = {message, index, op.target, step.carrier};
        return {};
    }

    Status check_dependencies(std::uint32_t op) const {
        const IndexRange range = dependency_range(written_out_, written_out(op));
        for (std::uint32_t i = range.first; i < range.last; ++i) {
            const std::uint32_t on = written_out_.dependencies[i].op;
            const std::uint32_t slot = slot_of_[on];
            // Local ops have completed, and a message that takes a slot has waited for the last
            // one.
            if (slot != kNone && user_of_[slot] == on && !completed_[slot]) {
                return refuse(op, fmt::format("does not wait for {}", describe(on)));
            }
        }
        return {};
    }

    Status check_flag_slots(const Step& step) const {
        for (const Address& address : lowered_.addresses_of(step)) {
            if (address.is_flag_slot() && address.base - kOwnBases >= flag_slots_seen_) {
                return refuse(step.op,
                              fmt::format("does not wait for the flag slot of rank {}",
                                          lowered_.flag_slots[address.base - kOwnBases].owner));
            }
        }
        return {};
    }

    Status end_iteration() {
        const Repeat& repeat = lowered_.repeats[at_.repeat];
        const std::uint32_t before = at_.repeat;
        at_.end_iteration(lowered_);
        if (at_.repeat != before) {
            added_ += repeat.op_count * static_cast<std::uint32_t>(repeat.iterations - 1);
        }
        return {};
    }

    Status finish() {
        finished_ = true;
        const auto left = std::find(completed_.begin(), completed_.end(), false);
        if (left != completed_.end()) {
            const auto slot = static_cast<std::size_t>(left - completed_.begin());
            return failure(Code::invalid_argument, "rank {}: the end does not wait for {}",
                           schedule_.rank, describe(user_of_[slot]));
        }
        return flag_slots_seen_ == lowered_.flag_slots.size()
                   ? Status()
                   : failure(Code::invalid_argument, "rank {}: waits for {} of {} flag slots",
                             schedule_.rank, flag_slots_seen_, lowered_.flag_slots.size());
    }

    /// Returns the index, in the schedule without repeats, of `op` in this iteration.
    std::uint32_t written_out(std::uint32_t op) const {
        const bool in_repeat = lowered_.steps[at_.step].in_repeat;
        const std::uint64_t iterations = in_repeat ? at_.iteration : 0;
        const std::uint32_t body = in_repeat ? lowered_.repeats[at_.repeat].op_count : 0;
        return op + added_ + static_cast<std::uint32_t>(iterations * body);
    }

    std::string describe(std::uint32_t op) const {
        return fmt::format("{} {} written out", name(written_out_.ops[op].kind), op);
    }
    Status refuse(std::uint32_t op, std::string_view reason) const {
        return failure(Code::invalid_argument, "rank {}, op {} ({}): {}", schedule_.rank, op,
                       name(schedule_.ops[op].kind), reason);
    }

    const Schedule& schedule_;
    const Schedule written_out_;
    const LoweredSchedule& lowered_;
    Position at_;
    std::uint32_t added_ = 0;            ///< How many ops the repeats before at_ have added.
    std::vector<std::uint32_t> slot_of_; ///< By op written out: its slot; kNone: not posted.
    std::vector<std::uint32_t> user_of_; ///< By slot: the op written out that was posted last.
    std::vector<bool> completed_;        ///< By slot: whether that op is known to have completed.
    std::vector<bool> in_parts_; ///< By message: whether some step combines it where it arrives.
    std::optional<Arriving> arriving_;
    MissingBytes missing_;
    std::uint32_t flag_slots_seen_ = 0;
    bool finished_ = false;
};

} // namespace

Status verify_lowering(const Schedule& schedule, const LoweredSchedule& lowered) {
    return Walk(schedule, lowered).run();
}

} // namespace ucg::graph
