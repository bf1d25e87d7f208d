// The step of verify that proves memory and meaning: it runs all programs on expressions instead of
// data, in topological order, and compares what the outputs hold in the end with the specification
// of the collective.
#include <algorithm>
#include <unordered_map>

#include "ucg_coll/graph/expression.hpp"
#include "ucg_coll/graph/print.hpp"
#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph::proof {
namespace {

/// What a stretch of memory holds: bytes of an expression from byte `position` on.
struct Value {
    Expression expression = kUndefined;
    std::uint64_t position = 0;

    Value skip(std::uint64_t bytes) const {
        return {expression, expression == kUndefined ? 0 : position + bytes};
    }
    bool continued_by(const Value& next, std::uint64_t bytes) const {
        const Value here = skip(bytes);
        return here.expression == next.expression && here.position == next.position;
    }
};
using Memory = IntervalMap<Value>;
using Stretches = std::vector<Memory::Stretch>;

class Execution {
  public:
    explicit Execution(World& world) : world_(world), expressions_(world.rank_count()) {}

    Status run();

  private:
    void fill();
    Status step(Event event);
    Status reduce(OpRef ref);
    bool may_have_gaps(OpRef ref) const;
    Status read(OpRef ref, const Slice& slice, Stretches& into) const;
    void write(const Slice& slice, const Stretches& parts) {
        memory_[World::place(slice)].write(slice.offset, parts);
    }
    Status combine(OpRef ref, Stretches& accumulated, const Stretches& operand, const Slice& slice);
    Status check_elements(OpRef ref, const Slice& slice, const Stretches& parts) const;
    Status check_output(Rank rank);
    Status check_extra_writes(Rank rank, std::vector<Expected> parts) const;
    Status check_stretch(Rank rank, const Expected& must, const Memory::Stretch& is);
    Status check_same_as_first(Rank rank) const;
    Status wrong(Rank rank, std::uint64_t begin, std::uint64_t end, std::string_view reason) const;

