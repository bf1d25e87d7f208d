#include "ucg_coll/graph/flag_slots.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

#include "ucg_coll/base/base.hpp"
#include "ucg_coll/graph/verify_internal.hpp"

namespace ucg::graph {
namespace {

/// Rewrites one rank's schedule, op by op.
class Rewriter {
  public:
    /// `flag_slot_bytes` has the bytes that each rank shares, and `readers` the ranks that read
    /// this rank's flag slot.
    Rewriter(Schedule original, std::span<const std::uint64_t> flag_slot_bytes,
             std::span<const Rank> readers)
        : original_(std::move(original)), flag_slot_bytes_(flag_slot_bytes), readers_(readers),
          result_(original_), replaced_(original_.ops.size()) {
        result_.flag_slots = false;
        result_.flag_slot_bytes = 0;
        result_.ops.clear();
        result_.dependencies.clear();
    }

    Schedule run() {
        for (std::uint32_t i = 0; i < original_.ops.size(); ++i) {
            origins_.resize(result_.ops.size(), i > 0 ? i - 1 : 0);
            if (original_.ops[i].kind == OpKind::share) {
                share(i);
            } else {
                rewrite(i);
            }
        }
        origins_.resize(result_.ops.size(), static_cast<std::uint32_t>(original_.ops.size()) - 1);
        return std::move(result_);
    }

    /// Returns, by op of the result, the op of the original that it stands for.
    proof::Origins origins() { return std::move(origins_); }

  private:
    using OpIds = std::vector<std::uint32_t>;

    /// The op that receives a peer's share, and the place to which it does.
    struct Arrival {
        std::uint32_t op = 0;
        std::uint64_t offset = 0; // In scratch.
    };

    /// Returns the ops of the result on which op `index` of the original depends.
    OpIds dependencies(std::uint32_t index) const {
        OpIds on;
        const IndexRange range = dependency_range(original_, index);
        for (std::uint32_t d = range.first; d < range.last; ++d) {
            const OpIds& ops = replaced_[original_.dependencies[d].op];
            on.insert(on.end(), ops.begin(), ops.end());
        }
        return on;
    }

    std::uint32_t add(Op op, const OpIds& on) {
        op.first_dependency = static_cast<std::uint32_t>(result_.dependencies.size());
        for (const std::uint32_t other : on) {
            Dependency dependency;
            dependency.op = other & (kOpsMax - 1);
            result_.dependencies.push_back(dependency);
        }
        result_.ops.push_back(op);
        return static_cast<std::uint32_t>(result_.ops.size() - 1);
    }

    Slice new_scratch(std::uint64_t bytes) {
        const std::uint64_t offset = result_.scratch_bytes;
        result_.scratch_bytes = round_up(checked_add(offset, bytes), kCacheLine);
        if (result_.own_scratch_bytes > 0) {
            result_.own_scratch_bytes += result_.scratch_bytes - offset;
        }
        return {offset, bytes, original_.rank, BufferKind::scratch, Stride::fixed};
    }

    /// Writes a share as messages. A copy is sent, so that no op that changes the source waits for
    /// the readers.
    void share(std::uint32_t index) {
        const Slice& source = original_.ops[index].source;
        OpIds on = dependencies(index);
        Op message;
        message.kind = OpKind::signal;
        if (source.length > 0) {
            Op copy;
            copy.source = source;
            copy.target = new_scratch(source.length);
            on = {add(copy, on)};
            message.kind = OpKind::send;
            message.source = copy.target;
        }
        replaced_[index] = on;
        for (const Rank reader : readers_) {
            message.peer = reader;
            add(message, on);
        }
    }

    void rewrite(std::uint32_t index) {
        Op op = original_.ops[index];
        OpIds on = dependencies(index);
        for (const Rank owner : flag_slots_read(original_, op)) {
            on.push_back(arrival(owner).op);
        }
        for (std::uint32_t i = 0; has_operands(op.kind) && i < op.operand_count; ++i) {
            Slice& operand = result_.operands[op.first_operand + i];
            operand = received(operand);
        }
        if (only_waits(op)) { // It stays a local op, which holds up the ops behind it.
            op.source = {0, 0, original_.rank, BufferKind::scratch, Stride::fixed};
        } else if (has_source(op.kind)) {
            op.source = received(op.source);
        }
        replaced_[index] = {add(op, on)};
    }

    const Arrival& arrival(Rank owner) {
        if (const auto known = arrivals_.find(owner); known != arrivals_.end()) {
            return known->second;
        }
        const std::uint64_t bytes = flag_slot_bytes_[static_cast<std::size_t>(owner)];
        Op op;
        op.kind = bytes > 0 ? OpKind::recv : OpKind::await;
        op.peer = owner;
        if (bytes > 0) {
            op.target = new_scratch(bytes);
        }
        return arrivals_[owner] = {add(op, {}), op.target.offset};
    }

    Slice received(Slice slice) const {
        if (slice.owner != kNoRank && slice.buffer == BufferKind::flag_slot) {
            slice.offset += arrivals_.at(slice.owner).offset;
            slice.buffer = BufferKind::scratch;
            slice.owner = original_.rank;
        }
        return slice;
    }

    Schedule original_;
    std::span<const std::uint64_t> flag_slot_bytes_;
    std::span<const Rank> readers_;
    Schedule result_;
    std::vector<OpIds> replaced_; // By op of the original: the ops that others depend on instead.
    std::map<Rank, Arrival> arrivals_;
    proof::Origins origins_;
};

} // namespace

std::vector<Rank> flag_slots_read(const Schedule& schedule, const Op& op) {
    std::vector<Rank> owners;
    const auto note = [&](const Slice& slice) {
        const bool foreign = slice.buffer == BufferKind::flag_slot && slice.owner != schedule.rank;
        if (foreign && std::find(owners.begin(), owners.end(), slice.owner) == owners.end()) {
            owners.push_back(slice.owner);
        }
    };
    switch (op.kind) {
    case OpKind::copy: note(op.source); break;
    case OpKind::reduce:
        for (const Slice& operand : operands_of(schedule, op)) {
            note(operand);
        }
        break;
    case OpKind::send:
    case OpKind::recv:
    case OpKind::signal:
    case OpKind::await:
    case OpKind::publish:
    case OpKind::share: break; // These name no flag slot of a peer.
    }
    return owners;
}

std::vector<Schedule> with_messages(std::span<const Schedule> schedules) {
    std::vector<proof::Origins> origins;
    return proof::with_messages(schedules, origins);
}

std::vector<Schedule> proof::with_messages(std::span<const Schedule> schedules,
                                           std::vector<Origins>& origins) {
    std::vector<std::uint64_t> flag_slot_bytes;
    std::vector<std::vector<Rank>> readers(schedules.size());
    for (const Schedule& schedule : schedules) {
        flag_slot_bytes.push_back(schedule.flag_slot_bytes);
        for (const Op& op : schedule.ops) {
            for (const Rank owner : flag_slots_read(schedule, op)) {
                std::vector<Rank>& known = readers[static_cast<std::size_t>(owner)];
                if (known.empty() || known.back() != schedule.rank) {
                    known.push_back(schedule.rank);
                }
            }
        }
    }
    std::vector<Schedule> result;
    result.reserve(schedules.size());
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        Rewriter rewriter(unroll(schedules[i]), flag_slot_bytes, readers[i]);
        result.push_back(rewriter.run());
        origins.push_back(rewriter.origins());
    }
    return result;
}

} // namespace ucg::graph
