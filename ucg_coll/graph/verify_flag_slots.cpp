// The step of verify that checks the use of flag slots, as far as the messages do not show it that
// stand for flag slots in the other steps.
#include <algorithm>

#include "ucg_coll/graph/flag_slots.hpp"
#include "ucg_coll/graph/print.hpp"
#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {
namespace {

class FlagSlotCheck {
  public:
    FlagSlotCheck(std::span<const Schedule> schedules, SharesMemory shares_memory,
                  const void* context)
        : schedules_(schedules), shares_memory_(shares_memory), context_(context),
          shares_(schedules.size(), 0) {}

    Status run() {
        Status status;
        for (std::size_t i = 0; i < schedules_.size() && status.ok(); ++i) {
            const Schedule& schedule = schedules_[i];
            if (schedule.flag_slots != schedules_.front().flag_slots) {
                return failure(Code::invalid_argument,
                               "rank {}: takes {} sequence number of the flag slots, rank 0 does "
                               "otherwise: it "
                               "is the same on all ranks",
                               i, schedule.flag_slots ? "a" : "no");
            }
            status = check_shares(schedule, i);
        }
        for (std::size_t i = 0; i < schedules_.size() && status.ok(); ++i) {
            status = check_reads(schedules_[i]);
        }
        return status;
    }

  private:
    static Status reject(const Schedule& schedule, const Op& op, std::string_view reason) {
        return failure(Code::invalid_argument, "rank {}, op {} ({}): {}", schedule.rank,
                       &op - schedule.ops.data(), name(op.kind), reason);
    }

    /// Returns the repeat that `op` is in; null if it is in none.
    static const Repeat* repeat_of(const Schedule& schedule, const Op& op) {
        const auto index = static_cast<std::uint32_t>(&op - schedule.ops.data());
        const auto at = std::find_if(
            schedule.repeats.begin(), schedule.repeats.end(), [&](const Repeat& repeat) {
                return index >= repeat.first_op && index - repeat.first_op < repeat.op_count;
            });
        return at == schedule.repeats.end() ? nullptr : &*at;
    }
    static bool in_repeat(const Schedule& schedule, const Op& op) {
        return repeat_of(schedule, op) != nullptr;
    }

    /// Returns the end of a slice of `op`, the highest one of all iterations. A repeat without
    /// iterations, or without a rotation, is left for check_structure() to reject.
    static std::uint64_t end_of(const Schedule& schedule, const Op& op, const Slice& slice) {
        const Repeat* repeat = repeat_of(schedule, op);
        if (repeat == nullptr || repeat->iterations == 0 || repeat->rotation == 0) {
            return slice.end();
        }
        const std::uint64_t last = repeat->iterations - 1;
        const std::uint64_t turned = std::min<std::uint64_t>(last, repeat->rotation - 1);
        return std::max({slice.end(), at_iteration(slice, *repeat, turned).end(),
                         at_iteration(slice, *repeat, last).end()});
    }

    /// Checks that an own scratch slice of a schedule with flag slots lies in the scratch. Later
    /// steps would not notice: with_messages() makes the scratch longer, for what messages bring.
    static Status check_scratch(const Schedule& schedule, const Op& op, const Slice& slice) {
        const bool own = slice.buffer == BufferKind::scratch && slice.owner == schedule.rank;
        if (!schedule.flag_slots || !own || end_of(schedule, op, slice) <= schedule.scratch_bytes) {
            return Status();
        }
        return reject(schedule, op,
                      fmt::format("{} reaches beyond the buffer, which has {} bytes",
                                  slice_text(slice, schedule.rank), schedule.scratch_bytes));
    }

    Status check_shares(const Schedule& schedule, std::size_t rank) {
        for (const Op& op : schedule.ops) {
            if (op.kind != OpKind::share) {
                continue;
            }
            const Slice flag_slot = {0, schedule.flag_slot_bytes, schedule.rank,
                                     BufferKind::flag_slot, Stride::fixed};
            if (!schedule.flag_slots) {
                return reject(schedule, op,
                              "the collective takes no sequence number of the flag slots");
            }
            if (++shares_[rank] > 1) {
                return reject(schedule, op, "a rank shares at most once");
            }
            if (in_repeat(schedule, op)) {
                return reject(schedule, op, "stands in a repeat");
            }
            if (op.source.owner != schedule.rank || op.source.buffer == BufferKind::flag_slot) {
                return reject(schedule, op, "only own input, output and scratch are shared");
            }
            if (op.target != flag_slot || op.source.length != flag_slot.length) {
                return reject(schedule, op,
                              "its target is the whole flag slot, as long as its source");
            }
        }
        if (shares_[rank] == 0 && schedule.flag_slot_bytes > 0) {
            return failure(Code::invalid_argument,
                           "rank {}: has a flag slot of {} bytes and shares nothing", rank,
                           schedule.flag_slot_bytes);
        }
        return Status();
    }

    Status check_reads(const Schedule& schedule) const {
        for (const Op& op : schedule.ops) {
            Status status;
            if (has_source(op.kind)) {
                status = check_slice(schedule, op, op.source, op.kind == OpKind::copy);
            }
            if (status.ok() && has_target(op.kind) && op.kind != OpKind::share) {
                status = check_slice(schedule, op, op.target, false);
            }
            // If the operands are not a range of the array, check_structure() says so.
            const bool reduces =
                has_operands(op.kind) &&
                std::uint64_t{op.first_operand} + op.operand_count <= schedule.operands.size();
            for (std::uint32_t i = 0; reduces && status.ok() && i < op.operand_count; ++i) {
                status = check_slice(schedule, op, schedule.operands[op.first_operand + i], true);
            }
            if (!status.ok()) {
                return status;
            }
        }
        return Status();
    }

    Status check_slice(const Schedule& schedule, const Op& op, const Slice& slice,
                       bool may_read) const {
        if (slice.buffer != BufferKind::flag_slot) {
            return check_scratch(schedule, op, slice);
        }
        const std::string text = slice_text(slice, schedule.rank);
        if (!may_read || in_repeat(schedule, op)) {
            return reject(schedule, op,
                          fmt::format("{}: flag slots are written by share, and read by copy and "
                                      "reduce, outside repeats",
                                      text));
        }
        const auto owner = static_cast<std::size_t>(slice.owner);
        if (slice.owner < 0 || owner >= schedules_.size() || slice.owner == schedule.rank) {
            return reject(schedule, op, fmt::format("{} is no peer's", text));
        }
        if (shares_memory_ == nullptr || !shares_memory_(schedule.rank, slice.owner, context_)) {
            return reject(schedule, op, fmt::format("{} is out of reach", text));
        }
        if (shares_[owner] == 0) {
            return reject(schedule, op, fmt::format("rank {} shares nothing", slice.owner));
        }
        if (slice.offset > schedules_[owner].flag_slot_bytes ||
            slice.length > schedules_[owner].flag_slot_bytes - slice.offset) {
            return reject(schedule, op,
                          fmt::format("{} reaches beyond what rank {} shares, {} bytes", text,
                                      slice.owner, schedules_[owner].flag_slot_bytes));
        }
        return Status();
    }

    std::span<const Schedule> schedules_;
    SharesMemory shares_memory_;
    const void* context_;
    std::vector<unsigned> shares_; // By rank.
};

} // namespace

Status check_flag_slots(const World& world) {
    return FlagSlotCheck(world.originals, world.shares_memory, world.context).run();
}

} // namespace ucg::graph::proof
