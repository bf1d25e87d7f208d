#include "ucg_coll/graph/lowering.hpp"

#include <algorithm>
#include <compare>
#include <unordered_map>
#include <utility>

namespace ucg::graph {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

class Lowering {
  public:
    Lowering(const Schedule& schedule, Carriers carriers)
        : schedule_(schedule), carriers_(carriers), message_of_op_(schedule.ops.size(), kNone) {}

    LoweredSchedule run() {
        result_.repeats = schedule_.repeats;
        result_.helped = schedule_.helped;
        add_messages();
        number_steps();
        known_.assign(result_.messages.size(), kNone);
        result_.steps.reserve(schedule_.ops.size() + schedule_.repeats.size() + 1);
        for_each_repeat_and_op([&](std::uint32_t op) { lower_op(op); },
                               [&](const Repeat& repeat) { lower_repeat(repeat); });
        finish();
        result_.steps.shrink_to_fit();
        result_.waits.shrink_to_fit();
        return std::move(result_);
    }

  private:
    /// A message that gets a step number. Both sides number the messages of one lane in order.
    struct Numbered {
        std::uint64_t lane = 0;       ///< Peer, direction and channel.
        std::uint32_t message = 0;    ///< Index into LoweredSchedule::messages.
        std::uint32_t repeat = kNone; ///< The repeat that it is in.

        auto operator<=>(const Numbered&) const = default; // NOLINT(modernize-use-nullptr)
    };
    static constexpr std::uint32_t kForever = 0xfffffffeU;

    template <typename VisitOp, typename VisitRepeat>
    void for_each_repeat_and_op(VisitOp visit_op, VisitRepeat visit_repeat) {
        auto next = schedule_.repeats.begin();
        for (std::uint32_t i = 0; i < schedule_.ops.size();) {
            if (next != schedule_.repeats.end() && next->first_op == i) {
                visit_repeat(*next);
                i += next->op_count;
                ++next;
            } else {
                visit_op(i);
                ++i;
            }
        }
    }

    std::uint32_t number_of(const Repeat& repeat) const {
        return static_cast<std::uint32_t>(&repeat - schedule_.repeats.data());
    }

    void add_messages() {
        for_each_repeat_and_op([&](std::uint32_t op) { add_message(op, nullptr); },
                               [&](const Repeat& repeat) {
                                   for (std::uint32_t i = 0; i < repeat.op_count; ++i) {
                                       add_message(repeat.first_op + i, &repeat);
                                   }
                               });
    }

    void add_message(std::uint32_t index, const Repeat* repeat) {
        const Op& op = schedule_.ops[index];
        if (!has_peer(op.kind)) {
            return;
        }
        MessagePlan message;
        message.slot = result_.slot_count;
        message.peer = op.peer;
        message.mask =
            repeat != nullptr ? static_cast<std::uint8_t>(iterations_in_flight(*repeat) - 1) : 0;
        message.outgoing = is_outgoing(op.kind);
        message.signals = is_order_only(op.kind);
        if (!message.signals) {
            message.address = address(message.outgoing ? op.source : op.target);
        }
        result_.slot_count += message.mask + 1U;
        const auto number = static_cast<std::uint32_t>(result_.messages.size());
        message_of_op_[index] = number;
        result_.messages.push_back(message);
        const auto peer = static_cast<std::uint64_t>(op.peer);
        numbered_.push_back(
            {peer << 2U | (message.outgoing ? 2U : 0U) | (message.signals ? 1U : 0U), number,
             repeat != nullptr ? number_of(*repeat) : kNone});
    }

    void number_steps() {
        std::sort(numbered_.begin(), numbered_.end());
        std::uint64_t next = 0;
        for (std::size_t i = 0; i < numbered_.size();) {
            const Numbered& first = numbered_[i];
            if (i == 0 || numbered_[i - 1].lane != first.lane) {
                next = 0;
            }
            const bool repeated = first.repeat != kNone;
            std::size_t last = i + 1;
            while (repeated && last < numbered_.size() && numbered_[last].lane == first.lane &&
                   numbered_[last].repeat == first.repeat) {
                ++last;
            }
            const std::size_t count = last - i;
            for (std::size_t k = 0; k < count; ++k) {
                MessagePlan& message = result_.messages[numbered_[i + k].message];
                message.first_step = static_cast<std::uint16_t>(next + k);
                message.steps_per_iteration = static_cast<std::uint16_t>(repeated ? count : 0);
            }
            next += count * (repeated ? schedule_.repeats[first.repeat].iterations : 1);
            i = last;
        }
    }

