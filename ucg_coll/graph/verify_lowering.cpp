// The step of verify that proves a lowering: steps that are issued one by one, each once its waits
// are over, wait for all that the schedule says, and for the earlier messages in their slots.
#include <algorithm>

#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/graph/verify.hpp"

namespace ucg::graph {
namespace {

/// Goes through the steps as an engine does, and takes only what was waited for as completed.
class Walk {
  public:
    Walk(const Schedule& schedule, const LoweredSchedule& lowered)
        : schedule_(schedule), written_out_(unroll(schedule)), lowered_(lowered),
          slot_of_(written_out_.ops.size(), kNone), user_of_(lowered.slot_count, kNone),
          completed_(lowered.slot_count, true) {}

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

    Status issue(const Step& step) {
        Status status;
        switch (step.kind) {
        case StepKind::post:
            for (std::uint32_t i = 0; i < step.count && status.ok(); ++i) {
                status = post(lowered_.messages[step.first + i], step.op + i);
            }
            break;
        case StepKind::copy:
        case StepKind::reduce:
        case StepKind::reduce_parts:
        case StepKind::publish:
        case StepKind::share:
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

    Status post(const MessagePlan& message, std::uint32_t op) {
        Status status = check_dependencies(op);
        const std::uint32_t slot = message.slot_at(at_.iteration);
        if (status.ok() && !completed_[slot]) {
            status = refuse(op, fmt::format("takes slot {} while {} may use it", slot,
                                            describe(user_of_[slot])));
        }
        slot_of_[written_out(op)] = slot;
        user_of_[slot] = written_out(op);
        completed_[slot] = false;
        return status;
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
    std::uint32_t flag_slots_seen_ = 0;
    bool finished_ = false;
};

} // namespace

Status verify_lowering(const Schedule& schedule, const LoweredSchedule& lowered) {
    return Walk(schedule, lowered).run();
}

} // namespace ucg::graph
