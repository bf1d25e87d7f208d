// Finds the reductions that may combine a message where it arrives, in the transport's memory. This
// saves a copy to scratch that nothing but the reduction would read.
#include <algorithm>
#include <optional>
#include <vector>

#include "ucg_coll/graph/lowering.hpp"

namespace ucg::graph {
namespace {

/// Bytes [begin, end) of the own scratch.
struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

/// A message that has been posted, and its carrier.
struct Posted {
    std::uint32_t message = 0;
    std::uint8_t carrier = 0;
};

/// A reduction that may combine a message where it arrives, if no other step reads the message.
struct Candidate {
    std::size_t step = 0;
    Posted posted;
    std::uint32_t arriving = 0; ///< Which operand the message brings.
    Extent extent;              ///< Where the message lies over all iterations.
};

class Arrivals {
  public:
    explicit Arrivals(LoweredSchedule& lowered)
        : lowered_(lowered), message_of_slot_(lowered.slot_count, 0) {
        for (std::uint32_t i = 0; i < lowered.messages.size(); ++i) {
            message_of_slot_[lowered.messages[i].slot] = i;
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
    /// Finds the candidates, and the parts of scratch that are read otherwise.
    void find() {
        std::size_t repeat = 0;
        for (std::size_t i = 0; i < lowered_.steps.size(); ++i) {
            const Step& at = lowered_.steps[i];
            repeat_ = at.in_repeat ? &lowered_.repeats[repeat] : nullptr;
            switch (at.kind) {
            case StepKind::post:
                for (std::uint32_t k = 0; k < at.count; ++k) {
                    const MessagePlan& message = lowered_.messages[at.first + k];
                    if (message.outgoing) {
                        read(message.address);
                    }
                }
                break;
            case StepKind::reduce: find_reduction(i); break;
            case StepKind::copy: read(lowered_.addresses_of(at)[1]); break;
            case StepKind::publish:
            case StepKind::share: read(lowered_.addresses_of(at)[0]); break;
            case StepKind::end_iteration: ++repeat; break;
            case StepKind::reduce_parts:
            case StepKind::wait:
            case StepKind::finish: break;
            }
        }
    }

    void find_reduction(std::size_t index) {
        const Step& at = lowered_.steps[index];
        const std::span operands = lowered_.addresses_of(at).subspan(1);
        const std::optional<Posted> posted = awaited_next(index);
        const Address* brought = posted ? &lowered_.messages[posted->message].address : nullptr;
        std::optional<std::uint32_t> arriving;
        unsigned found = 0;
        for (std::uint32_t i = 0; i < at.count; ++i) {
            if (posted && operands[i] == *brought) {
                arriving = i;
                ++found;
            } else {
                read(operands[i]);
            }
        }
        if (found == 1) {
            candidates_.push_back({index, *posted, *arriving, extent(*brought)});
        } else if (found > 1) {
            read(*brought);
        }
    }

    /// Returns the receive into scratch that the step waits for, if the step waits for nothing else
    /// and only posts without waits lie between the two: these cannot hold the step up, nor do they
    /// read the message.
    std::optional<Posted> awaited_next(std::size_t index) const {
        const Step& at = lowered_.steps[index];
        if (at.wait_count != 1 || at.flag_slots_until > 0) {
            return std::nullopt;
        }
        const Wait& wait = lowered_.waits[at.first_wait];
        const std::uint32_t number = message_of_slot_[wait.slot];
        const MessagePlan& message = lowered_.messages[number];
        const Address& address = message.address;
        const bool fits = wait.distance == 0 && !wait.every_slot && !message.outgoing &&
                          address.buffer == BufferKind::scratch && !address.of_peer &&
                          address.length > kCacheLine;
        for (std::size_t i = index; fits && i-- > 0;) {
            const Step& before = lowered_.steps[i];
            if (before.kind != StepKind::post || before.in_repeat != at.in_repeat) {
                break;
            }
            if (number >= before.first && number < before.first + before.count) {
                return Posted{number, before.carrier};
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
        if (address.buffer == BufferKind::scratch && !address.of_peer && address.length > 0) {
            reads_.push_back(extent(address));
        }
    }

    /// Sorts reads_, and merges those that overlap or touch.
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
        Step& at = lowered_.steps[candidate.step];
        at.kind = StepKind::reduce_parts;
        at.message = candidate.posted.message;
        at.carrier = candidate.posted.carrier;
        at.arriving = candidate.arriving;
    }

    LoweredSchedule& lowered_;
    std::vector<std::uint32_t> message_of_slot_; // By the first slot of each message.
    const Repeat* repeat_ = nullptr;             // The repeat of the step that is looked at.
    std::vector<Candidate> candidates_;
    std::vector<Extent> reads_; // What is read of scratch, but for each candidate's own message.
};

} // namespace

void combine_where_it_arrives(const Schedule& schedule, LoweredSchedule& lowered) {
    const bool divides = schedule.element_bytes > 0 && kCacheLine % schedule.element_bytes == 0;
    if (!schedule.exposed && !lowered.messages.empty() && divides) {
        Arrivals(lowered).run();
    }
}

} // namespace ucg::graph
