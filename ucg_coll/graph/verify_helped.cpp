// The step of verify that proves, where ranks help one another, that the units which one rank may
// do for another are independent.
#include <algorithm>

#include "ucg_coll/graph/helped.hpp"
#include "ucg_coll/graph/print.hpp"
#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph {

std::vector<Rank> ranks_named(const Schedule& schedule, const Repeat& repeat) {
    std::vector<Rank> ranks = {schedule.rank};
    for (std::uint32_t i = 0; i < repeat.op_count; ++i) {
        const Op& op = schedule.ops[repeat.first_op + i];
        if (has_source(op.kind)) {
            ranks.push_back(op.source.owner);
        }
        if (has_target(op.kind)) {
            ranks.push_back(op.target.owner);
        }
        for (const Slice& operand : operands_of(schedule, op)) {
            ranks.push_back(operand.owner);
        }
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
}

namespace proof {
namespace {

/// An access of a unit to bytes [begin, end) of some rank's input or output.
struct Access {
    std::size_t place = 0; ///< Of the buffer: World::place().
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t unit = 0; ///< The unit's number among the units of all ranks.
    bool writes = false;
    Rank rank = kNoRank;  ///< The rank whose schedule has the unit.
    std::uint32_t op = 0; ///< The op in that schedule.
};

class HelpCheck {
  public:
    explicit HelpCheck(std::span<const Schedule> schedules) : schedules_(schedules) {}

    Status run() {
        Status status;
        for (const Schedule& schedule : schedules_) {
            status = status.ok() ? check(schedule) : status;
        }
        return status.ok() ? check_apart() : status;
    }

  private:
    static Status refuse(const Schedule& schedule, std::uint32_t op, std::string_view reason) {
        return failure(Code::invalid_argument, "rank {}, op {} ({}): {}", schedule.rank, op,
                       op_text(schedule, schedule.ops[op]), reason);
    }

    Status check(const Schedule& schedule) {
        Status status = check_header(schedule);
        std::uint32_t next = 0;
        for (const Repeat& repeat : schedule.repeats) {
            for (; status.ok() && next < repeat.first_op; ++next) {
                status = check_outside(schedule, next);
            }
            status = status.ok() ? check_part(schedule, repeat) : status;
            next = repeat.first_op + repeat.op_count;
        }
        for (; status.ok() && next < schedule.ops.size(); ++next) {
            status = check_outside(schedule, next);
        }
        return status;
    }

    Status check_header(const Schedule& schedule) const {
        const auto wrong = [&](std::string_view field, auto is, auto must) {
            return failure(Code::invalid_argument,
                           "rank {}: {} is {}, must be {} where ranks help one another",
                           schedule.rank, field, is, must);
        };
        if (!schedule.helped) {
            return wrong("helped", false, true);
        }
        if (!schedule.exposed) {
            return wrong("exposed", false, true);
        }
        if (schedule.flag_slots) {
            return wrong("flag_slots", true, false);
        }
        if (schedule.staging_buffer_bytes > 0) {
            return wrong("staging_buffer_bytes", schedule.staging_buffer_bytes, 0);
        }
        if (schedule.rank_count > kHelpedRanksMax) {
            return wrong("rank_count", schedule.rank_count,
                         fmt::format("{} at the most", kHelpedRanksMax));
        }
        if (schedule.repeats.size() > kHelpedPartsMax) {
            return wrong("number_of_repeats", schedule.repeats.size(),
                         fmt::format("{} at the most", kHelpedPartsMax));
        }
        return {};
    }

    /// Checks an op outside of repeats, which no other rank would do: it is a signal or an await.
    static Status check_outside(const Schedule& schedule, std::uint32_t index) {
        const OpKind kind = schedule.ops[index].kind;
        return kind == OpKind::signal || kind == OpKind::await
                   ? Status()
                   : refuse(schedule, index,
                            "outside of repeats ranks that are helped signal and await, no more");
    }

    Status check_part(const Schedule& schedule, const Repeat& repeat) {
        if (repeat.iterations > kHelpedUnitsMax) {
            return refuse(schedule, repeat.first_op, "too many iterations to be counted");
        }
        for (std::uint32_t i = 0; i < repeat.op_count; ++i) {
            const std::uint32_t index = repeat.first_op + i;
            const Op& op = schedule.ops[index];
            if (op.kind != OpKind::copy && op.kind != OpKind::reduce) {
                return refuse(schedule, index, "ranks do copies and reductions for one another");
            }
            if (op.kind == OpKind::reduce && op.target.buffer != BufferKind::scratch) {
                return refuse(schedule, index,
                              "combines elsewhere than in scratch, which whoever does it has");
            }
            Status status = check_scratch(schedule, repeat, index);
            if (!status.ok()) {
                return status;
            }
        }
        for (std::uint64_t k = 0; k < repeat.iterations; ++k) {
            note_unit(schedule, repeat, k);
        }
        return {};
    }

    /// Checks the scratch slices of an op. A unit uses the scratch of the rank that does it, which
    /// holds only what earlier ops of the unit have written.
    static Status check_scratch(const Schedule& schedule, const Repeat& repeat,
                                std::uint32_t index) {
        const Op& op = schedule.ops[index];
        const auto written_before = [&](const Slice& slice) {
            for (std::uint32_t i = repeat.first_op; i < index; ++i) {
                if (schedule.ops[i].target == slice) {
                    return true;
                }
            }
            return false;
        };
        const auto is_wrong = [&](const Slice& slice, bool read) {
            return slice.buffer == BufferKind::scratch &&
                   (slice.owner != schedule.rank || slice.stride != Stride::fixed ||
                    (read && !written_before(slice)));
        };
        bool wrong = is_wrong(op.target, false);
        if (op.kind == OpKind::copy) {
            wrong = wrong || is_wrong(op.source, true);
        }
        for (const Slice& operand : operands_of(schedule, op)) {
            wrong = wrong || is_wrong(operand, true);
        }
        return wrong ? refuse(schedule, index,
                              "names scratch that is not its own, that moves, or that no op before "
                              "it in the iteration has written")
                     : Status();
    }

    void note_unit(const Schedule& schedule, const Repeat& repeat, std::uint64_t k) {
        for (std::uint32_t i = 0; i < repeat.op_count; ++i) {
            const std::uint32_t index = repeat.first_op + i;
            const Op& op = schedule.ops[index];
            const auto note = [&](const Slice& slice, bool writes) {
                const Slice there = at_iteration(slice, repeat, k);
                if (there.buffer != BufferKind::scratch) {
                    accesses_.push_back({World::place(there), there.offset, there.end(),
                                         unit_count_, writes, schedule.rank, index});
                }
            };
            if (has_source(op.kind)) {
                note(op.source, false);
            }
            for (const Slice& operand : operands_of(schedule, op)) {
                note(operand, false);
            }
            note(op.target, true);
        }
        ++unit_count_;
    }

    /// Checks that no unit writes what another one reads or writes.
    Status check_apart() {
        std::sort(accesses_.begin(), accesses_.end(), [](const Access& a, const Access& b) {
            return std::pair(a.place, a.begin) < std::pair(b.place, b.begin);
        });
        for (std::size_t i = 0; i < accesses_.size(); ++i) {
            const Access& a = accesses_[i];
            for (std::size_t j = i + 1; j < accesses_.size() && accesses_[j].place == a.place &&
                                        accesses_[j].begin < a.end;
                 ++j) {
                const Access& b = accesses_[j];
                if (a.unit != b.unit && (a.writes || b.writes)) {
                    return refuse(schedules_[static_cast<std::size_t>(a.rank)], a.op,
                                  fmt::format("touches what op {} of rank {} touches in another "
                                              "unit, and one of the two writes",
                                              b.op, b.rank));
                }
            }
        }
        return {};
    }

    std::span<const Schedule> schedules_;
    std::vector<Access> accesses_;
    std::uint64_t unit_count_ = 0;
};

} // namespace

Status check_helped(const World& world) {
    const bool any = std::any_of(world.originals.begin(), world.originals.end(),
                                 [](const Schedule& schedule) { return schedule.helped; });
    return any ? HelpCheck(world.originals).run() : Status();
}

} // namespace proof
} // namespace ucg::graph
