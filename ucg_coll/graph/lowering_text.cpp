// The text form of lowered schedules, for people.
#include <fmt/format.h>

#include "ucg_coll/graph/lowering.hpp"
#include "ucg_coll/graph/print.hpp"

namespace ucg::graph {
namespace {

class Printer {
  public:
    explicit Printer(const LoweredSchedule& lowered) : lowered_(lowered) {}

    std::string run() {
        for (std::size_t i = 0; i < lowered_.steps.size(); ++i) {
            add(i, lowered_.steps[i]);
        }
        return std::move(text_);
    }

  private:
    void add(std::size_t index, const Step& step) {
        const bool opens =
            step.in_repeat && (index == 0 || !lowered_.steps[index - 1].in_repeat ||
                               lowered_.steps[index - 1].kind == StepKind::end_iteration);
        if (opens) {
            text_ += fmt::format("repeat {} times\n", lowered_.repeats[repeat_].iterations);
        }
        repeat_ += step.kind == StepKind::end_iteration ? 1 : 0;
        text_ += fmt::format("{}{}: {}{}{}\n", step.in_repeat ? "  " : "", index, name(step.kind),
                             operands(step), waits(step));
        for (std::uint32_t i = 0; step.kind == StepKind::post && i < step.count; ++i) {
            text_ += (step.in_repeat ? "    " : "  ") + message(lowered_.messages[step.first + i]);
        }
    }

    std::string operands(const Step& step) const {
        const std::span addresses = lowered_.addresses_of(step);
        std::string text;
        switch (step.kind) {
        case StepKind::copy:
        case StepKind::reduce:
        case StepKind::reduce_parts:
            for (const Address& source : addresses.subspan(1)) {
                text += ' ' + slice(source);
            }
            return text + " -> " + slice(addresses.front());
        case StepKind::publish:
        case StepKind::share: return ' ' + slice(addresses.front());
        case StepKind::end_iteration: return fmt::format(", back to {}", step.first);
        case StepKind::post:
        case StepKind::wait:
        case StepKind::finish: break;
        }
        return text;
    }

    std::string waits(const Step& step) const {
        std::string text;
        for (const Wait& wait : lowered_.waits_of(step)) {
            text += text.empty() ? " after slot " : ", ";
            text += wait.mask == 0 ? std::to_string(wait.slot)
                                   : fmt::format("{}-{}", wait.slot, wait.slot + wait.mask);
            text += wait.distance > 0 ? fmt::format("(-{})", wait.distance) : "";
            text += wait.every_slot ? "(all)" : "";
        }
        return text + (step.flag_slots_until > 0 && step.waits
                           ? fmt::format(" after flag_slot {}", flag_slots(step))
                           : "");
    }

    /// Returns the ranks whose flag slots the step waits for, or an earlier one has waited for.
    std::string flag_slots(const Step& step) const {
        std::string text;
        for (std::uint32_t i = 0; i < step.flag_slots_until; ++i) {
            text += fmt::format("{}{}", i > 0 ? ", " : "", lowered_.flag_slots[i].owner);
        }
        return text;
    }

    std::string message(const MessagePlan& message) const {
        const std::string_view verb = message.signals    ? (message.outgoing ? "signal" : "await")
                                      : message.outgoing ? "send to"
                                                         : "recv from";
        const std::string steps =
            message.steps_per_iteration == 0
                ? std::to_string(message.first_step)
                : fmt::format("{} + {} k", message.first_step, message.steps_per_iteration);
        const std::string slots =
            message.mask == 0 ? std::to_string(message.slot)
                              : fmt::format("{}-{}", message.slot, message.slot + message.mask);
        const std::string bytes = message.signals ? "" : fmt::format(" {}", slice(message.address));
        return fmt::format("{} {}{}, step {}, slot {}\n", verb, message.peer, bytes, steps, slots);
    }

    /// Returns the text of a slice as slice_text() writes it. The schedule's rank is not known
    /// here, so kNoRank stands for it.
    std::string slice(const Address& address) const {
        constexpr Rank kSelf = kNoRank;
        Slice slice;
        slice.offset = address.offset;
        slice.length = address.length;
        slice.buffer = address.buffer;
        slice.stride = address.stride;
        slice.owner = address.of_peer          ? static_cast<Rank>(address.base)
                      : address.is_flag_slot() ? lowered_.flag_slots[address.base - kOwnBases].owner
                                               : kSelf;
        return fmt::format("{}{}", address.is_own_scratch() ? "own_" : "",
                           slice_text(slice, kSelf));
    }

    const LoweredSchedule& lowered_;
    std::string text_;
    std::size_t repeat_ = 0;
};

} // namespace

std::string to_text(const LoweredSchedule& lowered) {
    return Printer(lowered).run();
}

} // namespace ucg::graph
