#include "ucg_coll/engine/arrivals.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace ucg::engine {
namespace {

using graph::BufferKind;
using graph::Stride;

/// Bytes [begin, end) of the own scratch.
struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

struct Candidate {
    std::size_t instruction = 0;
    std::uint32_t message = 0;
    std::uint32_t arriving = 0;
    Extent extent;
};

bool same(const Address& a, const Address& b) {
    return a.buffer == b.buffer && a.owner == b.owner && a.offset == b.offset &&
           a.length == b.length && a.stride == b.stride;
}

class Arrivals {
  public:
    explicit Arrivals(Program& program)
        : program_(program), message_of_slot_(program.slots.size(), 0) {
        for (std::uint32_t i = 0; i < program.messages.size(); ++i) {
            message_of_slot_[program.messages[i].slot] = i;
        }
    }

    void run() {
        find();
        merge_reads();
        for (const Candidate& candidate : candidates_) {
            if (!read_elsewhere(candidate.extent)) {
                change(candidate);
            }
        }
    }

  private:
    /// Candidates, and what all others read of scratch.
    void find() {
        std::size_t repeat = 0;
        for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
            const Instruction& at = program_.instructions[i];
            repeat_ = at.in_repeat ? &program_.repeats[repeat] : nullptr;
            repeat += at.kind == InstructionKind::end_iteration ? 1 : 0;
            switch (at.kind) {
            case InstructionKind::post:
                for (std::uint32_t k = 0; k < at.count; ++k) {
                    const MessagePlan& plan = program_.messages[at.first + k];
                    if (program_.slots[plan.slot].direction == transport::Direction::send) {
                        read(plan.address);
                    }
                }
                break;
            case InstructionKind::reduce: find_reduction(i); break;
            case InstructionKind::copy:
            case InstructionKind::publish:
            case InstructionKind::share: read(at.source); break;
            case InstructionKind::reduce_parts:
            case InstructionKind::wait:
            case InstructionKind::end_iteration:
            case InstructionKind::finish: break;
            }
        }
    }

    void find_reduction(std::size_t index) {
        const Instruction& at = program_.instructions[index];
        const std::optional<std::uint32_t> message = awaited_next(index);
        std::optional<std::uint32_t> arriving;
        unsigned found = 0;
        for (std::uint32_t i = 0; i < at.count; ++i) {
            const Address& operand = program_.operands[at.first + i];
            if (message && same(operand, program_.messages[*message].address)) {
                arriving = i;
                ++found;
            } else {
                read(operand);
            }
        }
        if (found == 1) {
            const Address& address = program_.messages[*message].address;
            candidates_.push_back({index, *message, *arriving, extent(address)});
        } else if (found > 1) {
            read(program_.messages[*message].address);
        }
    }

    /// The receive into scratch that the instruction waits for and that was posted last before it:
    /// nothing in between can hold the instruction up, nor does it read the message.
    std::optional<std::uint32_t> awaited_next(std::size_t index) const {
        const Instruction& at = program_.instructions[index];
        if (at.wait_count != 1 || at.boards_until > 0) {
            return std::nullopt;
        }
        const Wait& wait = program_.waits[at.first_wait];
        const std::uint32_t number = message_of_slot_[wait.slot];
        const MessagePlan& plan = program_.messages[number];
        const bool fits = wait.distance == 0 && !wait.every_slot &&
                          program_.slots[plan.slot].direction == transport::Direction::recv &&
                          plan.address.buffer == BufferKind::scratch &&
                          plan.address.owner == kNoRank && plan.address.length > kCacheLine;
        for (std::size_t i = index; fits && i-- > 0;) {
            const Instruction& before = program_.instructions[i];
            if (before.kind != InstructionKind::post || before.in_repeat != at.in_repeat) {
                break;
            }
            if (number >= before.first && number < before.first + before.count) {
                return number;
            }
            if (before.waits) {
                break;
            }
        }
        return std::nullopt;
    }

    Extent extent(const Address& address) const {
        std::uint64_t length = address.length;
        if (repeat_ != nullptr && address.stride == Stride::advance) {
            length += (repeat_->iterations - 1) * repeat_->segment_bytes;
        } else if (repeat_ != nullptr && address.stride == Stride::rotate) {
            length += (repeat_->rotation - 1) * repeat_->segment_bytes;
        }
        return {address.offset, address.offset + length};
    }

    void read(const Address& address) {
        if (address.buffer == BufferKind::scratch && address.owner == kNoRank &&
            address.length > 0) {
            reads_.push_back(extent(address));
        }
    }

    /// Sorted, and none touches the next.
    void merge_reads() {
        std::sort(reads_.begin(), reads_.end(),
                  [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
        std::size_t count = 0;
        for (const Extent& each : reads_) {
            if (count > 0 && each.begin <= reads_[count - 1].end) {
                reads_[count - 1].end = std::max(reads_[count - 1].end, each.end);
            } else {
                reads_[count++] = each;
            }
        }
        reads_.resize(count);
    }

    bool read_elsewhere(const Extent& extent) const {
        const auto after = std::upper_bound(
            reads_.begin(), reads_.end(), extent.begin,
            [](std::uint64_t begin, const Extent& each) { return begin < each.end; });
        return after != reads_.end() && after->begin < extent.end;
    }

    void change(const Candidate& candidate) {
        Instruction& at = program_.instructions[candidate.instruction];
        at.kind = InstructionKind::reduce_parts;
        at.message = candidate.message;
        at.arriving = candidate.arriving;
        const MessagePlan& plan = program_.messages[candidate.message];
        for (std::uint32_t i = 0; i <= plan.mask; ++i) {
            program_.parts.push_back(plan.slot + i);
        }
    }

    Program& program_;
    std::vector<std::uint32_t> message_of_slot_; // By first slots.
    const graph::Repeat* repeat_ = nullptr;      // Of the instruction that is looked at.
    std::vector<Candidate> candidates_;
    std::vector<Extent> reads_; // By others than the candidates, each of its own message.
};

} // namespace

void combine_where_it_arrives(Program& program, std::uint64_t element_bytes) {
    const bool reached_by_peers = program.memory != nullptr;
    const bool divides = element_bytes > 0 && kCacheLine % element_bytes == 0;
    if (!reached_by_peers && !program.messages.empty() && divides) {
        Arrivals(program).run();
    }
}

} // namespace ucg::engine