    World& world_;
    Expressions expressions_;
    std::vector<Memory> memory_;                     // By place().
    std::unordered_map<OpRef, Stretches> in_flight_; // By receive: what was sent to it.
};

/// Makes the memory as it is at the start: contributions lie where the request says, and all else
/// is undefined.
void Execution::fill() {
    for (Rank rank = 0; rank < world_.rank_count(); ++rank) {
        for (const BufferKind kind : kBufferKinds) {
            memory_.emplace_back(buffer_bytes(world_.program(rank), kind));
        }
        for (const Given& given : proof::given(world_, rank)) {
            if (given.end > given.begin) {
                memory_[World::place(rank, given.buffer)].write(
                    given.begin,
                    {{0, given.end - given.begin, {Expressions::leaf(rank), given.position}}});
            }
        }
    }
}

/// Returns whether `ref` may read bytes that were never written. Sends and copies to scratch may:
/// these bytes then count as never written at the target, too.
bool Execution::may_have_gaps(OpRef ref) const {
    const Op& op = world_.op(ref);
    return op.kind == OpKind::send ||
           (op.kind == OpKind::copy && op.target.buffer == BufferKind::scratch);
}

Status Execution::read(OpRef ref, const Slice& slice, Stretches& into) const {
    into = memory_[World::place(slice)].read(slice.offset, slice.end());
    for (const Memory::Stretch& part : into) {
        if (part.value.expression == kUndefined && !may_have_gaps(ref)) {
            Slice undefined = slice;
            undefined.offset += part.begin;
            undefined.length = part.end - part.begin;
            return reject(world_, ref,
                          fmt::format("reads {} before it was written",
                                      slice_text(undefined, world_.rank_of[ref])));
        }
    }
    return Status();
}

/// Checks that every element of an operand is one whole element of a contribution or expression.
Status Execution::check_elements(OpRef ref, const Slice& slice, const Stretches& parts) const {
    const std::uint64_t element = world_.program_of(ref).element_bytes;
    for (const Memory::Stretch& part : parts) {
        if (part.begin % element != 0 || part.value.position % element != 0) {
            return reject(world_, ref,
                          fmt::format("{} is cut inside an element of {} bytes",
                                      slice_text(slice, world_.rank_of[ref]), element));
        }
    }
    return Status();
}

/// accumulated = accumulated op operand, stretch by stretch of both.
Status Execution::combine(OpRef ref, Stretches& accumulated, const Stretches& operand,
                          const Slice& slice) {
    Stretches result;
    std::size_t i = 0;
    std::size_t j = 0;
    for (std::uint64_t begin = 0; i < accumulated.size() && j < operand.size();) {
        const Memory::Stretch& a = accumulated[i];
        const Memory::Stretch& b = operand[j];
        const std::uint64_t end = std::min(a.end, b.end);
        const Value left = a.value.skip(begin - a.begin);
        const Value right = b.value.skip(begin - b.begin);
        if (left.position != right.position) {
            return reject(world_, ref,
                          fmt::format("combines byte {} of one contribution with byte {} of "
                                      "another, in {}",
                                      left.position, right.position,
                                      slice_text(slice, world_.rank_of[ref])));
        }
        const Expression both = expressions_.combine(left.expression, right.expression);
        result.push_back({begin, end, {both, left.position}});
        begin = end;
        i += a.end == end ? 1 : 0;
        j += b.end == end ? 1 : 0;
    }
    accumulated = std::move(result);
    return Status();
}

/// Does what an op does at an event. A send reads when it starts; all other ops read and write when
/// they complete.
Status Execution::step(Event event) {
    const Op& op = world_.op(event.op);
    if (event.completes == (op.kind == OpKind::send)) {
        return Status();
    }
    Stretches value;
    Status status;
    switch (op.kind) {
    case OpKind::send:
        status = read(event.op, op.source, value);
        if (status.ok()) {
            in_flight_.emplace(world_.match[event.op], std::move(value));
        }
        break;
    case OpKind::recv: write(op.target, in_flight_.extract(event.op).mapped()); break;
    case OpKind::copy:
        status = read(event.op, op.source, value);
        if (status.ok()) {
            write(op.target, value);
        }
        break;
    case OpKind::reduce: status = reduce(event.op); break;
    case OpKind::signal:
    case OpKind::await:
    case OpKind::publish: break;                  // Nothing is written.
    case OpKind::share: UCG_ASSERT(false); break; // Was rewritten as messages: flag_slots.hpp.
    }
    return status;
}

Status Execution::reduce(OpRef ref) {
    Stretches value;
    const std::span<const Slice> operands = world_.operands(ref);
    for (std::size_t i = 0; i < operands.size(); ++i) {
        Stretches operand;
        Status status = read(ref, operands[i], operand);
        if (status.ok()) {
            status = check_elements(ref, operands[i], operand);
        }
        if (status.ok() && i > 0) {
            status = combine(ref, value, operand, operands[i]);
        }
        if (!status.ok()) {
            return status;
        }
        if (i == 0) {
            value = std::move(operand);
        }
    }
    write(world_.op(ref).target, value);
    return Status();
}

Status Execution::wrong(Rank rank, std::uint64_t begin, std::uint64_t end,
                        std::string_view reason) const {
    OpRef writer = kNone;
    world_.accesses[World::place(rank, BufferKind::output)].visit(
        begin, end, [&](const auto& part) { writer = part.value.writer; });
    const std::string by = writer == kNone ? "no op" : world_.describe(writer);
    return failure(Code::invalid_argument, "rank {}: output[{}:{}] (written by {}) {}", rank, begin,
                   end, by, reason);
}

Status Execution::check_stretch(Rank rank, const Expected& must, const Memory::Stretch& is) {
    const Value value = is.value;
    if (value.expression == kUndefined) {
        return wrong(rank, is.begin, is.end, "is left undefined");
    }
    const auto problem = expressions_.find_problem(value.expression, must.first, must.last,
                                                   world_.request(rank).commutative);
    if (problem) {
        return wrong(rank, is.begin, is.end, *problem);
    }
    const std::uint64_t position = must.position + (is.begin - must.begin);
    if (value.position != position) {
        return wrong(rank, is.begin, is.end,
                     fmt::format("holds bytes from {} of the contribution, must be from {}",
                                 value.position, position));
    }
    return Status();
}

/// Checks that bytes of the output which the collective leaves undefined are not written, and that
/// the blocks of the output, `parts`, do not overlap.
Status Execution::check_extra_writes(Rank rank, std::vector<Expected> parts) const {
    std::sort(parts.begin(), parts.end(),
              [](const Expected& a, const Expected& b) { return a.begin < b.begin; });
    parts.push_back(
        {world_.program(rank).output_bytes, world_.program(rank).output_bytes, 0, 0, 0});
    const auto& accesses = world_.accesses[World::place(rank, BufferKind::output)];
    std::uint64_t covered = 0;
    Status status;
    for (const Expected& part : parts) {
        if (part.begin < covered && part.end > part.begin) {
            return failure(Code::invalid_argument,
                           "rank {}: output[{}:{}] lies in two blocks of the request", rank,
                           part.begin, std::min(covered, part.end));
        }
        accesses.visit(covered, part.begin, [&](const auto& stretch) {
            if (stretch.value.writer != kNone && status.ok()) {
                status =
                    wrong(rank, stretch.begin, stretch.end, "is not the collective's to write");
            }
        });
        covered = std::max(covered, part.end);
    }
    return status;
}

/// Checks that the output holds the same expressions as on rank 0: floating-point operators are not
/// associative, so all ranks must combine in the same order.
Status Execution::check_same_as_first(Rank rank) const {
    const auto same = [&](std::uint64_t begin, std::uint64_t end, const Value& value) {
        bool equal = true;
        memory_[World::place(0, BufferKind::output)].visit(begin, end, [&](const auto& first) {
            equal = equal && first.value.expression == value.expression;
        });
        return equal;
    };
    const std::uint64_t bytes = world_.program(rank).output_bytes;
    Status status;
    memory_[World::place(rank, BufferKind::output)].visit(0, bytes, [&](const auto& part) {
        if (status.ok() && !same(part.begin, part.end, part.value)) {
            status = wrong(rank, part.begin, part.end,
                           "is combined in another order than on rank 0, so the bits may differ");
        }
    });
    return status;
}

Status Execution::check_output(Rank rank) {
    const std::vector<Expected> parts = expected(world_, rank);
    Status status;
    for (const Expected& must : parts) {
        memory_[World::place(rank, BufferKind::output)].visit(
            must.begin, must.end, [&](const Memory::Stretch& is) {
                status = status.ok() ? check_stretch(rank, must, is) : status;
            });
        if (!status.ok()) {
            return status;
        }
    }
    status = check_extra_writes(rank, parts);
    if (status.ok() && world_.request(rank).collective == Collective::allreduce) {
        status = check_same_as_first(rank);
    }
    return status;
}

Status Execution::run() {
    fill();
    Status status;
    for (const Event event : world_.events) {
        if (!status.ok()) {
            return status;
        }
        status = step(event);
    }
    for (Rank rank = 0; rank < world_.rank_count() && status.ok(); ++rank) {
        status = check_output(rank);
    }
    return status;
}

} // namespace

Status check_meaning(World& world) {
    return world.request(0).collective == Collective::barrier ? check_barrier(world)
                                                              : Execution(world).run();
}

} // namespace ucg::graph::proof