    Address address(const Slice& slice) {
        Address result;
        result.offset = slice.offset;
        result.length = slice.length;
        result.buffer = slice.buffer;
        result.stride = slice.stride;
        result.base = static_cast<std::uint32_t>(slice.buffer);
        if (slice.owner != schedule_.rank && slice.buffer == BufferKind::flag_slot) {
            const std::uint32_t flag_slot = flag_slot_of(slice.owner);
            result_.flag_slots[flag_slot].bytes =
                std::max(result_.flag_slots[flag_slot].bytes, slice.end());
            result.base = kOwnBases + flag_slot;
        } else if (slice.owner != schedule_.rank) {
            result.base = static_cast<std::uint32_t>(slice.owner);
            result.of_peer = true;
        } else if (schedule_.own_scratch_bytes > 0 && slice.buffer == BufferKind::scratch &&
                   slice.offset >= schedule_.own_scratch()) {
            result.base = kOwnScratchBase;
            result.offset -= schedule_.own_scratch();
        }
        result.moves = result.of_peer || result.stride != Stride::fixed;
        return result;
    }

    std::uint32_t flag_slot_of(Rank owner) {
        const auto [at, added] =
            flag_slot_of_.try_emplace(owner, static_cast<std::uint32_t>(result_.flag_slots.size()));
        if (added) {
            result_.flag_slots.push_back({owner, 0});
        }
        return at->second;
    }

    void lower_repeat(const Repeat& repeat) {
        repeat_ = &repeat;
        post_open_ = false;
        const auto body = static_cast<std::uint32_t>(result_.steps.size());
        for (std::uint32_t i = 0; i < repeat.op_count; ++i) {
            lower_op(repeat.first_op + i);
        }
        Step end = step_at(repeat.first_op + repeat.op_count - 1);
        end.kind = StepKind::end_iteration;
        end.first = body;
        append(end);
        repeat_ = nullptr;
        post_open_ = false;
    }

    Step step_at(std::uint32_t op) const {
        Step step;
        step.op = op;
        step.in_repeat = repeat_ != nullptr;
        step.first_wait = static_cast<std::uint32_t>(result_.waits.size());
        return step;
    }

    void lower_op(std::uint32_t index) {
        const Op& op = schedule_.ops[index];
        Step step = step_at(index);
        add_waits(index);
        switch (op.kind) {
        case OpKind::send:
        case OpKind::recv:
        case OpKind::signal:
        case OpKind::await: post(step, message_of_op_[index]); return;
        case OpKind::copy:
            if (only_waits(op)) {
                wait_for_flag_slot(step, op.source.owner);
                return;
            }
            step.kind = StepKind::copy;
            append_local(step, &op.target, {&op.source, 1});
            return;
        case OpKind::reduce:
            step.kind = StepKind::reduce;
            append_local(step, &op.target, operands_of(schedule_, op));
            return;
        case OpKind::publish:
            step.kind = StepKind::publish;
            append_local(step, nullptr, {&op.source, 1});
            return;
        case OpKind::share:
            step.kind = StepKind::share;
            append_local(step, nullptr, {&op.source, 1});
            return;
        }
    }

    void append_local(Step step, const Slice* target, std::span<const Slice> sources) {
        post_open_ = false;
        step.first = static_cast<std::uint32_t>(result_.addresses.size());
        step.count = static_cast<std::uint32_t>(sources.size());
        if (target != nullptr) {
            result_.addresses.push_back(address(*target));
        }
        for (const Slice& source : sources) {
            result_.addresses.push_back(address(source));
            const Address& added = result_.addresses.back();
            if (added.is_flag_slot()) {
                step.flag_slots_until = std::max(step.flag_slots_until, added.base - kOwnBases + 1);
            }
        }
        append(step);
    }

    /// Adds the step of an op that only waits for a flag slot. Such ops that follow one another
    /// become one step.
    void wait_for_flag_slot(Step step, Rank owner) {
        post_open_ = false;
        const std::uint32_t flag_slot = flag_slot_of(owner);
        const bool known = flag_slot < flag_slots_awaited_;
        const bool waits = result_.waits.size() > step.first_wait;
        if (known && !waits) {
            return;
        }
        if (!waits && !result_.steps.empty()) {
            Step& last = result_.steps.back();
            if (last.kind == StepKind::wait && last.op + last.count == step.op) {
                ++last.count;
                last.flag_slots_until = flag_slots_awaited_ = flag_slot + 1;
                return;
            }
        }
        step.kind = StepKind::wait;
        step.first = flag_slot;
        step.count = known ? 0 : 1;
        step.flag_slots_until = flag_slot + 1;
        append(step);
    }

