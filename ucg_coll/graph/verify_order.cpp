// The step of verify that proves order: there are no two unordered accesses to one byte of which
// one writes.
//
// An access lasts from the start of its op to the completion. X is ordered before Y if X's
// completion happens before Y's start, over dependencies, messages and signals. A send that has
// completed tells its rank nothing about the receiver, since it may be buffered; so the edge from
// start(recv) to complete(send), which progress relies on, does not count here.
#include <utility>

#include "ucg_coll/graph/happens_before.hpp"
#include "ucg_coll/graph/print.hpp"

namespace ucg::graph::proof {
namespace {

class OrderCheck {
  public:
    explicit OrderCheck(World& world) : world_(world), before_(world) {
        for (Rank rank = 0; rank < world.rank_count(); ++rank) {
            const Schedule& program = world.program(rank);
            for (const BufferKind kind : kBufferKinds) {
                world.accesses.emplace_back(buffer_bytes(program, kind));
            }
        }
    }

    Status run() {
        Status status;
        for (const Event event : world_.events) {
            if (event.completes && status.ok()) {
                status = check(event.op);
            }
        }
        return status;
    }

  private:
    using Map = IntervalMap<Accesses>;

    Status check(OpRef ref) {
        const Op& op = world_.op(ref);
        Status status;
        if (has_source(op.kind)) {
            status = read(ref, op.source);
        }
        for (const Slice& operand : world_.operands(ref)) {
            status = status.ok() ? read(ref, operand) : status;
        }
        return status.ok() && has_target(op.kind) ? write(ref, op.target) : status;
    }

    bool ordered(OpRef x, OpRef y) { return x == kNone || x == y || before_.ordered(x, y); }

    enum class Access { read, write };

    /// Returns the error for two unordered accesses. Of two ops of one rank it names the later one
    /// in program order first, whichever comes first in the order of events.
    Status race(OpRef later, Access access, OpRef earlier, Access other, const Slice& slice,
                const Map::Stretch& where) const {
        if (world_.rank_of[later] == world_.rank_of[earlier] && later < earlier) {
            std::swap(later, earlier);
            std::swap(access, other);
        }
        const Rank self = world_.rank_of[later];
        Slice common = slice;
        common.offset = where.begin;
        common.length = where.end - where.begin;
        return reject(world_, later,
                      fmt::format("race: {} {} while {} may still {} it",
                                  access == Access::read ? "reads" : "writes",
                                  slice_text(common, self),
                                  self == world_.rank_of[earlier] ? world_.describe_op(earlier)
                                                                  : world_.describe(earlier),
                                  other == Access::read ? "read" : "write"));
    }

    Status read(OpRef ref, const Slice& slice) {
        if (slice.buffer == BufferKind::input) {
            return Status(); // The input is never written, see check_ops().
        }
        Status status;
        parts_.clear();
        Map& map = world_.accesses[World::place(slice)];
        map.visit(slice.offset, slice.end(), [&](Map::Stretch part) {
            if (!ordered(part.value.writer, ref) && status.ok()) {
                status = race(ref, Access::read, part.value.writer, Access::write, slice, part);
            }
            world_.readers.push_back({ref, part.value.readers});
            part.value.readers = static_cast<std::uint32_t>(world_.readers.size() - 1);
            part.begin -= slice.offset;
            part.end -= slice.offset;
            parts_.push_back(part);
        });
        map.write(slice.offset, parts_);
        return status;
    }

    Status write(OpRef ref, const Slice& slice) {
        Status status;
        Map& map = world_.accesses[World::place(slice)];
        map.visit(slice.offset, slice.end(), [&](const Map::Stretch& part) {
            if (status.ok()) {
                status = check_write(ref, slice, part);
            }
        });
        if (slice.length > 0) {
            map.write(slice.offset, {{0, slice.length, Accesses{ref, kNone}}});
        }
        return status;
    }

    Status check_write(OpRef ref, const Slice& slice, const Map::Stretch& part) {
        const Accesses& accesses = part.value;
        if (!ordered(accesses.writer, ref)) {
            return race(ref, Access::write, accesses.writer, Access::write, slice, part);
        }
        for (std::uint32_t i = accesses.readers; i != kNone; i = world_.readers[i].next) {
            if (!ordered(world_.readers[i].op, ref)) {
                return race(ref, Access::write, world_.readers[i].op, Access::read, slice, part);
            }
        }
        if (slice.buffer == BufferKind::output && accesses.writer != kNone) {
            return reject(world_, ref,
                          fmt::format("writes {} a second time, after {}",
                                      slice_text(slice, world_.rank_of[ref]),
                                      world_.describe(accesses.writer)));
        }
        return Status();
    }

    World& world_;
    HappensBefore before_;
    std::vector<Map::Stretch> parts_;
};

} // namespace

Status check_order(World& world) {
    return OrderCheck(world).run();
}

} // namespace ucg::graph::proof