    void post(Step step, std::uint32_t number) {
        const MessagePlan& message = result_.messages[number];
        if (repeat_ != nullptr) { // The slot's earlier user must have completed.
            result_.waits.push_back(
                {message.slot, message.mask, static_cast<std::uint8_t>(message.mask + 1), false});
        }
        step.kind = StepKind::post;
        step.carrier = carriers_.carrier == nullptr
                           ? std::uint8_t{0}
                           : carriers_.carrier(message.peer, carriers_.context);
        step.first = number;
        step.count = 1;
        const bool waits = result_.waits.size() > step.first_wait;
        if (post_open_ && !waits && result_.steps.back().carrier == step.carrier) {
            ++result_.steps.back().count;
            return;
        }
        append(step);
        post_open_ = repeat_ == nullptr;
    }

    /// Adds the messages that op `index` must wait for and that no step before it has waited for.
    void add_waits(std::uint32_t index) {
        const IndexRange range = dependency_range(schedule_, index);
        for (std::uint32_t i = range.first; i < range.last; ++i) {
            const Dependency dependency = schedule_.dependencies[i];
            const std::uint32_t number = message_of_op_[dependency.op];
            if (number == kNone || known_[number] == kForever) {
                continue; // Local ops complete when issued.
            }
            const MessagePlan& message = result_.messages[number];
            const bool within = repeat_ != nullptr && dependency.op >= repeat_->first_op;
            if (within && long_completed(message, dependency, index)) {
                continue;
            }
            // A wait on an earlier iteration's message is never left out: that an iteration has
            // waited for one says nothing about the message of another iteration.
            if (dependency.distance == 0 && !learn(number, within)) {
                continue;
            }
            result_.waits.push_back({message.slot, message.mask,
                                     static_cast<std::uint8_t>(dependency.distance),
                                     !within && message.mask > 0});
        }
    }

    /// Notes that the message has completed: in this iteration if `within` a repeat, else for good.
    /// Returns false if this was known.
    bool learn(std::uint32_t message, bool within) {
        const std::uint32_t until = within ? number_of(*repeat_) : kForever;
        return std::exchange(known_[message], until) != until;
    }

    /// Returns whether the message of `distance` iterations before must have completed, since a
    /// later iteration's message has taken its slot, for which it waited. If the message's op comes
    /// after `index` in the body, it has not been posted in this iteration yet.
    static bool long_completed(const MessagePlan& message, const Dependency& dependency,
                               std::uint32_t index) {
        return dependency.distance >= message.mask + (dependency.op < index ? 1U : 2U);
    }

    void append(Step step) {
        step.wait_count = static_cast<std::uint32_t>(result_.waits.size()) - step.first_wait;
        step.waits = step.wait_count > 0 || step.flag_slots_until > flag_slots_awaited_;
        flag_slots_awaited_ = std::max(flag_slots_awaited_, step.flag_slots_until);
        result_.steps.push_back(step);
    }

    /// Adds the last step, which waits for every message that no step outside repeats has waited
    /// for.
    void finish() {
        const Step end = step_at(static_cast<std::uint32_t>(schedule_.ops.size()));
        for (std::size_t i = 0; i < result_.messages.size(); ++i) {
            const MessagePlan& message = result_.messages[i];
            if (known_[i] != kForever) {
                result_.waits.push_back({message.slot, message.mask, 0, message.mask > 0});
            }
        }
        append(end);
    }

    const Schedule& schedule_;
    Carriers carriers_;
    LoweredSchedule result_;
    std::vector<std::uint32_t> message_of_op_;
    std::vector<Numbered> numbered_;
    std::vector<std::uint32_t> known_; ///< By message: the repeat in the current iteration of which
                                       ///< it is known to have completed, kForever, or kNone.
    std::unordered_map<Rank, std::uint32_t> flag_slot_of_; ///< Into LoweredSchedule::flag_slots.
    std::uint32_t flag_slots_awaited_ = 0;                 ///< How many a step has waited for.
    const Repeat* repeat_ = nullptr; ///< The repeat of the op that is being lowered, if any.
    bool post_open_ = false; ///< Whether the last step is a post to which messages can be added.
};

} // namespace

Result<LoweredSchedule> lower(const Schedule& schedule, Carriers carriers) {
    if (Status status = check_limits(schedule); !status.ok()) {
        return status;
    }
    LoweredSchedule lowered = Lowering(schedule, carriers).run();
    combine_where_it_arrives(schedule, lowered);
    return lowered;
}

std::string_view name(StepKind kind) {
    switch (kind) {
    case StepKind::post: return "post";
    case StepKind::copy: return "copy";
    case StepKind::reduce: return "reduce";
    case StepKind::reduce_parts: return "reduce_parts";
    case StepKind::publish: return "publish";
    case StepKind::share: return "share";
    case StepKind::wait: return "wait";
    case StepKind::end_iteration: return "end_iteration";
    case StepKind::finish: return "finish";
    }
    return "?";
}

} // namespace ucg::graph
